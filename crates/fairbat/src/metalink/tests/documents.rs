//! Documents that others have written.

use super::*;

fn urls(file: &MetalinkFile) -> Vec<&str> {
    file.urls.iter().map(Url::as_str).collect()
}

#[test]
fn the_brief_example_of_rfc_5854_is_read() {
    // Section 1.1.
    let text = document(
        r#"<file name="example.ext">
            <size>14471447</size>
            <url>ftp://ftp.example.com/example.ext</url>
            <url>http://example.com/example.ext</url>
            <metaurl mediatype="torrent">
            http://example.com/example.ext.torrent</metaurl>
        </file>"#,
    );
    let expected = MetalinkFile {
        name: "example.ext".to_owned(),
        size: Some(14_471_447),
        checksum: None,
        pieces: None,
        urls: vec!["http://example.com/example.ext".parse().expect("a URL")],
        unknown_hashes: Vec::new(),
    };
    assert_eq!(read(&text), Ok(vec![expected]));
}

#[test]
fn the_extensive_example_of_rfc_5854_is_read() {
    // Section 1.1: two files. The RFC leaves the ends of the hashes out.
    let of_rfc = [
        ("Example", "f0ad929cd259957e160ea442eb80986b5f01..."),
        ("Example2", "2f548ce50c459a0270e85a7d63b2383c5523..."),
    ];
    let files = of_rfc.map(|(identity, hash)| {
        let name = format!("{}.ext", identity.to_ascii_lowercase());
        format!(
            r#"<file name="{name}"><size>14471447</size><identity>{identity}</identity>
            <version>1.0</version><language>en</language>
            <description>
            A description of the file for download.
            </description>
            <hash type="sha-256">{hash}</hash>
            <url location="de"
                 priority="1">ftp://ftp.example.com/{name}</url>
            <url location="fr"
                 priority="1">http://example.com/{name}</url>
            <metaurl mediatype="torrent"
                 priority="2">http://example.com/{name}.torrent</metaurl></file>"#
        )
    });
    let published = "<published>2009-05-15T12:23:23Z</published>";
    let text = document(&format!("{published}{}", files.concat()));
    let said = read(&text).expect_err("half a hash").to_string();
    assert!(said.contains(of_rfc[0].1), "{said}");

    let end = "0".repeat(64 - 36);
    let files = read(&text.replace("...", &end)).expect("a Metalink");
    assert_eq!(files.len(), 2);
    for (file, (identity, hash)) in files.iter().zip(of_rfc) {
        let name = format!("{}.ext", identity.to_ascii_lowercase());
        assert_eq!((&file.name, file.size), (&name, Some(14_471_447)));
        let checksum = file.checksum.as_ref().map(Checksum::hex);
        assert_eq!(checksum, Some(hash.replace("...", &end)));
        assert_eq!(urls(file), [format!("http://example.com/{name}")]);
        assert_eq!(file.pieces, None);
    }
}

#[test]
fn the_hashes_of_rfc_5854_are_read() {
    // Section 4.2.4, in a file of four pieces.
    let pieces = [
        "d96b9a4b92a899c2099b7b31bddb5ca423bb9b30",
        "10d68f4b1119014c123da2a0a6baf5c8a6d5ba1e",
        "3e84219096435c34e092b17b70a011771c52d87a",
        "67183e4c3ab892d3ebe8326b7d79eb62d077f487",
    ];
    let hashes = pieces.map(|hash| format!("<hash>{hash}</hash>\n")).concat();
    let whole = format!("fc87941af7fd7f03e53b34af393f4c14923d74{}", "0".repeat(26));
    let text = file(&format!(
        r#"<size>4194304</size>
        <hash type="sha-1">a97fcf6ba9358f8a6f62beee4421863d3e52b080</hash>
        <hash type="sha-256">{whole}</hash>
        <pieces length="1048576" type="sha-1">{hashes}</pieces>"#
    ));
    let files = read(&text).expect("a Metalink");
    let checksum = files[0].checksum.as_ref().map(Checksum::hex);
    assert_eq!(checksum, Some(whole));
    let found = files[0].pieces.as_ref().expect("pieces");
    let hexes: Vec<String> = found.hashes.iter().map(Checksum::hex).collect();
    assert_eq!(hexes, pieces);
    assert_eq!((found.length.get(), found.hashes.len()), (1_048_576, 4));
    assert!(!found.is_strong());
}

#[test]
fn a_file_of_pymetalink_is_read() {
    // Written by pymetalink 6.5.3 (PyPI), for 1,200,000 bytes that are made up. It lists the
    // address of eDonkey, which is no URL, before the others.
    let files = parse(include_bytes!("pymetalink.meta4")).expect("a Metalink");
    let [file] = &files[..] else {
        panic!("{files:?}");
    };
    assert_eq!(
        (file.name.as_str(), file.size),
        ("example.ext", Some(1_200_000))
    );
    let checksum = "sha-256=15ddcea135ffe1925cb5985720a04b16d25e14b6ab12098fdd202c4e54023738";
    assert_eq!(file.checksum, checksum.parse().ok());
    let pieces = file.pieces.as_ref().expect("pieces");
    assert_eq!((pieces.length.get(), pieces.hashes.len()), (262_144, 5));
    assert_eq!(pieces.range(4, 1_200_000), 1_048_576..1_200_000);
    let last = "sha-1=e972f923f44b14988ccb011a335e68c6092fd08c";
    assert_eq!(pieces.hashes[4].to_string(), last);
    assert_eq!(
        urls(file),
        [
            "https://www.example.com/example.ext",
            "http://www2.example.com/example.ext"
        ]
    );
}
