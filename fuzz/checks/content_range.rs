//! What must hold for any `Content-Range` field.

use fairbat::http::range::ContentRange;

/// Panics if an accepted range is inconsistent or not read back as written, or
/// if a range is accepted or refused for other reasons than its bounds.
pub(crate) fn check(data: &[u8]) {
    if let Some(range) = ContentRange::parse(data) {
        if let ContentRange::Bytes { first, last, total } = range {
            assert!(first <= last && last < u64::MAX);
            assert!(total.is_none_or(|total| last < total));
        }
        assert_eq!(
            ContentRange::parse(range.to_string().as_bytes()),
            Some(range)
        );
        assert!(data.trim_ascii()[..6].eq_ignore_ascii_case(b"bytes "));
    }
    check_bounds(data);
}

/// Takes three numbers from the input and makes a field of them.
fn check_bounds(data: &[u8]) {
    let (numbers, _) = data.as_chunks::<8>();
    let [first, last, total, ..] = numbers else {
        return;
    };
    let [first, last, total] = [first, last, total].map(|bytes| u64::from_le_bytes(*bytes));
    let read = ContentRange::parse(format!("bytes {first}-{last}/{total}").as_bytes());
    if first <= last && last < total {
        let total = Some(total);
        assert_eq!(read, Some(ContentRange::Bytes { first, last, total }));
    } else {
        assert_eq!(read, None);
    }
}
