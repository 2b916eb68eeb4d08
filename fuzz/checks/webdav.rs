//! What must hold for any answers of a WebDAV server.

use std::sync::{LazyLock, Mutex, PoisonError};

use bytes::Bytes;
use fairbat::transport::RequestContext;
use fairbat_agent::config;
use fairbat_agent::config::credentials::{Origin, Spec, StoreCredentials, Wanted};

use crate::store_server::StoreServer;

static SERVER: LazyLock<Mutex<StoreServer>> = LazyLock::new(|| {
    let settings = |url: &str| {
        config::StoreConfig::Webdav(config::Http {
            url: url.parse().expect("a URL"),
            credentials: Spec {
                wanted: Wanted::Login,
                origin: Origin::Environment,
            },
            cacert: None,
        })
    };
    Mutex::new(StoreServer::start(settings, &StoreCredentials::Anonymous))
});

/// Panics if a call does not end, if an error is not fit to be printed, or if the store
/// finds something outside of where it looked.
///
/// The first byte of the input chooses the call, see [`StoreServer::call`] for the rest.
pub(crate) fn check(data: &[u8]) {
    let Some((call, script)) = data.split_first() else {
        return;
    };
    let server = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    let content = Bytes::from_static(b"content");
    let context = RequestContext::default;
    match call {
        b'p' => {
            server.call(script, async |store| {
                store.put("home/a/b", content, context()).await
            });
        }
        b'g' => {
            server.get(script, "home/a");
        }
        b'd' => {
            server.call(script, async |store| {
                store.delete(vec!["home/a".to_owned()]).await
            });
        }
        _ => {
            let found = server.call(script, async |store| store.pending("home").await);
            for pending in found.into_iter().flatten() {
                let key = pending.key.as_str();
                assert!(key.is_empty() || key.starts_with("home/"), "{pending:?}");
                let name = pending.upload.as_str();
                assert!(
                    !name.contains('/') && !matches!(name, "" | "." | ".."),
                    "{pending:?}"
                );
            }
        }
    }
}
