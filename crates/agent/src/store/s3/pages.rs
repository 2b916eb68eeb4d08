//! The listings of S3, in XML.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::store::backend::{ListedPart, PartDigest};

/// ListObjectsV2 (Amazon S3 API reference).
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ObjectsPage {
    #[serde(default)]
    pub(crate) is_truncated: bool,
    pub(crate) next_continuation_token: Option<String>,
    #[serde(default)]
    pub(crate) contents: Vec<ListedContent>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ListedContent {
    pub(crate) key: String,
    pub(crate) size: u64,
}

/// ListMultipartUploads (Amazon S3 API reference).
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct UploadsPage {
    #[serde(default)]
    pub(crate) is_truncated: bool,
    pub(crate) next_key_marker: Option<String>,
    pub(crate) next_upload_id_marker: Option<String>,
    #[serde(default)]
    pub(crate) upload: Vec<ListedUpload>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ListedUpload {
    pub(crate) key: String,
    pub(crate) upload_id: String,
}

/// ListParts (Amazon S3 API reference).
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct PartsPage {
    #[serde(default)]
    pub(crate) is_truncated: bool,
    pub(crate) next_part_number_marker: Option<u32>,
    #[serde(default)]
    pub(crate) part: Vec<PartElement>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct PartElement {
    part_number: u32,
    pub(crate) size: u64,
    #[serde(rename = "ETag")]
    etag: Option<String>,
    #[serde(rename = "ChecksumSHA256")]
    sha256: Option<String>,
}

/// The name of a part, in the form of `object_store`.
#[derive(Debug, Serialize)]
struct PartMetadata {
    e_tag: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    checksum_sha256: Option<String>,
}

impl PartElement {
    /// `None` for a part without an entity tag: completing an upload needs the
    /// tag.
    pub(crate) fn named(self) -> Option<ListedPart> {
        let sha256 = self.sha256.as_ref().and_then(|text| {
            let bytes = STANDARD.decode(text).ok()?;
            bytes.try_into().ok().map(PartDigest::Sha256)
        });
        let digest = sha256.or_else(|| md5(self.etag.as_ref()?).map(PartDigest::Md5));
        let name = quick_xml::se::to_string(&PartMetadata {
            e_tag: self.etag.filter(|etag| !etag.is_empty())?,
            checksum_sha256: self.sha256,
        });
        Some(ListedPart {
            index: self.part_number.checked_sub(1)?,
            size: self.size,
            name: name.ok()?,
            digest,
        })
    }
}

/// The MD5 in an entity tag; `None` if the tag is something else.
fn md5(etag: &str) -> Option<[u8; 16]> {
    let digits = etag.trim_matches('"');
    let is_md5 = digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let number = u128::from_str_radix(digits, 16).ok().filter(|_| is_md5);
    number.map(u128::to_be_bytes)
}

#[cfg(test)]
mod tests {
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
}
