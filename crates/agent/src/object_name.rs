//! The key of a file in a store: its path, so that people find it with other tools.
//! Characters that some store would change are percent-encoded:
//!
//! - `%`, control characters and bytes that are not UTF-8: keys are text, and S3 lists
//!   them in XML, which lacks these characters, U+FFFE and U+FFFF;
//! - `\ : * ? " < > |`: exFAT, NTFS and SMB do not allow them, and some tools for S3
//!   and WebDAV give them a meaning;
//! - `#` and `?`: if a tool does not encode a URL, the key ends there;
//! - a dot or space at the end, and a space at the beginning: Windows, SMB and some
//!   tools remove them, which makes two names the same;
//! - the dot of a name that begins with `.ht`: Apache refuses `.htaccess` over WebDAV,
//!   or obeys it;
//! - the dot of `.fairbat` at the top, in any case: that name is ours.
//!
//! No two paths have the same key. Stores that ignore case or normalise letters
//! (exFAT, SMB, macOS) may still treat two keys as one.

use fairbat::settings::Checksum;
use sha2::{Digest as _, Sha256};

use crate::entry::TreePath;
use crate::percent;

/// The agent's own directory at the top of a store.
pub const OWN: &str = ".fairbat";

/// Longest encoded name, bytes. File systems take 255; the rest is for suffixes of
/// unfinished files.
const MAX_NAME: usize = 240;

/// Longest key, bytes. S3 takes 1024; the rest is for the prefix of a store.
const MAX_KEY: usize = 900;

/// Separates the beginning of a shortened name from its SHA-256. No encoded name
/// contains it.
const SHORTENED: &str = "%~";

/// The key of the file at `path`; empty for the root.
#[must_use]
pub fn encode(path: &TreePath) -> String {
    let names = path.names().enumerate();
    let names = names.map(|(i, name)| encode_name(name.as_encoded_bytes(), i == 0));
    let key = names.collect::<Vec<_>>().join("/");
    if key.len() > MAX_KEY {
        return format!("{OWN}/long/{}", sha256(path.as_bytes()));
    }
    key
}

/// The key of the file at `path` below `prefix`, which may be empty.
#[must_use]
pub fn under(prefix: &str, path: &TreePath) -> String {
    beneath(prefix, &encode(path))
}

/// A key below `prefix`, which may be empty.
pub(crate) fn beneath(prefix: &str, key: &str) -> String {
    match prefix {
        "" => key.to_owned(),
        prefix => format!("{prefix}/{key}"),
    }
}

fn encode_name(name: &[u8], is_at_top: bool) -> String {
    let is_ours = is_at_top && name.eq_ignore_ascii_case(OWN.as_bytes());
    let is_apaches = name
        .get(..3)
        .is_some_and(|head| head.eq_ignore_ascii_case(b".ht"));
    let is_first_plain = !is_ours && !is_apaches && !name.starts_with(b" ");
    let last = name.len() - 1;
    let encoded = percent::encode(name, |at, character| {
        is_plain(character)
            && (at > 0 || is_first_plain)
            && (at < last || !matches!(character, '.' | ' '))
    });
    if encoded.len() <= MAX_NAME {
        return encoded;
    }
    let digest = sha256(name);
    let head = percent::head(&encoded, MAX_NAME - SHORTENED.len() - digest.len());
    format!("{head}{SHORTENED}{digest}")
}

/// Whether all stores keep a character.
fn is_plain(character: char) -> bool {
    !character.is_control()
        && !matches!(
            character,
            '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|' | '#' | '\u{fffe}' | '\u{ffff}'
        )
}

fn sha256(bytes: &[u8]) -> String {
    Checksum::Sha256(Sha256::digest(bytes).into()).hex()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;

    use proptest::prelude::*;

    use super::*;

    /// Why a key has no path.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum DecodeError {
        /// The path was too long for a key. The manifest has it.
        Shortened,
        /// [`encode`] makes no such key.
        Foreign,
    }

    /// The path of a key: the inverse of [`encode`].
    fn decode(key: &str) -> Result<TreePath, DecodeError> {
        if key.contains(SHORTENED) || is_long(key) {
            return Err(DecodeError::Shortened);
        }
        let foreign = DecodeError::Foreign;
        let mut bytes = Vec::with_capacity(key.len());
        for (i, name) in key.split('/').enumerate() {
            if i > 0 {
                bytes.push(0);
            }
            bytes.extend(percent::decode(name).ok_or(foreign)?);
        }
        let path = TreePath::from_bytes(&bytes).map_err(|_| foreign)?;
        // Each path has exactly one key.
        match !bytes.is_empty() && encode(&path) == key {
            true => Ok(path),
            false => Err(foreign),
        }
    }

    fn is_long(key: &str) -> bool {
        let long = key
            .strip_prefix(OWN)
            .and_then(|rest| rest.strip_prefix("/long/"));
        long.is_some_and(|digits| {
            digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
        })
    }

    fn path(names: &[&[u8]]) -> TreePath {
        TreePath::from_bytes(&names.join(&0)).unwrap()
    }

    fn key(names: &[&[u8]]) -> String {
        encode(&path(names))
    }

    #[test]
    fn plain_names_stay_what_they_are() {
        for name in [
            "a",
            "My Letter (2).odt",
            ".bashrc",
            "~",
            "~a",
            "a~",
            "x+y=z,&;@$!'[]{}^`",
            "naïve",
            "nai\u{308}ve",
            "日本語",
            "...a",
            "a..b",
            "-",
        ] {
            assert_eq!(key(&[name.as_bytes()]), name);
        }
        assert_eq!(key(&[b"a", b".fairbat", b"b c"]), "a/.fairbat/b c");
    }

    #[test]
    fn what_is_not_the_same_everywhere_is_encoded() {
        let cases: [(&[u8], &str); 14] = [
            (b"100%", "100%25"),
            (b"a\nb\x7f", "a%0Ab%7F"),
            (b"\xff\xfe", "%FF%FE"),
            ("\u{85}\u{ffff}".as_bytes(), "%C2%85%EF%BF%BF"),
            (b"a\\b", "a%5Cb"),
            (b"#a#", "%23a%23"),
            (b"a?b", "a%3Fb"),
            (b"12:30", "12%3A30"),
            (b"a.", "a%2E"),
            (b"...", "..%2E"),
            (b" a ", "%20a%20"),
            (b" ", "%20"),
            (b".htaccess", "%2Ehtaccess"),
            (b".FairBat", "%2EFairBat"),
        ];
        for (name, expected) in cases {
            assert_eq!(key(&[name]), expected);
            assert_eq!(decode(expected), Ok(path(&[name])));
        }
    }

    #[test]
    fn a_name_that_is_too_long_keeps_its_head() {
        assert_eq!(key(&[&[b'a'; 240]]), "a".repeat(240));
        for name in [
            vec![b'a'; 241],
            "ü".repeat(127).into_bytes(),
            vec![0xff; 255],
        ] {
            let short = key(&[b"d", &name]);
            let (head, digest) = short.split_once("%~").unwrap();
            assert_eq!(digest, sha256(&name));
            assert!((172..=176).contains(&head.len()), "{head}");
            let beginning = head.strip_prefix("d/").unwrap();
            assert!(
                name.starts_with(&percent::decode(beginning).unwrap()),
                "{head}"
            );
            assert_eq!(decode(&short), Err(DecodeError::Shortened));
        }
    }

    #[test]
    fn a_path_that_is_too_long_is_a_digest() {
        let names = [&[b'a'; 200][..]; 5];
        assert_eq!(key(&names[..4]).len(), 803);
        let long = key(&names);
        assert_eq!(
            long,
            format!(".fairbat/long/{}", sha256(path(&names).as_bytes()))
        );
        assert_eq!(decode(&long), Err(DecodeError::Shortened));
    }

    #[test]
    fn what_was_not_encoded_here_is_told() {
        for foreign in [
            "",
            "/",
            "a/",
            "a//b",
            "../a",
            "a/.",
            "%41",
            "%2e",
            "a%",
            "a:b",
            "%00",
            "a%2Fb",
            ".fairbat",
            ".fairbat/base",
            ".fairbat/long/x",
            "a.",
        ] {
            assert_eq!(decode(foreign), Err(DecodeError::Foreign), "{foreign}");
        }
    }

    fn any_path() -> impl Strategy<Value = TreePath> {
        let odd = prop::sample::select(b"a. %~#:\\.hHtT\x01\xff\xc3\xbc/".to_vec());
        let byte = prop_oneof![odd, any::<u8>()];
        let name = prop_oneof![
            prop::collection::vec(byte, 1..12),
            prop::collection::vec(any::<u8>(), 200..255),
            Just(b".fairbat".to_vec()),
            Just(b"long".to_vec()),
        ];
        prop::collection::vec(name, 1..8).prop_filter_map("no path", |names| {
            TreePath::from_bytes(&names.join(&0)).ok()
        })
    }

    proptest! {
        #[test]
        fn a_key_leads_back_to_its_path(path in any_path()) {
            match decode(&encode(&path)) {
                Ok(back) => prop_assert_eq!(back, path),
                Err(error) => {
                    prop_assert_eq!(error, DecodeError::Shortened);
                    prop_assert!(path.as_bytes().len() > 80);
                }
            }
        }

        #[test]
        fn no_two_paths_have_the_same_key(a in any_path(), b in any_path()) {
            prop_assert_eq!(a == b, encode(&a) == encode(&b));
        }

        #[test]
        fn every_key_is_one_for_every_store(path in any_path()) {
            let key = encode(&path);
            prop_assert!(key.len() <= MAX_KEY);
            prop_assert!(key.split('/').all(|name| name.len() <= MAX_NAME));
            prop_assert!(key.chars().all(|character| !character.is_control()));
            let parsed = object_store::path::Path::parse(&key).unwrap();
            prop_assert_eq!(parsed.as_ref(), key.as_str());
        }

        #[test]
        fn any_text_is_a_key_or_is_none(key in "\\PC{0,40}|[a%~./0-9A-F]{0,80}") {
            if let Ok(path) = decode(&key) {
                prop_assert_eq!(encode(&path), key);
            }
        }
    }

    #[test]
    fn the_longest_names_fit_a_disk_with_what_is_appended() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            vec![b'a'; 240],
            vec![0xff; 255],
            "日".repeat(85).into_bytes(),
        ] {
            let unfinished = format!("{}#1234567890", key(&[&name]));
            fs::write(
                dir.path().join(OsStr::from_bytes(unfinished.as_bytes())),
                "x",
            )
            .unwrap();
        }
    }
}
