//! Where the manifests of a place in a store are, and which of them count: a small
//! object, replaced as a whole, names the base and the last delta.

use bytes::Bytes;
use fairbat::transport::RequestContext;
use futures_util::TryStreamExt;
use serde::{Deserialize, Serialize};

use crate::object_name::{OWN, beneath};
use crate::state::ManifestRecord;
use crate::store::{PutMode, Store, StoreError, StoreErrorKind};

/// The form of the object.
const FORM: u32 = 1;

/// An object that is longer is not ours, bytes.
const LONGEST: usize = 4096;

/// Which manifests count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Current {
    /// The form of this.
    fairbat: u32,
    /// Whose they are.
    pub(super) writer: u64,
    /// Sequence number of the base.
    pub(super) base: u64,
    /// Sequence number of the last delta; that of the base if there is none.
    pub(super) last: u64,
    /// Whether the first push is not through: what they do not have is not gone.
    #[serde(default)]
    pub(super) is_partial: bool,
}

impl Current {
    /// What is remembered of them.
    pub(super) fn of(told: &ManifestRecord) -> Self {
        Self {
            fairbat: FORM,
            writer: told.writer,
            base: told.base,
            last: told.last,
            is_partial: told.is_partial,
        }
    }

    /// What counts at this place; `None` where nothing was pushed yet.
    pub(super) async fn read(store: &Store, prefix: &str) -> Result<Option<Self>, StoreError> {
        let key = current_key(prefix);
        let mut content = match store.get(&key, None, RequestContext::default()).await {
            Ok(content) => content,
            Err(error) if error.kind == StoreErrorKind::Missing => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        while let Some(piece) = content.try_next().await? {
            bytes.extend_from_slice(&piece);
            if bytes.len() > LONGEST {
                return Err(not_ours(&key, "it is too long"));
            }
        }
        let current: Self =
            serde_json::from_slice(&bytes).map_err(|error| not_ours(&key, error))?;
        if current.fairbat != FORM {
            return Err(not_ours(
                &key,
                "it was written by a later version of fairbat-agent",
            ));
        }
        if current.last < current.base {
            return Err(not_ours(&key, "it ends before it begins"));
        }
        Ok(Some(current))
    }

    /// Makes it count.
    pub(super) async fn write(&self, store: &Store, prefix: &str) -> Result<(), StoreError> {
        let content = serde_json::to_vec(self).expect("numbers can be written down");
        let content = Bytes::from(content);
        store
            .put(
                &current_key(prefix),
                content,
                PutMode::Replace,
                RequestContext::default(),
            )
            .await?;
        Ok(())
    }

    /// The keys of the manifests, base first.
    pub(super) fn keys(&self, prefix: &str) -> Vec<String> {
        let deltas = self.base + 1..=self.last;
        let deltas = deltas.map(|sequence| delta_key(prefix, self.writer, sequence));
        std::iter::once(base_key(prefix, self.writer, self.base))
            .chain(deltas)
            .collect()
    }
}

fn not_ours(key: &str, why: impl std::fmt::Display) -> StoreError {
    StoreError::new(
        StoreErrorKind::Refused,
        format!("{key} in the store cannot be used: {why}"),
    )
    .with_hint("something else has written there, or a later fairbat-agent")
}

fn current_key(prefix: &str) -> String {
    own(prefix, "manifest/current.json")
}

/// Writers do not meet under a key, so that none replaces what another counts on.
pub(super) fn base_key(prefix: &str, writer: u64, sequence: u64) -> String {
    own(
        prefix,
        &format!("manifest/{writer:016x}/{sequence:010}-base.jsonl.gz"),
    )
}

pub(super) fn delta_key(prefix: &str, writer: u64, sequence: u64) -> String {
    own(
        prefix,
        &format!("manifest/{writer:016x}/{sequence:010}-delta.jsonl.gz"),
    )
}

fn own(prefix: &str, name: &str) -> String {
    beneath(prefix, &format!("{OWN}/{name}"))
}
