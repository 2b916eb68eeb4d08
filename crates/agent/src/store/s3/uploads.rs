//! Which uploads and parts an S3 store has, though nobody has heard of their end:
//! `object_store` does not ask for that.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use fairbat::transport::RequestContext;
use http::{Method, Request};
use http_body_util::{BodyExt, Empty};
use object_store::path::Path;
use object_store::signer::{SignedUrlOptions, Signer};
use serde::{Deserialize, Serialize};

use super::super::connector::read;
use super::super::error::{StoreError, StoreErrorKind};
use super::super::{ListedPart, PartDigest, PendingUpload};
use super::{S3, SIGNED_FOR};

impl S3 {
    /// Uploads in parts that are under way below `prefix`, of anybody.
    pub(in crate::store) async fn pending(
        &self,
        prefix: &str,
    ) -> Result<Vec<PendingUpload>, StoreError> {
        let full = match self.full(prefix) {
            full if full.is_empty() => full,
            full => full + "/",
        };
        let mut pending = Vec::new();
        let mut after: Option<(String, String)> = None;
        loop {
            let mut query = vec![("uploads", String::new()), ("prefix", full.clone())];
            if let Some((key, upload)) = after.take() {
                query.push(("key-marker", key));
                query.push(("upload-id-marker", upload));
            }
            let bucket = Path::default();
            let doing = "listing unfinished uploads";
            let page: ListUploads = self.ask(&bucket, query, doing).await?;
            for upload in page.upload {
                if let Some(key) = self.own(&upload.key) {
                    pending.push(PendingUpload {
                        key,
                        upload: upload.upload_id,
                    });
                }
            }
            match (page.is_truncated, page.next_key_marker) {
                (true, Some(key)) => {
                    after = Some((key, page.next_upload_id_marker.unwrap_or_default()));
                }
                _ => return Ok(pending),
            }
        }
    }

    /// The parts that an upload has, as far as they can be named.
    pub(in crate::store) async fn parts(
        &self,
        key: &str,
        upload: &str,
    ) -> Result<Vec<ListedPart>, StoreError> {
        let path = self.path(key)?;
        let doing = format!("listing the parts of {key}");
        let mut parts = Vec::new();
        let mut after: Option<u32> = None;
        loop {
            let mut query = vec![("uploadId", upload.to_owned())];
            if let Some(after) = after.take() {
                query.push(("part-number-marker", after.to_string()));
            }
            let page: ListParts = self.ask(&path, query, &doing).await?;
            parts.extend(page.part.into_iter().filter_map(Listed::named));
            match (page.is_truncated, page.next_part_number_marker) {
                (true, Some(last)) => after = Some(last),
                _ => return Ok(parts),
            }
        }
    }

    /// A question that is answered by a document.
    async fn ask<T: for<'de> Deserialize<'de>>(
        &self,
        about: &Path,
        query: Vec<(&str, String)>,
        doing: &str,
    ) -> Result<T, StoreError> {
        let options = SignedUrlOptions::new().with_query(query);
        let signed = self
            .store
            .signed_url_opts(Method::GET, about, SIGNED_FOR, &options)
            .await
            .map_err(|error| {
                StoreError::new(StoreErrorKind::Refused, format!("{doing}: {error}"))
            })?;
        let request = Request::get(signed.as_str()).body(Empty::<Bytes>::new());
        let request = request.map_err(|error| {
            StoreError::new(StoreErrorKind::Refused, format!("{doing}: {error}"))
        })?;
        let response = self
            .carrier
            .carry(request, RequestContext::default())
            .await?;
        if !response.status().is_success() {
            return Err(read(response).await.1.error(doing));
        }
        let makes_no_sense = |why: String| {
            StoreError::new(
                StoreErrorKind::Server,
                format!("{doing}: the answer of the store makes no sense: {why}"),
            )
        };
        let body = response.into_body().collect().await;
        let body = body
            .map_err(|error| makes_no_sense(error.to_string()))?
            .to_bytes();
        let text = std::str::from_utf8(&body).map_err(|error| makes_no_sense(error.to_string()))?;
        quick_xml::de::from_str(text).map_err(|error| makes_no_sense(error.to_string()))
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListUploads {
    #[serde(default)]
    is_truncated: bool,
    next_key_marker: Option<String>,
    next_upload_id_marker: Option<String>,
    #[serde(default)]
    upload: Vec<ListedUpload>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListedUpload {
    key: String,
    upload_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListParts {
    #[serde(default)]
    is_truncated: bool,
    next_part_number_marker: Option<u32>,
    #[serde(default)]
    part: Vec<Listed>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Listed {
    part_number: u32,
    size: u64,
    #[serde(rename = "ETag")]
    etag: Option<String>,
    #[serde(rename = "ChecksumSHA256")]
    sha256: Option<String>,
}

/// What `object_store` calls a part.
#[derive(Debug, Serialize)]
struct PartMetadata {
    e_tag: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    checksum_sha256: Option<String>,
}

impl Listed {
    /// `None` for one without an entity tag: it cannot be named when the upload is
    /// completed.
    fn named(self) -> Option<ListedPart> {
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

/// The MD5 that an entity tag is; `None` if it is something else.
fn md5(etag: &str) -> Option<[u8; 16]> {
    let digits = etag.trim_matches('"').as_bytes();
    let mut bytes = [0; 16];
    if digits.len() != 2 * bytes.len() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(document: &str) -> Vec<ListedPart> {
        let page: ListParts = quick_xml::de::from_str(document).unwrap();
        page.part.into_iter().filter_map(Listed::named).collect()
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
