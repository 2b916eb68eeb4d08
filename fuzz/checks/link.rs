//! What must hold for any `Link` fields.

use std::fmt::Write as _;

use fairbat::http::link::Links;
use http::header::LINK;
use http::{HeaderMap, HeaderValue};
use url::Url;

/// Panics if a link has another scheme than those that can be asked, or if links are not found
/// again as they were written. Each line of the input is a field.
pub(crate) fn check(data: &[u8]) {
    let base = Url::parse("http://host/dir/file").expect("a URL");
    let links = read(data.split(|byte| *byte == b'\n'), &base);
    for url in links.duplicates.iter().chain(&links.metalink) {
        assert!(matches!(url.scheme(), "http" | "https") && url.has_host());
    }

    // The same, in one line, and by priority already.
    let mut line = String::new();
    for (index, url) in links.duplicates.iter().enumerate() {
        write!(line, "<{url}>; rel=duplicate; pri={}, ", index + 1).expect("a String");
    }
    if let Some(url) = &links.metalink {
        let media_type = "application/metalink4+xml";
        write!(line, "<{url}>; rel=describedby; type=\"{media_type}\"").expect("a String");
    }
    assert_eq!(read([line.as_bytes()], &base), links);
}

fn read<'a>(lines: impl IntoIterator<Item = &'a [u8]>, base: &Url) -> Links {
    let mut headers = HeaderMap::new();
    for line in lines.into_iter().take(1_000) {
        if let Ok(value) = HeaderValue::from_bytes(line) {
            headers.append(LINK, value);
        }
    }
    Links::of(&headers, base)
}
