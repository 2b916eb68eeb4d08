//! Buckets of keys in JetStream, on one server or a cluster.

use std::time::Duration;

use async_nats::jetstream::context::CreateStreamErrorKind;
use async_nats::jetstream::kv::Store;
use async_nats::jetstream::stream::{self, DiscardPolicy, StorageType};
use async_nats::jetstream::{Context, ErrorCode};

/// Copies of a bucket in a cluster. One server of three may fail.
const REPLICAS: usize = 3;

/// Largest value, bytes. The names of all hosts of a site that are held fit.
const MAX_VALUE: i32 = 64 * 1024;

/// The bucket that says who coordinates a site.
pub(crate) fn coordinator_bucket(site: &str) -> String {
    format!("fairbat_coordinator_{site}")
}

/// The bucket of the hosts of a site that are held. What differs comes before the name of the
/// site, which may have any end.
pub(crate) fn holds_bucket(site: &str) -> String {
    format!("fairbat_holds_{site}")
}

/// Opens a bucket, and makes it if there is none. Its keys last for `max_age`; without end if
/// that is zero.
///
/// # Errors
/// What JetStream says, for people.
pub(crate) async fn open(
    context: &Context,
    name: &str,
    description: &str,
    max_age: Duration,
) -> Result<Store, String> {
    if let Ok(store) = context.get_key_value(name).await {
        return Ok(store);
    }
    // A bucket is a stream of this kind. The stream is made by itself, because the client
    // makes buckets only on servers from 2.10 on.
    let config = stream::Config {
        name: format!("KV_{name}"),
        description: Some(description.to_owned()),
        subjects: vec![format!("$KV.{name}.>")],
        max_messages_per_subject: 1,
        max_age,
        max_message_size: MAX_VALUE,
        max_bytes: 1 << 20,
        // Revisions go on after a restart.
        storage: StorageType::File,
        num_replicas: REPLICAS,
        discard: DiscardPolicy::New,
        allow_rollup: true,
        deny_delete: true,
        allow_direct: true,
        ..stream::Config::default()
    };
    let made = match context.create_stream(config.clone()).await {
        Err(error) if is_single_server(error.kind()) => {
            let config = stream::Config {
                num_replicas: 1,
                ..config
            };
            context.create_stream(config).await
        }
        made => made,
    };
    made.map_err(|error| error.to_string())?;
    let opened = context.get_key_value(name).await;
    opened.map_err(|error| error.to_string())
}

/// Whether the server is in no cluster, so that there is one copy only.
fn is_single_server(kind: CreateStreamErrorKind) -> bool {
    match kind {
        CreateStreamErrorKind::JetStream(error) => {
            error.error_code() == ErrorCode::STREAM_REPLICAS_NOT_SUPPORTED
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_buckets_of_any_sites_are_the_same() {
        let sites = ["a", "a_holds", "holds_a", "holds", "coordinator_a", "a_"];
        let mut names: Vec<_> = sites
            .iter()
            .flat_map(|site| [coordinator_bucket(site), holds_bucket(site)])
            .collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 2 * sites.len());
    }
}
