//! The manifests of a place, fetched and checked before anything is done with
//! them.

use std::fs::File;
use std::io::{BufReader, Seek, Write};

use fairbat::transport::RequestContext;
use futures_util::TryStreamExt;

use super::manifests::Current;
use super::push::blocking;
use super::report::RunProblem;
use crate::manifest::{ManifestItem, ManifestReader, MergedManifests};
use crate::store::{Store, StoreError};

/// The manifests that count, base first; each has been read to its end once.
#[derive(Debug)]
pub(super) struct Fetched {
    files: Vec<File>,
    /// How many entries they make.
    pub(super) entries: u64,
    /// Bytes of all files among these.
    pub(super) bytes: u64,
}

impl Fetched {
    pub(super) async fn fetch(
        store: &Store,
        prefix: &str,
        current: &Current,
    ) -> Result<Self, RunProblem> {
        let mut files = Vec::new();
        for key in current.keys(prefix) {
            files.push(fetch(store, &key).await?);
        }
        blocking(move || {
            let mut fetched = Self {
                files,
                entries: 0,
                bytes: 0,
            };
            let (mut entries, mut bytes) = (0, 0);
            for item in fetched.items()? {
                let item = item?;
                entries += 1;
                if let crate::manifest::ItemContent::File { size, .. } = item.content {
                    bytes += size;
                }
            }
            (fetched.entries, fetched.bytes) = (entries, bytes);
            Ok(fetched)
        })
        .await?
    }

    /// All entries, in the order of their paths. Blocking.
    pub(super) fn items(
        &mut self,
    ) -> Result<impl Iterator<Item = Result<ManifestItem, RunProblem>> + use<>, RunProblem> {
        let mut readers = Vec::new();
        for file in &mut self.files {
            file.rewind().map_err(|error| damaged(&error))?;
            let file = file.try_clone().map_err(|error| damaged(&error))?;
            readers
                .push(ManifestReader::open(BufReader::new(file)).map_err(|error| damaged(&error))?);
        }
        let deltas = readers.split_off(1);
        let base = readers.remove(0);
        let merged = MergedManifests::new(base, deltas).map_err(|error| damaged(&error))?;
        Ok(merged.map(|item| item.map_err(|error| damaged(&error))))
    }
}

async fn fetch(store: &Store, key: &str) -> Result<File, RunProblem> {
    let mut file = tempfile::tempfile().map_err(|error| damaged(&error))?;
    let mut content = store.get(key, None, RequestContext::default()).await?;
    while let Some(piece) = content
        .try_next()
        .await
        .map_err(|error: StoreError| error)?
    {
        file.write_all(&piece).map_err(|error| damaged(&error))?;
    }
    Ok(file)
}

fn damaged(error: &dyn std::fmt::Display) -> RunProblem {
    RunProblem::Manifest(format!("a manifest in the store cannot be used: {error}"))
}
