//! Percent-encoding of bytes as readable text. Plain characters stay; each other byte
//! is `%` and two hexadecimal digits. `%` is never plain, so decoding is unambiguous.

use std::fmt::Write;

/// Encodes bytes. `is_plain` judges each character except `%`, given its offset in
/// bytes. Bytes that are not UTF-8 are encoded.
pub(crate) fn encode(bytes: &[u8], mut is_plain: impl FnMut(usize, char) -> bool) -> String {
    let mut text = String::with_capacity(bytes.len());
    let mut at = 0;
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character != '%' && is_plain(at, character) {
                text.push(character);
            } else {
                let mut buffer = [0; 4];
                push_encoded(&mut text, character.encode_utf8(&mut buffer).as_bytes());
            }
            at += character.len_utf8();
        }
        push_encoded(&mut text, chunk.invalid());
        at += chunk.invalid().len();
    }
    text
}

/// Decodes a text. `None` if a `%` has no two digits. Digits may have either case, and
/// plain characters may be encoded; to accept only the canonical text, encode the
/// result again.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first == b'%' {
            let (digits, after) = after.split_first_chunk::<2>()?;
            let digit = |at: usize| char::from(digits[at]).to_digit(16);
            bytes.push(u8::try_from(digit(0)? << 4 | digit(1)?).ok()?);
            rest = after;
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    Some(bytes)
}

/// The beginning of encoded text, at most `longest` bytes, cut between characters.
pub(crate) fn head(encoded: &str, longest: usize) -> &str {
    let end = encoded.floor_char_boundary(longest);
    let head = &encoded[..end];
    match head.rfind('%') {
        Some(sign) if sign + 3 > end => &head[..sign],
        Some(_) | None => head,
    }
}

fn push_encoded(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        write!(text, "%{byte:02X}").expect("writing to a String cannot fail");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_plain_is_encoded_by_bytes() {
        let no_umlaut = |_, character| character != 'ü';
        let text = encode("aü%b\u{e9}".as_bytes(), no_umlaut);
        assert_eq!(text, "a%C3%BC%25b\u{e9}");
        assert_eq!(decode(&text).unwrap(), "aü%b\u{e9}".as_bytes());
        assert_eq!(encode(b"a\xff\xc3z", |_, _| true), "a%FF%C3z");
        assert_eq!(encode(b"aba", |at, _| at != 2), "ab%61");
        assert_eq!(decode("%fF%41"), Some(b"\xffA".to_vec()));
        for broken in ["%", "%a", "a%zz", "%+1", "%é"] {
            assert_eq!(decode(broken), None, "{broken}");
        }
    }
}
