//! The URL of a file in a directory of the server's. Pure.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use url::Url;

/// All but what RFC 3986 section 2.3 calls unreserved.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Where a file goes: to `url` itself, or, when its path ends with `/`, under
/// the file's own name there. `None` when the file has no name (`..`).
#[must_use]
pub fn target_url(url: &Url, file: &Path) -> Option<Url> {
    let mut target = url.clone();
    if url.path().ends_with('/') {
        let name = percent_encode(file.file_name()?.as_bytes(), RESERVED);
        target.set_path(&format!("{}{name}", url.path()));
    }
    Some(target)
}

/// Whether this may be the URL of a directory, without the `/` that would say
/// so: it ends neither with the name of the file nor with one that looks like a
/// file's.
pub(crate) fn may_be_directory(url: &Url, file: &Path) -> bool {
    let last = url.path().rsplit('/').next().unwrap_or_default();
    let last: Vec<u8> = percent_decode_str(last).collect();
    let is_the_name = file.file_name().is_some_and(|name| name.as_bytes() == last);
    !last.is_empty() && !last.contains(&b'.') && !is_the_name
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    fn target(url: &str, file: &[u8]) -> Option<String> {
        let url = Url::parse(url).unwrap();
        target_url(&url, Path::new(OsStr::from_bytes(file))).map(Into::into)
    }

    #[test]
    fn a_directory_gets_the_name_of_the_file() {
        for (url, file, expected) in [
            ("http://h", &b"a/b.iso"[..], "http://h/b.iso"),
            ("http://h/d/", b"b.iso", "http://h/d/b.iso"),
            ("http://h/d/x", b"b.iso", "http://h/d/x"),
            ("http://h/d/?k=v", b"b.iso", "http://h/d/b.iso?k=v"),
            ("http://u:p@h/d/", b"b", "http://u:p@h/d/b"),
        ] {
            assert_eq!(target(url, file).as_deref(), Some(expected), "{url}");
        }
    }

    #[test]
    fn every_byte_of_a_name_arrives() {
        assert_eq!(
            target("http://h/", b"a b%41?#\xff\xc3\xa9.~-_").unwrap(),
            "http://h/a%20b%2541%3F%23%FF%C3%A9.~-_"
        );
    }

    #[test]
    fn a_directory_entry_that_is_no_name_has_no_url() {
        assert_eq!(target("http://h/", b".."), None);
        assert_eq!(target("http://h/x", b"..").as_deref(), Some("http://h/x"));
    }

    #[test]
    fn a_url_without_the_name_of_a_file_may_be_a_directory() {
        let may_be = |url: &str, file: &[u8]| {
            may_be_directory(
                &Url::parse(url).unwrap(),
                Path::new(OsStr::from_bytes(file)),
            )
        };
        assert!(may_be("http://h/backups", b"b.tar"));
        assert!(may_be("http://h/d/back%20ups?k=v", b"b.tar"));
        assert!(!may_be("http://h/d/monday.tar", b"b.tar"));
        assert!(!may_be("http://h/d/a%20b", b"dir/a b"));
        assert!(!may_be("http://h/d/", b".."));
    }
}
