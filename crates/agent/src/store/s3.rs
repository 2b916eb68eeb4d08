//! S3-compatible stores, by `object_store`, which signs and parses.
//!
//! Every object carries its SHA-256, which the store checks. An upload in parts
//! has a name from the store, so another process can continue it.
//!
//! `object_store` passes neither a request's context on nor an error document
//! back. So each call gets a connector of its own ([`Connector`]), which knows
//! the context and keeps the error.

mod pages;

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use fairbat::transport::{LaneClient, RequestContext};
use futures_util::stream::{StreamExt, TryStreamExt};
use http::{Method, Request};
use http_body_util::{BodyExt, Empty, Full, Limited};
use object_store::aws::{AmazonS3, AmazonS3Builder, AwsCredential, Checksum};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::signer::{SignedUrlOptions, Signer};
use object_store::{
    Attribute, BackoffConfig, ClientOptions, GetOptions, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, RetryConfig, StaticCredentialProvider,
};
use serde::Deserialize;

use self::pages::{ListedUpload, ObjectsPage, PartElement, PartsPage, UploadsPage};
use super::backend::{
    ContentStream, ListPlace, ListedObject, ListedPage, ListedPart, MAX_PARTS, Store, UploadPart,
};
use super::error::{RequestError, StoreError, StoreErrorKind, StoreRefusal};
use super::unfinished::PendingUpload;
use crate::config::S3;
use crate::config::credentials::StoreCredentials;
use crate::object_name::beneath;

/// The user metadata that names the upload that made an object.
const MARK: Attribute = Attribute::Metadata(Cow::Borrowed("fairbat-mark"));

/// Longest page of a listing, bytes. A thousand keys of 1 KiB have less than a tenth.
const MAX_PAGE: usize = 16 * 1024 * 1024;

/// Most unfinished uploads of a listing.
const MAX_PENDING: usize = 1_000_000;

/// What is wrong with a listing whose pages lead nowhere.
const NO_END: &str = "it does not end";

/// How long a signed URL is valid. It is used at once.
const SIGNATURE_VALIDITY: Duration = Duration::from_secs(300);

/// An S3-compatible store.
#[derive(Debug)]
pub(crate) struct S3Store {
    builder: AmazonS3Builder,
    client: LaneClient,
    prefix: String,
}

impl S3Store {
    pub(crate) fn open(
        settings: &S3,
        credentials: &StoreCredentials,
        client: LaneClient,
    ) -> Result<Self, StoreError> {
        let StoreCredentials::Keys {
            access_key_id,
            secret_access_key,
            session_token,
        } = credentials
        else {
            let kind = StoreErrorKind::Credentials;
            return Err(StoreError::new(kind, "an S3 store needs an access key")
                .with_hint("name a file under credentials, or set AWS_ACCESS_KEY_ID"));
        };
        let no_retries = RetryConfig {
            backoff: BackoffConfig::default(),
            max_retries: 0,
            retry_timeout: Duration::ZERO,
        };
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(&settings.bucket)
            .with_region(&settings.region)
            // Unlike the builder's own fields, these are left out of what `Debug` prints.
            .with_credentials(Arc::new(StaticCredentialProvider::new(AwsCredential {
                key_id: access_key_id.clone(),
                secret_key: secret_access_key.expose().to_owned(),
                token: session_token
                    .as_ref()
                    .map(|token| token.expose().to_owned()),
            })))
            .with_virtual_hosted_style_request(!settings.path_style)
            .with_allow_http(true)
            .with_checksum_algorithm(Checksum::SHA256)
            // Not all stores take many keys in one request, and `object_store` panics
            // on an answer that names another key.
            .with_disable_bulk_delete(true)
            .with_retry(no_retries);
        if let Some(endpoint) = &settings.endpoint {
            builder = builder.with_endpoint(endpoint.as_str().trim_end_matches('/'));
        }
        let store = Self {
            builder,
            client,
            prefix: settings.prefix.trim_matches('/').to_owned(),
        };
        // Settings that `object_store` refuses show here.
        store.control("", "")?;
        Ok(store)
    }

    /// One call of `object_store` about a key; `doing` says what for.
    fn call(
        &self,
        key: &str,
        context: RequestContext,
        doing: impl Into<String>,
    ) -> Result<Call, StoreError> {
        let error = Arc::default();
        let connector = Connector {
            client: self.client.clone(),
            context,
            error: Arc::clone(&error),
        };
        let builder = self.builder.clone().with_http_connector(connector);
        let store = builder.build().map_err(|error| {
            let message = format!("this is no S3 store: {error}");
            StoreError::new(StoreErrorKind::Refused, message)
        })?;
        Ok(Call {
            store,
            path: self.path(key)?,
            doing: doing.into(),
            error,
        })
    }

    /// The same for a call that moves no content of files.
    fn control(&self, key: &str, doing: impl Into<String>) -> Result<Call, StoreError> {
        self.call(key, RequestContext::default(), doing)
    }

    /// The key in the bucket.
    fn full(&self, key: &str) -> String {
        match key {
            "" => self.prefix.clone(),
            key => beneath(&self.prefix, key),
        }
    }

    /// The start of all keys below a directory.
    fn below(&self, directory: &str) -> String {
        match self.full(directory) {
            full if full.is_empty() => full,
            full => full + "/",
        }
    }

    /// The key without the prefix; `None` if it is not below the prefix.
    fn own(&self, full: &str) -> Option<String> {
        let rest = full.strip_prefix(&self.prefix)?;
        Some(rest.trim_start_matches('/').to_owned())
    }

    fn path(&self, key: &str) -> Result<Path, StoreError> {
        Path::parse(self.full(key)).map_err(|error| {
            StoreError::new(StoreErrorKind::Refused, format!("{key} is no key: {error}"))
        })
    }

    /// Sends a signed GET that `object_store` does not know, and parses the XML of
    /// the answer.
    async fn query<T: for<'de> Deserialize<'de>>(
        &self,
        path: &Path,
        query: Vec<(&str, String)>,
        doing: &str,
    ) -> Result<T, StoreError> {
        let refused =
            |error: String| StoreError::new(StoreErrorKind::Refused, format!("{doing}: {error}"));
        let options = SignedUrlOptions::new().with_query(query);
        let call = self.control("", doing)?;
        let signed = call
            .store
            .signed_url_opts(Method::GET, path, SIGNATURE_VALIDITY, &options)
            .await
            .map_err(|error| refused(error.to_string()))?;
        let request = Request::get(signed.as_str()).body(Empty::<Bytes>::new());
        let request = request.map_err(|error| refused(error.to_string()))?;
        let sent = self.client.send(request, RequestContext::default());
        let response = sent.await?;
        if !response.status().is_success() {
            return Err(StoreRefusal::read(response).await.1.error(doing));
        }
        let body = Limited::new(response.into_body(), MAX_PAGE).collect().await;
        let body = body
            .map_err(|error| StoreError::senseless(doing, error))?
            .to_bytes();
        quick_xml::de::from_reader(&*body).map_err(|error| StoreError::senseless(doing, error))
    }
}

#[async_trait]
impl Store for S3Store {
    fn stores_aside(&self) -> bool {
        false
    }

    fn is_shared_by_all(&self, prefix: &str) -> bool {
        self.full(prefix).is_empty()
    }

    async fn put(
        &self,
        key: &str,
        content: Bytes,
        context: RequestContext,
    ) -> Result<(), StoreError> {
        let call = self.call(key, context, format!("storing {key}"))?;
        let payload = PutPayload::from_bytes(content);
        let put = call
            .store
            .put_opts(&call.path, payload, PutOptions::default());
        call.result(put.await).map(drop)
    }

    async fn begin(&self, key: &str, mark: &str) -> Result<String, StoreError> {
        let call = self.control(key, format!("beginning the upload of {key}"))?;
        let options = PutMultipartOptions {
            attributes: [(MARK, mark.to_owned())].into_iter().collect(),
            ..PutMultipartOptions::default()
        };
        let begun = call.store.create_multipart_opts(&call.path, options);
        call.result(begun.await)
    }

    async fn mark(&self, key: &str) -> Result<Option<String>, StoreError> {
        let call = self.control(key, format!("looking at {key}"))?;
        let options = GetOptions {
            head: true,
            ..GetOptions::default()
        };
        let found = call.store.get_opts(&call.path, options).await;
        match call.result(found) {
            Ok(result) => {
                let mark = result.attributes.get(&MARK);
                Ok(mark.map(|mark| mark.as_ref().to_owned()))
            }
            Err(error) if error.kind == StoreErrorKind::Missing => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn put_part(
        &self,
        key: &str,
        upload: &str,
        part: UploadPart,
        context: RequestContext,
    ) -> Result<String, StoreError> {
        let doing = format!("storing part {} of {key}", part.index + 1);
        let call = self.call(key, context, doing)?;
        let payload = PutPayload::from_bytes(part.content);
        let (upload, index) = (upload.to_owned(), part.index as usize);
        let put = call.store.put_part(&call.path, &upload, index, payload);
        Ok(call.result(put.await)?.content_id)
    }

    async fn complete(
        &self,
        key: &str,
        upload: &str,
        parts: Vec<String>,
    ) -> Result<(), StoreError> {
        let call = self.control(key, format!("completing the upload of {key}"))?;
        let parts = parts.into_iter().map(|content_id| PartId { content_id });
        let upload = upload.to_owned();
        let complete = call
            .store
            .complete_multipart(&call.path, &upload, parts.collect());
        call.result(complete.await).map(drop)
    }

    async fn abort(&self, key: &str, upload: &str) -> Result<(), StoreError> {
        let call = self.control(key, format!("giving up the upload of {key}"))?;
        let upload = upload.to_owned();
        let aborted = call.store.abort_multipart(&call.path, &upload);
        match call.result(aborted.await) {
            Err(error) if error.kind == StoreErrorKind::UploadGone => Ok(()),
            other => other,
        }
    }

    async fn get(&self, key: &str, context: RequestContext) -> Result<ContentStream, StoreError> {
        let call = self.call(key, context, format!("fetching {key}"))?;
        let result = call.store.get_opts(&call.path, GetOptions::default());
        let result = call.result(result.await)?;
        let doing = call.doing;
        let broken = move |error: object_store::Error| {
            StoreError::new(StoreErrorKind::Network, format!("{doing}: {error}"))
        };
        Ok(result.into_stream().map_err(broken).boxed())
    }

    async fn list(&self, place: &ListPlace) -> Result<ListedPage, StoreError> {
        let mut query = vec![
            ("list-type", "2".to_owned()),
            ("prefix", self.below(&place.directory)),
        ];
        if let Some(token) = &place.token {
            query.push(("continuation-token", token.clone()));
        }
        let doing = format!("listing {}", place.directory);
        let page: ObjectsPage = self.query(&Path::default(), query, &doing).await?;
        let token = page.next_continuation_token.filter(|_| page.is_truncated);
        let objects = page.contents.into_iter().filter_map(|found| {
            let (key, size) = (self.own(&found.key)?, Some(found.size));
            Some(ListedObject { key, size })
        });
        Ok(ListedPage {
            objects: objects.collect(),
            more: Vec::from_iter(token.map(|token| ListPlace {
                token: Some(token),
                ..place.clone()
            })),
        })
    }

    async fn delete(&self, keys: Vec<String>) -> Result<(), StoreError> {
        let call = self.control("", "deleting objects")?;
        let paths = keys.iter().map(|key| self.path(key));
        let paths = paths.collect::<Result<Vec<_>, _>>()?;
        let paths = futures_util::stream::iter(paths.into_iter().map(Ok)).boxed();
        let mut deleted = call.store.delete_stream(paths);
        while let Some(one) = deleted.next().await {
            match one {
                Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return call.result(Err(error)),
            }
        }
        Ok(())
    }

    async fn pending(&self, prefix: &str) -> Result<Vec<PendingUpload>, StoreError> {
        let full = self.below(prefix);
        let doing = "listing unfinished uploads";
        let mut pending = Vec::new();
        let mut after: Option<(String, String)> = None;
        loop {
            let mut query = vec![("uploads", String::new()), ("prefix", full.clone())];
            if let Some((key, upload)) = after.clone() {
                query.push(("key-marker", key));
                query.push(("upload-id-marker", upload));
            }
            let page: UploadsPage = self.query(&Path::default(), query, doing).await?;
            let is_empty = page.upload.is_empty();
            for ListedUpload { key, upload_id } in page.upload {
                let upload = upload_id;
                pending.extend(self.own(&key).map(|key| PendingUpload { key, upload }));
            }
            let (true, Some(key)) = (page.is_truncated, page.next_key_marker) else {
                return Ok(pending);
            };
            let next = Some((key, page.next_upload_id_marker.unwrap_or_default()));
            if is_empty || next == after || pending.len() > MAX_PENDING {
                return Err(StoreError::senseless(doing, NO_END));
            }
            after = next;
        }
    }

    async fn parts(&self, key: &str, upload: &str) -> Result<Vec<ListedPart>, StoreError> {
        let path = self.path(key)?;
        let doing = format!("listing the parts of {key}");
        let mut parts = Vec::new();
        let mut after: Option<u32> = None;
        loop {
            let mut query = vec![("uploadId", upload.to_owned())];
            if let Some(after) = after {
                query.push(("part-number-marker", after.to_string()));
            }
            let page: PartsPage = self.query(&path, query, &doing).await?;
            parts.extend(page.part.into_iter().filter_map(PartElement::named));
            let (true, Some(last)) = (page.is_truncated, page.next_part_number_marker) else {
                return Ok(parts);
            };
            if after >= Some(last) || u64::from(last) >= MAX_PARTS {
                return Err(StoreError::senseless(&doing, NO_END));
            }
            after = Some(last);
        }
    }
}

/// One call of `object_store`.
struct Call {
    store: AmazonS3,
    path: Path,
    doing: String,
    error: Arc<Mutex<Option<RequestError>>>,
}

impl Call {
    /// The result of the call. Its error is what the store said, rather than what
    /// `object_store` makes of it.
    fn result<T>(&self, result: object_store::Result<T>) -> Result<T, StoreError> {
        result.map_err(|error| {
            let mut seen = self.error.lock().unwrap_or_else(PoisonError::into_inner);
            match seen.take() {
                Some(seen) => seen.error(&self.doing),
                None => StoreError::senseless(&self.doing, error),
            }
        })
    }
}

/// The connections of one call: those of a lane client, so that each socket has
/// its lever.
#[derive(Debug, Clone)]
struct Connector {
    client: LaneClient,
    context: RequestContext,
    /// Why the last request of the call failed.
    error: Arc<Mutex<Option<RequestError>>>,
}

impl Connector {
    fn failed(&self, error: RequestError) {
        *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }
}

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for Connector {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let response = match self.client.send(request, self.context.clone()).await {
            Ok(response) => response,
            Err(failure) => {
                let error = StoreError::from(failure);
                self.failed(error.clone().into());
                // `object_store` must not retry.
                return Err(HttpError::new(HttpErrorKind::Unknown, error));
            }
        };
        let status = response.status();
        if status.is_success() || status.is_informational() {
            return Ok(response.map(|body| {
                HttpResponseBody::new(body.map_err(|error| {
                    HttpError::new(HttpErrorKind::Unknown, StoreError::from(error))
                }))
            }));
        }
        let (response, refusal) = StoreRefusal::read(response).await;
        self.failed(RequestError::Refused(refusal));
        Ok(response
            .map(|body| HttpResponseBody::new(Full::new(body).map_err(|never| match never {}))))
    }
}
