//! File names made of what a server or a URL suggests.
//!
//! A [`FileName`] is always the name of a visible direct child of whatever
//! directory it is joined to, and never the name of a part file or a journal. The caller
//! finds out whether the name is free.

use percent_encoding::percent_decode_str;
use url::Url;

use crate::printable::is_unsafe;

/// What is appended to a file's name while its bytes still arrive.
pub const PART_SUFFIX: &str = ".part";

/// What is appended to a file's name for the journal of its part file.
pub const JOURNAL_SUFFIX: &str = ".part.fairbat";

/// Longest file name on the usual Linux file systems, in bytes (`NAME_MAX`).
const NAME_MAX: usize = 255;

/// Longest suffix that [`FileName::numbered`] appends.
const LONGEST_NUMBER: &str = ".4294967295";

/// Bytes left to the store for a file beside the journal while the journal is
/// replaced.
const SPARE: usize = 8;

/// Longest [`FileName`] before it is numbered, in bytes: numbered, and with
/// the journal's suffix and a little more, it still is a valid file name.
pub const MAX_LEN: usize = NAME_MAX - JOURNAL_SUFFIX.len() - LONGEST_NUMBER.len() - SPARE;

/// Longest extension that survives the shortening of a name, in bytes, without
/// its dot.
const MAX_EXTENSION: usize = 16;

/// The name when neither the server nor the URL suggests one.
const FALLBACK: &str = "download";

/// The name of a file in a directory.
///
/// Never empty, `.` or `..`; has no separator, no control character and no
/// leading dot; ends neither in `.part` nor in `.part.fairbat`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileName(String);

impl FileName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name to take when this one and its first `k - 1` substitutes are
    /// taken: `NAME.k`.
    #[must_use]
    pub fn numbered(&self, k: u32) -> Self {
        Self(format!("{}.{k}", self.0))
    }
}

/// The name to store a file under: the one that the server suggested, if it is
/// usable, else the last segment of the URL's path, else `download`.
#[must_use]
pub fn name_for(suggested: Option<&str>, url: &Url) -> FileName {
    suggested
        .and_then(safe_name)
        .or_else(|| name_in_url(url))
        .unwrap_or_else(|| FileName(FALLBACK.to_owned()))
}

/// The last segment of the path, percent-decoded; one that is not UTF-8 stays
/// encoded, so that no byte of it is lost.
fn name_in_url(url: &Url) -> Option<FileName> {
    let segment = url.path_segments()?.next_back()?;
    match percent_decode_str(segment).decode_utf8() {
        Ok(decoded) => safe_name(&decoded),
        Err(_) => safe_name(segment),
    }
}

/// The file name in a suggestion, or `None` if nothing usable is left of it.
///
/// Of a path only the last component counts, after `/` as well as `\`.
/// Control characters and those that reorder text on a terminal are dropped.
/// So are leading dots: a server must not be able to plant a hidden file
/// (`.bashrc`). A name of our own working files is changed to a similar one,
/// `x.part` to `x_part`, because another transfer's part file may have it.
/// A name that is too long is cut before its extension.
#[must_use]
pub fn safe_name(suggested: &str) -> Option<FileName> {
    let component = suggested.rsplit(['/', '\\']).next()?;
    let printable: String = component.chars().filter(|c| !is_unsafe(*c)).collect();
    let visible = printable.trim_start_matches(|c: char| c == '.' || c.is_whitespace());
    let name = shortened(visible.trim_end());
    (!name.is_empty()).then(|| FileName(without_working_suffix(&name)))
}

/// The name with at most [`MAX_LEN`] bytes, its extension kept.
fn shortened(name: &str) -> String {
    if name.len() <= MAX_LEN {
        return name.to_owned();
    }
    match name.rsplit_once('.') {
        Some((stem, extension)) if extension.len() <= MAX_EXTENSION => {
            let stem = cut(stem, MAX_LEN - 1 - extension.len());
            format!("{stem}.{extension}")
        }
        _ => cut(name, MAX_LEN).trim_end().to_owned(),
    }
}

/// The longest prefix of at most `max` bytes.
fn cut(text: &str, max: usize) -> &str {
    let mut end = max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The name with the dot before `part` or `fairbat` replaced where it would
/// make it one of our working files. Case does not count, because some file
/// systems ignore it.
fn without_working_suffix(name: &str) -> String {
    let mut bytes = name.as_bytes().to_vec();
    let lower = name.to_ascii_lowercase();
    for (at, _) in lower.match_indices(JOURNAL_SUFFIX) {
        bytes[at + PART_SUFFIX.len()] = b'_';
    }
    if lower.ends_with(PART_SUFFIX) {
        bytes[lower.len() - PART_SUFFIX.len()] = b'_';
    }
    String::from_utf8(bytes).expect("one ASCII character took the place of another")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    fn assert_safe(cases: &[(&str, Option<&str>)]) {
        for (suggested, expected) in cases {
            let name = safe_name(suggested);
            assert_eq!(
                name.as_ref().map(FileName::as_str),
                *expected,
                "{suggested:?}"
            );
        }
    }

    fn name_of(url: &str) -> String {
        name_for(None, &url.parse().unwrap()).as_str().to_owned()
    }

    #[test]
    fn ordinary_names_stay_as_they_are() {
        for name in [
            "a",
            "a.tar.gz",
            "my file (1).txt",
            "na\u{ef}ve \u{20ac}.txt",
            "a..b",
            "a.",
            "-rf",
            "a.part1.rar",
            "a.partial",
            "apart",
            "\u{1f469}\u{200d}\u{1f680}.png",
        ] {
            assert_safe(&[(name, Some(name))]);
        }
    }

    #[test]
    fn only_the_last_component_counts() {
        assert_safe(&[
            ("../../etc/x", Some("x")),
            ("/etc/passwd", Some("passwd")),
            ("C:\\dir\\a.txt", Some("a.txt")),
            ("..\\..\\a/b\\c", Some("c")),
            ("a/..", None),
            ("a/.", None),
            ("a/", None),
            ("/", None),
            ("\\", None),
        ]);
    }

    #[test]
    fn nothing_hidden_and_nothing_invisible() {
        assert_safe(&[
            (".bashrc", Some("bashrc")),
            ("...a", Some("a")),
            (" . .a", Some("a")),
            ("..", None),
            (".", None),
            ("", None),
            ("   ", None),
            ("\0", None),
            (".\0.", None),
            ("a\0b\r\nc\u{7f}\u{85}", Some("abc")),
            ("\u{202e}gpj.exe", Some("gpj.exe")),
            ("\u{feff}.a", Some("a")),
            (" a \u{a0}", Some("a")),
        ]);
    }

    #[test]
    fn names_of_our_working_files_are_not_taken() {
        assert_safe(&[
            ("a.part", Some("a_part")),
            ("a.PART", Some("a_PART")),
            ("a.part.fairbat", Some("a.part_fairbat")),
            ("a.Part.Fairbat.new", Some("a.Part_Fairbat.new")),
            ("a.part.fairbat.part", Some("a.part_fairbat_part")),
            ("a.part.part", Some("a.part_part")),
            (".part", Some("part")),
            ("a.part\0", Some("a_part")),
            ("a.part ", Some("a_part")),
        ]);
    }

    #[test]
    fn long_names_are_cut_before_their_extension() {
        let long = "x".repeat(300);
        let name = safe_name(&format!("{long}.tar")).unwrap();
        assert_eq!(name.as_str().len(), MAX_LEN);
        assert!(name.as_str().ends_with("x.tar"));

        let name = safe_name(&format!("a.{long}")).unwrap();
        assert_eq!(name.as_str().len(), MAX_LEN);

        // Three bytes a character: the cut falls inside one.
        let euros = "\u{20ac}".repeat(100);
        let name = safe_name(&format!("{euros}.txt")).unwrap();
        assert!(name.as_str().len() > MAX_LEN - 3);
        assert!(name.as_str().ends_with("\u{20ac}.txt"));

        // The cut itself must not uncover one of our suffixes.
        let stem = "x".repeat(MAX_LEN - PART_SUFFIX.len());
        let name = safe_name(&format!("{stem}.part{long}")).unwrap();
        assert_eq!(name.as_str(), format!("{stem}_part"));
    }

    #[test]
    fn the_longest_name_leaves_room_for_every_suffix() {
        let name = safe_name(&"x".repeat(300)).unwrap();
        assert_eq!(name.as_str().len(), MAX_LEN);
        let journal = format!("{}{JOURNAL_SUFFIX}", name.numbered(u32::MAX).as_str());
        assert_eq!(journal.len() + SPARE, NAME_MAX);
    }

    #[test]
    fn numbered_appends_the_number() {
        let name = safe_name("a.txt").unwrap();
        assert_eq!(name.numbered(1).as_str(), "a.txt.1");
        assert_eq!(name.numbered(12).as_str(), "a.txt.12");
    }

    #[test]
    fn the_url_names_the_file_when_the_server_does_not() {
        for (url, expected) in [
            ("http://h/a/b.iso", "b.iso"),
            ("http://h/b.iso?c=d/e.txt#f", "b.iso"),
            ("http://h/a%20b.iso", "a b.iso"),
            ("http://h/%e2%82%ac", "\u{20ac}"),
            ("http://h/%ff.iso", "%ff.iso"),
            ("http://h/..%2f..%2fetc%2fx", "x"),
            ("http://h/%2e%2e%5cx", "x"),
            ("http://h/.bashrc", "bashrc"),
            ("http://h/a/", "download"),
            ("http://h", "download"),
            ("http://h/%00", "download"),
            ("http://h/a/%2e%2e", "download"),
        ] {
            assert_eq!(name_of(url), expected, "{url}");
        }
    }

    #[test]
    fn the_suggestion_wins_if_it_is_usable() {
        let url = "http://h/a.iso".parse().unwrap();
        assert_eq!(name_for(Some("b"), &url).as_str(), "b");
        assert_eq!(name_for(Some(".."), &url).as_str(), "a.iso");
        assert_eq!(name_for(Some(""), &url).as_str(), "a.iso");
    }

    fn assert_direct_child(name: &FileName) {
        let directory = Path::new("/some/where");
        let joined = directory.join(name.as_str());
        assert_eq!(joined.parent(), Some(directory), "{name:?}");
        assert_eq!(
            joined.file_name().and_then(std::ffi::OsStr::to_str),
            Some(name.as_str())
        );
    }

    /// Text of the pieces that matter here, so that they meet often.
    fn hostile() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            proptest::sample::select(vec![
                "/", "\\", ".", "..", "\0", " ", ".part", ".PART", ".fairbat", "%2f", "\u{202e}",
                "\n", "x", "\u{20ac}",
            ])
            .prop_map(str::to_owned),
            "\\PC{0,3}",
            (200..260_usize).prop_map(|n| "y".repeat(n)),
        ];
        proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn every_name_is_a_visible_direct_child(suggested in hostile(), k in 1..=u32::MAX) {
            let url = Url::parse("http://h/").unwrap();
            let name = name_for(Some(&suggested), &url);
            let text = name.as_str();
            assert_direct_child(&name);
            assert_direct_child(&name.numbered(k));
            prop_assert!(!text.starts_with('.') && text == text.trim());
            prop_assert!(!text.contains(|c: char| c.is_control() || "/\\".contains(c)));
            let lower = text.to_ascii_lowercase();
            prop_assert!(!lower.ends_with(PART_SUFFIX) && !lower.contains(JOURNAL_SUFFIX));
            prop_assert!(text.len() <= MAX_LEN);
        }

        #[test]
        fn a_safe_name_is_its_own_safe_name(suggested in hostile()) {
            if let Some(name) = safe_name(&suggested) {
                prop_assert_eq!(safe_name(name.as_str()), Some(name));
            }
        }

        #[test]
        fn every_url_has_a_name(path in hostile()) {
            let mut url = Url::parse("http://h/").unwrap();
            url.set_path(&path);
            assert_direct_child(&name_for(None, &url));
        }
    }
}
