use super::*;

fn parts(document: &str) -> Vec<ListedPart> {
    let page: PartsPage = quick_xml::de::from_str(document).unwrap();
    page.part
        .into_iter()
        .filter_map(PartElement::named)
        .collect()
}

#[test]
fn only_what_can_be_named_is_a_part() {
    let hash = STANDARD.encode([7; 32]);
    let document = format!(
        "<?xml version=\"1.0\"?><ListPartsResult><UploadId>u</UploadId>\
         <IsTruncated>false</IsTruncated>\
         <Part><PartNumber>2</PartNumber><ETag>&quot;a&quot;</ETag><Size>5</Size></Part>\
         <Part><PartNumber>1</PartNumber><ETag>b</ETag><Size>6</Size>\
         <ChecksumSHA256>{hash}</ChecksumSHA256></Part>\
         <Part><PartNumber>3</PartNumber><Size>7</Size></Part>\
         <Part><PartNumber>4</PartNumber>\
         <ETag>&quot;000102030405060708090a0b0C0D0E0F&quot;</ETag><Size>9</Size></Part>\
         <Part><PartNumber>0</PartNumber><ETag>c</ETag><Size>8</Size></Part>\
         </ListPartsResult>"
    );
    let parts = parts(&document);
    let found: Vec<_> = parts
        .iter()
        .map(|part| (part.index, part.size, part.digest))
        .collect();
    let md5 = std::array::from_fn(|i| i as u8);
    assert_eq!(
        found,
        [
            (1, 5, None),
            (0, 6, Some(PartDigest::Sha256([7; 32]))),
            (3, 9, Some(PartDigest::Md5(md5)))
        ]
    );
    assert!(parts[1].name.contains(&hash), "{}", parts[1].name);
    assert!(parts[0].name.contains("\"a\""), "{}", parts[0].name);
}

#[test]
fn an_entity_tag_may_be_no_md5() {
    let quoted = format!("\"{}\"", "a0".repeat(16));
    assert_eq!(md5(&quoted), Some([0xa0; 16]));
    let others = [
        "",
        "\"\"",
        &"x".repeat(32),
        &"é".repeat(16),
        &"a".repeat(31),
    ];
    for other in others {
        assert_eq!(md5(other), None, "{other}");
    }
    assert_eq!(md5(&format!("{}-2", "a".repeat(32))), None);
}

#[test]
fn an_upload_may_have_no_part() {
    assert_eq!(
        parts("<ListPartsResult><UploadId>u</UploadId></ListPartsResult>"),
        []
    );
}
