//! An S3-compatible store, by `object_store`.
//!
//! What is sent carries its SHA-256, which the store compares. Uploads in parts
//! are named by the ids that the store gives, so that they can be continued by
//! another process.

mod uploads;

use std::borrow::Cow;
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use fairbat::transport::{LaneClient, RequestContext};
use futures_util::stream::{StreamExt, TryStreamExt};
use object_store::aws::{AmazonS3, AmazonS3Builder, Checksum};
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{
    Attribute, BackoffConfig, GetOptions, GetRange, ObjectStore, PutMultipartOptions, PutOptions,
    PutPayload, RetryConfig,
};

use super::call::Call;
use super::connector::Connector;
use super::error::{StoreError, StoreErrorKind};
use super::{ContentStream, Object, PutMode, S3Settings, Stored};

/// The least part that S3 takes, but for the last one, bytes.
const PART_LEAST: u64 = 5 * 1024 * 1024;

/// The most parts that S3 takes.
const PARTS_MOST: u64 = 10_000;

/// Lengths of parts are multiples of this, bytes.
const PART_STEP: u64 = 1024 * 1024;

/// The user metadata that says which upload made an object.
const MARK: Attribute = Attribute::Metadata(Cow::Borrowed("fairbat-mark"));

/// For so long a signed request is good: it is sent at once.
const SIGNED_FOR: Duration = Duration::from_secs(300);

/// See the module.
#[derive(Debug)]
pub(super) struct S3 {
    store: AmazonS3,
    carrier: LaneClient,
    prefix: String,
}

impl S3 {
    pub(super) fn open(settings: &S3Settings, carrier: LaneClient) -> Result<Self, StoreError> {
        let no_retries = RetryConfig {
            backoff: BackoffConfig::default(),
            max_retries: 0,
            retry_timeout: Duration::ZERO,
        };
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(&settings.bucket)
            .with_region(&settings.region)
            .with_access_key_id(&settings.access_key_id)
            .with_secret_access_key(&settings.secret_access_key)
            .with_virtual_hosted_style_request(!settings.path_style)
            .with_allow_http(true)
            .with_checksum_algorithm(Checksum::SHA256)
            .with_retry(no_retries)
            .with_http_connector(Connector(carrier.clone()));
        if let Some(endpoint) = &settings.endpoint {
            builder = builder.with_endpoint(endpoint.as_str().trim_end_matches('/'));
        }
        if let Some(token) = &settings.session_token {
            builder = builder.with_token(token);
        }
        let store = builder.build().map_err(|error| {
            StoreError::new(
                StoreErrorKind::Refused,
                format!("this is no S3 store: {error}"),
            )
        })?;
        Ok(Self {
            store,
            carrier,
            prefix: settings.prefix.trim_matches('/').to_owned(),
        })
    }

    /// The length of the parts of a file of this size, bytes.
    pub(super) fn part_size(size: u64) -> u64 {
        let least = size.div_ceil(PARTS_MOST).next_multiple_of(PART_STEP);
        least.max(PART_LEAST)
    }

    pub(super) async fn put(
        &self,
        key: &str,
        content: Bytes,
        mode: PutMode,
        passage: RequestContext,
    ) -> Result<Stored, StoreError> {
        let options = PutOptions::from(match mode {
            PutMode::Replace => object_store::PutMode::Overwrite,
            PutMode::Create => object_store::PutMode::Create,
        });
        let path = self.path(key)?;
        let put = self
            .store
            .put_opts(&path, PutPayload::from_bytes(content), options);
        let result = Call::run(passage, &format!("storing {key}"), put).await?;
        Ok(Stored { etag: result.e_tag })
    }

    pub(super) async fn begin(&self, key: &str, mark: &str) -> Result<String, StoreError> {
        let path = self.path(key)?;
        let doing = format!("beginning the upload of {key}");
        let options = PutMultipartOptions {
            attributes: [(MARK, mark.to_owned())].into_iter().collect(),
            ..PutMultipartOptions::default()
        };
        let begun = self.store.create_multipart_opts(&path, options);
        Call::run(RequestContext::default(), &doing, begun).await
    }

    /// The mark of the upload that made an object.
    pub(super) async fn mark(&self, key: &str) -> Result<Option<String>, StoreError> {
        let path = self.path(key)?;
        let doing = format!("looking at {key}");
        let options = GetOptions {
            head: true,
            ..GetOptions::default()
        };
        let got = self.store.get_opts(&path, options);
        match Call::run(RequestContext::default(), &doing, got).await {
            Ok(result) => Ok(result
                .attributes
                .get(&MARK)
                .map(|mark| mark.as_ref().to_owned())),
            Err(error) if error.kind == StoreErrorKind::Missing => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends a part; `index` is from 0. Returns what it is called.
    pub(super) async fn put_part(
        &self,
        key: &str,
        upload: &str,
        index: u32,
        content: Bytes,
        passage: RequestContext,
    ) -> Result<String, StoreError> {
        let path = self.path(key)?;
        let upload = upload.to_owned();
        let payload = PutPayload::from_bytes(content);
        let put = self.store.put_part(&path, &upload, index as usize, payload);
        let doing = format!("storing part {} of {key}", index + 1);
        Ok(Call::run(passage, &doing, put).await?.content_id)
    }

    pub(super) async fn complete(
        &self,
        key: &str,
        upload: &str,
        parts: Vec<String>,
    ) -> Result<Stored, StoreError> {
        let path = self.path(key)?;
        let parts = parts.into_iter().map(|content_id| PartId { content_id });
        let upload = upload.to_owned();
        let complete = self
            .store
            .complete_multipart(&path, &upload, parts.collect());
        let doing = format!("completing the upload of {key}");
        let result = Call::run(RequestContext::default(), &doing, complete).await?;
        Ok(Stored { etag: result.e_tag })
    }

    pub(super) async fn abort(&self, key: &str, upload: &str) -> Result<(), StoreError> {
        let path = self.path(key)?;
        let upload = upload.to_owned();
        let doing = format!("giving up the upload of {key}");
        let aborted = self.store.abort_multipart(&path, &upload);
        match Call::run(RequestContext::default(), &doing, aborted).await {
            Err(error) if error.kind == StoreErrorKind::UploadGone => Ok(()),
            other => other,
        }
    }

    pub(super) async fn get(
        &self,
        key: &str,
        range: Option<Range<u64>>,
        passage: RequestContext,
    ) -> Result<ContentStream, StoreError> {
        let options = GetOptions {
            range: range.map(GetRange::Bounded),
            ..GetOptions::default()
        };
        let path = self.path(key)?;
        let doing = format!("fetching {key}");
        let result = Call::run(passage, &doing, self.store.get_opts(&path, options)).await?;
        let broken = move |error: object_store::Error| {
            StoreError::new(StoreErrorKind::Network, format!("{doing}: {error}"))
        };
        Ok(result.into_stream().map_err(broken).boxed())
    }

    pub(super) async fn delete(&self, keys: Vec<String>) -> Result<(), StoreError> {
        let paths = keys.iter().map(|key| self.path(key));
        let paths = paths.collect::<Result<Vec<_>, _>>()?;
        let paths = futures_util::stream::iter(paths.into_iter().map(Ok)).boxed();
        let deleted = self
            .store
            .delete_stream(paths)
            .try_for_each(|_| async { Ok(()) });
        Call::run(RequestContext::default(), "deleting objects", deleted).await
    }

    /// Tells `each` of all that is below `prefix`.
    pub(super) async fn list(
        &self,
        prefix: &str,
        mut each: impl FnMut(Object) + Send,
    ) -> Result<(), StoreError> {
        let full = self.full(prefix);
        let below = if full.is_empty() {
            None
        } else {
            Some(self.path(prefix)?)
        };
        let listed = self.store.list(below.as_ref()).try_for_each(|meta| {
            if let Some(key) = self.own(meta.location.as_ref()) {
                each(Object {
                    key,
                    size: meta.size,
                });
            }
            std::future::ready(Ok(()))
        });
        Call::run(RequestContext::default(), "listing objects", listed).await
    }

    pub(super) fn full(&self, key: &str) -> String {
        match (self.prefix.as_str(), key) {
            ("", key) => key.to_owned(),
            (prefix, "") => prefix.to_owned(),
            (prefix, key) => format!("{prefix}/{key}"),
        }
    }

    /// The key without our prefix; `None` where it is not below it.
    fn own(&self, full: &str) -> Option<String> {
        let rest = full.strip_prefix(&self.prefix)?;
        Some(rest.trim_start_matches('/').to_owned())
    }

    fn path(&self, key: &str) -> Result<Path, StoreError> {
        Path::parse(self.full(key)).map_err(|error| {
            StoreError::new(StoreErrorKind::Refused, format!("{key} is no key: {error}"))
        })
    }
}
