mod documents;

use std::num::NonZeroU64;

use proptest::prelude::*;

use super::*;
use crate::checksum::sha256_hex;
use crate::file_name::MAX_LEN;
use crate::printable::is_unsafe;

/// A document with these elements.
fn document(inside: &str) -> String {
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<metalink xmlns="urn:ietf:params:xml:ns:metalink">{inside}</metalink>"#
    )
}

/// A file with these elements and one URL.
fn file(inside: &str) -> String {
    let url = "<url>http://example.com/a</url>";
    document(&format!(r#"<file name="a">{inside}{url}</file>"#))
}

fn read(document: &str) -> Result<Vec<MetalinkFile>, MetalinkError> {
    parse(document.as_bytes())
}

#[test]
fn files_are_read_with_their_sources_by_priority() {
    let digest = sha256_hex(b"example");
    let text = document(&format!(
        r#"
  <published>2009-05-15T12:23:23Z</published>
  <file name="example.ext">
    <size>14471447</size>
    <identity>Example</identity>
    <version>1.0</version>
    <language>en</language>
    <description>A file &amp; what it is.</description>
    <hash type="md5">05c7d97c0e3a16ced35c2d9e4554f906</hash>
    <hash type="sha-256">{digest}</hash>
    <url location="de" priority="2">ftp://ftp.example.com/example.ext</url>
    <url priority="2">http://second.example.com/example.ext</url>
    <url>http://last.example.com/example.ext</url>
    <url location="fr" priority="1">
      https://example.com/example.ext?a=1&amp;b=2
    </url>
    <metaurl mediatype="torrent" priority="1">http://example.com/example.ext.torrent</metaurl>
  </file>
  <file name="directory/example2.ext">
    <url><![CDATA[http://example.com/example2.ext]]></url>
  </file>"#
    ));
    let files = read(&text).expect("a Metalink");
    let [first, second] = &files[..] else {
        panic!("{files:?}");
    };
    let urls: Vec<&str> = first.urls.iter().map(Url::as_str).collect();
    assert_eq!(
        urls,
        [
            "https://example.com/example.ext?a=1&b=2",
            "http://second.example.com/example.ext",
            "http://last.example.com/example.ext"
        ]
    );
    assert_eq!(first.size, Some(14_471_447));
    let checksum = first.checksum.as_ref().map(Checksum::hex);
    assert_eq!(checksum, Some(digest));
    assert_eq!(second.name, "directory/example2.ext");
    assert_eq!((second.size, &second.checksum), (None, &None));
}

#[test]
fn of_many_urls_the_first_by_priority_are_kept() {
    let url = |number: usize| {
        let priority = 1 + number % 2;
        format!(r#"<url priority="{priority}">http://h/{number}</url>"#)
    };
    let urls: String = (0..1_000).map(url).collect();
    let text = document(&format!(r#"<file name="a">{urls}</file>"#));
    let files = read(&text).expect("a Metalink");
    let found: Vec<&str> = files[0].urls.iter().map(Url::as_str).collect();
    let expected = (0..MAX_URLS).map(|number| format!("http://h/{}", 2 * number));
    assert_eq!(found, expected.collect::<Vec<_>>());
}

#[test]
fn elements_count_by_their_namespace() {
    let text = r#"<m:metalink xmlns:m="urn:ietf:params:xml:ns:metalink" xmlns:o="urn:other">
        <m:file name="a"><o:url>http://other.example/a</o:url><o:size>3</o:size>
        <m:url>http://example.com/a</m:url></m:file></m:metalink>"#;
    let files = read(text).expect("a Metalink");
    assert_eq!((files[0].urls.len(), files[0].size), (1, None));
}

#[test]
fn hashes_of_pieces_fit_the_size() {
    let hash = format!("<hash>{}</hash>", sha256_hex(b"piece"));
    let pieces = |count| {
        let hashes = hash.repeat(count);
        format!(r#"<pieces length="10" type="sha-256">{hashes}</pieces>"#)
    };
    let read = |text: String| read(&file(&text)).map(|files| files[0].pieces.clone());
    let kept = read(format!("<size>25</size>{}", pieces(3))).expect("three pieces");
    let kept = kept.expect("pieces");
    assert_eq!((kept.length.get(), kept.hashes.len()), (10, 3));
    let wrong = read(format!("<size>25</size>{}", pieces(2)));
    assert!(matches!(
        wrong,
        Err(MetalinkError::Pieces { expected: 3, .. })
    ));
    let kept = read(pieces(3)).map(|kept| kept.map(|it| it.hashes.len()));
    assert_eq!(kept, Ok(Some(3)), "the server knows the size");
    // A kind that is not known is skipped, and the next one counts.
    let other = r#"<pieces length="5" type="crc"><hash>00</hash></pieces>"#;
    let kept = read(format!("<size>25</size>{other}{}", pieces(3)));
    assert_eq!(kept.map(|it| it.map(|it| it.length.get())), Ok(Some(10)));
}

#[test]
fn hashes_that_cannot_be_compared_are_told_where_they_are_all() {
    let of_file = |kind: &str, hash: &str| format!(r#"<hash type="{kind}">{hash}</hash>"#);
    let weak = of_file("sha-1", &"ab".repeat(20)) + &of_file("md5", "00");
    let pieces = r#"<pieces length="5" type="crc"><hash>00</hash></pieces>"#;
    let unknown = |text: &str| {
        let files = read(&file(text)).expect("a Metalink");
        files[0].unknown_hashes.join(" ")
    };
    assert_eq!(unknown(&format!("{weak}{pieces}")), "crc md5 sha-1");
    let good = of_file("sha-256", &sha256_hex(b"file"));
    assert_eq!(unknown(&format!("{weak}{good}")), "");
    assert_eq!(unknown(""), "");
}

#[test]
fn sha_1_is_for_pieces_only_and_comes_last() {
    let sha1 = "a9993e364706816aba3e25717850c26c9cd0d89d";
    let pieces = |kind: &str, hash: &str| {
        format!(r#"<pieces length="10" type="{kind}"><hash>{hash}</hash></pieces>"#)
    };
    let kind_of = |pieces: &str| {
        let size = "<size>7</size>";
        let of_file = format!(r#"<hash type="sha-1">{sha1}</hash>"#);
        let files = read(&file(&format!("{of_file}{size}{pieces}"))).expect("a Metalink");
        assert_eq!(files[0].checksum, None, "SHA-1 identifies no file");
        let kept = files[0].pieces.clone().expect("pieces");
        (kept.hashes[0].algorithm(), kept.is_strong())
    };
    let (weak, wide) = (pieces("sha-1", sha1), pieces("sha-512", &"ab".repeat(64)));
    let good = pieces("sha-256", &sha256_hex(b"piece"));
    assert_eq!(kind_of(&weak), ("sha-1", false));
    assert_eq!(kind_of(&format!("{weak}{wide}")), ("sha-512", true));
    assert_eq!(kind_of(&format!("{weak}{wide}{good}")), ("sha-256", true));
    assert_eq!(kind_of(&format!("{good}{weak}")), ("sha-256", true));
    let short = read(&file(&pieces("sha-1", "a9")));
    assert!(matches!(short, Err(MetalinkError::Hash { .. })));
}

#[test]
fn the_pieces_of_a_file_are_its_bytes_in_order() {
    let pieces = |length, count| PieceHashes {
        length: NonZeroU64::new(length).expect("a length"),
        hashes: vec![Checksum::Sha256([0; 32]); count],
    };
    let ranges = |pieces: &PieceHashes, size| {
        let ranges = (0..pieces.hashes.len()).map(|index| pieces.range(index, size));
        ranges.collect::<Vec<_>>()
    };
    assert_eq!(ranges(&pieces(10, 3), 25), [0..10, 10..20, 20..25]);
    assert_eq!(ranges(&pieces(10, 2), 20), [0..10, 10..20]);
    assert_eq!(pieces(u64::MAX, 1).range(0, 25), 0..25);
    let huge = pieces(u64::MAX - 1, 2);
    assert_eq!(huge.range(1, u64::MAX), u64::MAX - 1..u64::MAX);
    assert!(huge.range(9, u64::MAX).is_empty() && pieces(10, 3).range(3, 25).is_empty());
}

#[test]
fn a_name_is_a_relative_path_of_visible_names() {
    let read = |name: &str| {
        let url = "<url>http://example.com/a</url>";
        read(&document(&format!(r#"<file name="{name}">{url}</file>"#)))
    };
    let longest = "x".repeat(MAX_LEN);
    for name in [
        "a",
        "a/b/c.tar.gz",
        "~/a",
        "%2e%2e/a",
        "a b/\u{e4}.iso",
        "a..b",
        "a.part1.rar",
        &format!("{longest}/{longest}"),
        &format!("{}a", "a/".repeat(2_047)),
    ] {
        let files = read(name).expect(name);
        assert_eq!(files[0].name, name);
    }
    for name in [
        "",
        ".",
        "..",
        "/",
        "/etc/passwd",
        "../a",
        "a/../b",
        "a/..",
        "./a",
        "a/./b",
        "a//b",
        "a/",
        ".bashrc",
        ".ssh/authorized_keys",
        "a/.config/b",
        "C:\\a",
        "..\\a",
        "a\\b",
        "a.part",
        "a.PART",
        "a.part/b",
        "a.part.fairbat",
        "a&#10;b",
        "a&#x1b;[31m",
        "a\u{202e}gpj.exe",
        " a",
        "a ",
        &format!("{longest}x"),
        &"../".repeat(100_000),
        &"a/".repeat(100_000),
        &format!("{}a", "a/".repeat(2_048)),
    ] {
        let error = read(name).expect_err(name);
        let is_of_name = match name {
            "" => matches!(error, MetalinkError::NoName),
            _ => matches!(error, MetalinkError::Name(_)),
        };
        assert!(is_of_name, "{name}: {error}");
        let said = error.to_string();
        assert!(said.len() < 2_000 && !said.contains(is_unsafe), "{said}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    let name = |name: &str| {
        document(&format!(
            r#"<file name="{name}"><url>http://example.com/a</url></file>"#
        ))
    };
    let cases = [
        ("", "in the middle"),
        ("hello", "in the middle"),
        ("<html/>", "outermost element is \"html\""),
        ("<metalink/>", "namespace urn:ietf"),
        (
            r#"<metalink version="3.0" xmlns="http://www.metalinker.org/"/>"#,
            "version 3",
        ),
        (&document("<file name=\"a\">"), "no XML"),
        (&document("").replace("</metalink>", ""), "in the middle"),
        (&document(""), "0 files"),
        (&document(r#"<file name="a"/>"#), "no http or https URL"),
        (
            &document("<file><url>http://h/a</url></file>"),
            "has no name",
        ),
        (&name("../a"), "the name \"../a\""),
        (&format!("{}{}", name("a"), name("a")), "two outermost"),
        (&file("<size>much</size>"), "the size \"much\""),
        (&file("<size>-1</size>"), "the size \"-1\""),
        (&file(r#"<hash type="sha-256">12</hash>"#), "sha-256"),
        (&file(r#"<pieces length="0" type="sha-256"/>"#), "length"),
        (&file("<url>no url</url>"), "\"no url\" is no URL"),
        (&file("<url>http://</url>"), "\"http://\" is no URL"),
        (&file("&unknown;"), "&unknown; is not known"),
        (&"<a>".repeat(100), "outermost"),
        (&document(&"<a>".repeat(100)), "deeply"),
    ];
    for (text, expected) in cases {
        let said = read(text).expect_err(text).to_string();
        assert!(said.contains(expected), "{text}: {said}");
    }
    let twice = file("").replace("</metalink>", "")
        + r#"<file name="a"><url>http://h/a</url></file></metalink>"#;
    let said = read(&twice).expect_err("a name twice").to_string();
    assert!(said.contains("two files"), "{said}");
    assert_eq!(
        parse(&vec![b' '; MAX_LENGTH + 1]),
        Err(MetalinkError::TooLong)
    );
}

proptest! {
    #[test]
    fn whatever_is_read_can_be_used(inside in "(<(file|url|size|hash|pieces)( name=\"[a./]{1,4}\")?>|</(file|url|size|hash|pieces)>|http://a/|[0-9a-f]{1,8}){0,12}") {
        for file in read(&document(&inside)).unwrap_or_default() {
            prop_assert!(is_safe_name(&file.name) && !file.urls.is_empty());
        }
    }
}
