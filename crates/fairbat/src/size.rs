//! Sizes and rates as people write them in flags: `500K`, `1.5G`.

use parse_size::{Config, Error};

/// Why a text is not a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// Not of the form that is read.
    #[error("{0:?} is not a size; write for example 4096, 500K, 1.5M or 2GiB")]
    Unrecognised(String),
    /// Nothing: no size or rate in FAIRBAT can be zero.
    #[error("{0:?} is zero; it must be more")]
    Zero(String),
    /// 16 EiB or more.
    #[error("{0:?} is too large")]
    TooLarge(String),
}

/// Reads a number of bytes (for a rate: per second), at least 1: `500K`, `1M`,
/// `1.5G`. K, M, G, T, P and E are powers of 1024 in either case; `B` or `iB`
/// may follow and changes nothing. Fractions are rounded to whole bytes.
///
/// # Errors
///
/// If the text has another form, or the number is 0 or does not fit 64 bits.
pub fn parse_size(text: &str) -> Result<u64, SizeError> {
    match Config::new().with_binary().parse_size(text) {
        Ok(0) => Err(SizeError::Zero(text.to_owned())),
        Ok(bytes) => Ok(bytes),
        Err(Error::PosOverflow) => Err(SizeError::TooLarge(text.to_owned())),
        Err(_) => Err(SizeError::Unrecognised(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_the_offered_forms() {
        for (text, bytes) in [
            ("1", 1),
            ("4096", 4096),
            ("5B", 5),
            ("500K", 500 << 10),
            ("500k", 500 << 10),
            ("1M", 1 << 20),
            ("1.5G", 3 << 29),
            ("10KB", 10 << 10),
            ("10KiB", 10 << 10),
            ("1T", 1 << 40),
            ("15E", 15 << 60),
            ("0.3K", 307),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn refuses_everything_else() {
        for text in [
            "", "K", "-1", "+1", "1X", "1,5M", "1.5.5", "500K/s", "0x10", "fast",
        ] {
            let expected = Err(SizeError::Unrecognised(text.to_owned()));
            assert_eq!(parse_size(text), expected, "{text}");
        }
        for text in ["0", "0K", "0.0001K"] {
            assert_eq!(parse_size(text), Err(SizeError::Zero(text.to_owned())));
        }
        for text in ["16E", "18446744073709551616"] {
            assert_eq!(parse_size(text), Err(SizeError::TooLarge(text.to_owned())));
        }
    }

    proptest! {
        #[test]
        fn units_are_powers_of_1024(number in 1..1_u64 << 14, power in 0..6_u32) {
            let unit = ["", "K", "M", "G", "T", "P"][power as usize];
            prop_assert_eq!(parse_size(&format!("{number}{unit}")), Ok(number << (10 * power)));
        }

        #[test]
        fn any_text_is_taken_without_panic(text in "[0-9a-zA-Z. _+-]{0,20}|\\PC{0,10}") {
            let _ = parse_size(&text);
        }
    }
}
