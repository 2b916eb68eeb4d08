//! What must hold for any answers of an S3-compatible store.

use std::sync::{LazyLock, Mutex, PoisonError};

use bytes::Bytes;
use fairbat::transport::RequestContext;
use fairbat_agent::config;
use fairbat_agent::config::credentials::{Origin, SecretText, Spec, StoreCredentials, Wanted};
use fairbat_agent::store::UploadPart;

use crate::store_server::StoreServer;

static SERVER: LazyLock<Mutex<StoreServer>> = LazyLock::new(|| {
    let settings = |url: &str| {
        config::StoreConfig::S3(config::S3 {
            endpoint: Some(url.parse().expect("a URL")),
            region: "us-east-1".to_owned(),
            bucket: "bucket".to_owned(),
            prefix: "hosts/alpha".to_owned(),
            path_style: true,
            credentials: Spec {
                wanted: Wanted::Keys,
                origin: Origin::Environment,
            },
            cacert: None,
        })
    };
    let credentials = StoreCredentials::Keys {
        access_key_id: "key".to_owned(),
        secret_access_key: SecretText::new("secret".to_owned()),
        session_token: None,
    };
    Mutex::new(StoreServer::start(settings, &credentials))
});

/// Panics if a call does not end, or if an error is not fit to be printed.
///
/// The first byte of the input chooses the call, see [`StoreServer::call`] for the rest.
pub(crate) fn check(data: &[u8]) {
    const KEY: &str = "home/a";
    let Some((call, script)) = data.split_first() else {
        return;
    };
    let server = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    let context = RequestContext::default;
    match call {
        b'a' => {
            let parts = server.call(script, async |store| store.parts(KEY, "upload").await);
            for part in parts.into_iter().flatten() {
                assert!(part.index < u32::MAX && !part.name.is_empty(), "{part:?}");
            }
        }
        b'b' => {
            server.call(script, async |store| store.begin(KEY, "mark").await);
        }
        b'c' => {
            let parts = vec!["<PartMetadata><e_tag>a</e_tag></PartMetadata>".to_owned()];
            server.call(script, async |store| {
                store.complete(KEY, "upload", parts).await
            });
        }
        b'd' => {
            let keys = vec![KEY.to_owned(), "home/b".to_owned()];
            server.call(script, async |store| store.delete(keys).await);
        }
        b'g' => {
            server.get(script, KEY);
        }
        b'm' => {
            server.call(script, async |store| store.mark(KEY).await);
        }
        b'p' => {
            let content = Bytes::from_static(b"content");
            server.call(script, async |store| {
                store.put(KEY, content, context()).await
            });
        }
        b'u' => {
            let part = UploadPart {
                index: 0,
                offset: 0,
                content: Bytes::from_static(b"content"),
            };
            server.call(script, async |store| {
                store.put_part(KEY, "upload", part, context()).await
            });
        }
        b'x' => {
            server.call(script, async |store| store.abort(KEY, "upload").await);
        }
        _ => {
            server.call(script, async |store| store.pending("home").await);
        }
    }
}
