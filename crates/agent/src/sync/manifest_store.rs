//! The manifests in a store. A small pointer object, replaced as a whole, names the
//! base and the last delta that are valid.

use std::fs::File;
use std::io::{BufReader, Seek, Write};

use bytes::Bytes;
use fairbat::blocking::blocking;
use fairbat::transport::RequestContext;
use futures_util::TryStreamExt;
use serde::{Deserialize, Serialize};

use super::report::RunProblem;
use crate::manifest::{ItemContent, ManifestItem, ManifestReader, MergedManifests};
use crate::object_name::{OWN, beneath};
use crate::state::ManifestRecord;
use crate::store::{Store, StoreError, StoreErrorKind};

/// Version of the pointer object.
const POINTER_VERSION: u32 = 1;

/// Longest pointer object, bytes. A longer one is not ours.
const MAX_POINTER: usize = 4096;

/// The pointer object: which manifests are valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ManifestPointer {
    /// Version of this object.
    fairbat: u32,
    /// The agent that wrote them.
    pub(crate) writer: u64,
    /// Sequence number of the base.
    pub(crate) base: u64,
    /// Sequence number of the last delta, or of the base without deltas.
    pub(crate) last: u64,
    /// Whether the first push is still incomplete. Then a missing entry is not gone.
    #[serde(default)]
    pub(crate) is_partial: bool,
}

impl ManifestPointer {
    /// The pointer for what the state says.
    pub(crate) fn of(record: &ManifestRecord) -> Self {
        Self {
            fairbat: POINTER_VERSION,
            writer: record.writer,
            base: record.base,
            last: record.last,
            is_partial: record.is_partial,
        }
    }

    /// Reads the pointer. `None` if nothing was pushed yet.
    pub(crate) async fn read(store: &dyn Store, prefix: &str) -> Result<Option<Self>, StoreError> {
        let key = pointer_key(prefix);
        let mut content = match store.get(&key, RequestContext::default()).await {
            Ok(content) => content,
            Err(error) if error.kind == StoreErrorKind::Missing => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        while let Some(piece) = content.try_next().await? {
            bytes.extend_from_slice(&piece);
            if bytes.len() > MAX_POINTER {
                return Err(not_ours(&key, "it is too long"));
            }
        }
        let pointer: Self =
            serde_json::from_slice(&bytes).map_err(|error| not_ours(&key, error))?;
        if pointer.fairbat != POINTER_VERSION {
            return Err(not_ours(
                &key,
                "it was written by a later version of fairbat-agent",
            ));
        }
        if pointer.last < pointer.base {
            return Err(not_ours(&key, "it ends before it begins"));
        }
        Ok(Some(pointer))
    }

    /// Writes the pointer, which makes its manifests valid.
    pub(crate) async fn write(&self, store: &dyn Store, prefix: &str) -> Result<(), StoreError> {
        let content = serde_json::to_vec(self).expect("numbers can be written down");
        let content = Bytes::from(content);
        store
            .put(&pointer_key(prefix), content, RequestContext::default())
            .await
    }

    /// The keys of the manifests, base first.
    pub(crate) fn keys(&self, prefix: &str) -> Vec<String> {
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

fn pointer_key(prefix: &str) -> String {
    own(prefix, "manifest/current.json")
}

/// Each writer has its own keys, so none replaces the manifests of another.
pub(crate) fn base_key(prefix: &str, writer: u64, sequence: u64) -> String {
    own(
        prefix,
        &format!("manifest/{writer:016x}/{sequence:010}-base.jsonl.gz"),
    )
}

pub(crate) fn delta_key(prefix: &str, writer: u64, sequence: u64) -> String {
    own(
        prefix,
        &format!("manifest/{writer:016x}/{sequence:010}-delta.jsonl.gz"),
    )
}

fn own(prefix: &str, name: &str) -> String {
    beneath(prefix, &format!("{OWN}/{name}"))
}

/// The valid manifests, base first. Each has been read to its end once.
#[derive(Debug)]
pub(crate) struct FetchedManifests {
    files: Vec<File>,
    /// Number of entries.
    pub(crate) entries: u64,
    /// Bytes of all files.
    pub(crate) bytes: u64,
}

impl FetchedManifests {
    pub(crate) async fn fetch(
        store: &dyn Store,
        prefix: &str,
        pointer: &ManifestPointer,
    ) -> Result<Self, RunProblem> {
        let mut files = Vec::new();
        for key in pointer.keys(prefix) {
            files.push(fetch(store, &key).await?);
        }
        blocking(move || {
            let mut fetched = Self {
                files,
                entries: 0,
                bytes: 0,
            };
            for item in fetched.items()? {
                fetched.entries += 1;
                if let ItemContent::File { size, .. } = item?.content {
                    fetched.bytes += size;
                }
            }
            Ok(fetched)
        })
        .await?
    }

    /// All entries, ordered by path. Blocking.
    pub(crate) fn items(
        &mut self,
    ) -> Result<impl Iterator<Item = Result<ManifestItem, RunProblem>> + use<>, RunProblem> {
        let mut readers = Vec::new();
        for file in &mut self.files {
            file.rewind().map_err(damaged)?;
            let file = file.try_clone().map_err(damaged)?;
            readers.push(ManifestReader::open(BufReader::new(file)).map_err(damaged)?);
        }
        let merged = MergedManifests::new(readers).map_err(damaged)?;
        Ok(merged.map(|item| item.map_err(damaged)))
    }
}

async fn fetch(store: &dyn Store, key: &str) -> Result<File, RunProblem> {
    let mut file = tempfile::tempfile().map_err(damaged)?;
    let mut content = store.get(key, RequestContext::default()).await?;
    while let Some(piece) = content.try_next().await? {
        file.write_all(&piece).map_err(damaged)?;
    }
    Ok(file)
}

fn damaged(error: impl std::fmt::Display) -> RunProblem {
    RunProblem::Manifest(format!("a manifest in the store cannot be used: {error}"))
}
