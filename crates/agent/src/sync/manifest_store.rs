//! The manifests in a store. A small pointer object, replaced as a whole, names the
//! base and the last delta that are valid.

use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use fairbat::blocking::blocking;
use fairbat::transport::RequestContext;
use futures_util::TryStreamExt;
use sha2::{Digest, Sha256};

use super::report::RunProblem;
use super::retry_store::RetryStore;
use crate::manifest::{
    Authenticity, Digest256, ItemContent, JobKey, MAX_POINTER, ManifestItem, ManifestPointer,
    ManifestReader, MergedManifests, PointerError,
};
use crate::object_name::{OWN, beneath};
use crate::state::ManifestRecord;
use crate::store::{Store, StoreError, StoreErrorKind};

/// Most bytes of all manifests of a place, as they are stored: about 40 million entries.
/// They are fetched to a temporary file.
pub(crate) const MAX_STORED: u64 = 4 * 1024 * 1024 * 1024;

/// Most bytes of all files of a manifest: more than any store has. Sums of several passes
/// fit a number.
const MAX_CONTENT: u64 = 1 << 60;

/// How often manifests are read that are replaced before they are read to the end.
const MAX_MANIFEST_READS: u32 = 5;

/// Why manifests are not authenticated.
pub(crate) const NO_KEY: &str = "this machine does not have the key of the job (fairbat-agent key)";

impl From<&ManifestRecord> for ManifestPointer {
    /// The pointer for what the state says, without an authenticator.
    fn from(record: &ManifestRecord) -> Self {
        Self::new(record.writer, record.base, record.last, record.is_partial)
    }
}

/// Reads the pointer. `None` if nothing was pushed yet. The inner error is about what is
/// there.
pub(crate) async fn read_pointer(
    store: &dyn Store,
    prefix: &str,
) -> Result<Option<Result<ManifestPointer, PointerError>>, StoreError> {
    let mut content = match store
        .get(&pointer_key(prefix), RequestContext::default())
        .await
    {
        Ok(content) => content,
        Err(error) if error.kind == StoreErrorKind::Missing => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = Vec::new();
    while text.len() <= MAX_POINTER
        && let Some(piece) = content.try_next().await?
    {
        text.extend_from_slice(&piece);
    }
    Ok(Some(ManifestPointer::parse(&text)))
}

/// The problem of a pointer that cannot be used.
pub(crate) fn unusable(prefix: &str, error: &PointerError) -> RunProblem {
    let key = pointer_key(prefix);
    RunProblem::Manifest(format!("{key} in the store cannot be used: {error}"))
}

/// Writes the pointer, which makes its manifests valid.
pub(crate) async fn write_pointer(
    pointer: &ManifestPointer,
    store: &dyn Store,
    prefix: &str,
) -> Result<(), StoreError> {
    let content = Bytes::from(pointer.to_json());
    store
        .put(&pointer_key(prefix), content, RequestContext::default())
        .await
}

/// The keys of the manifests, base first.
pub(crate) fn keys(pointer: &ManifestPointer, prefix: &str) -> Vec<String> {
    let deltas = pointer.base + 1..=pointer.last;
    let deltas = deltas.map(|sequence| delta_key(prefix, pointer.writer, sequence));
    std::iter::once(base_key(prefix, pointer.writer, pointer.base))
        .chain(deltas)
        .collect()
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

/// Reads the key of a job from its file. `None` if the job does not authenticate, or has
/// no key on this machine.
pub(crate) async fn read_key(file: Option<&Path>) -> Result<Option<JobKey>, RunProblem> {
    let Some(file) = file.map(Path::to_owned) else {
        return Ok(None);
    };
    let read = blocking(move || JobKey::read(&file).map_err(|error| key_failed(&file, &error)));
    read.await?
}

pub(crate) fn key_failed(file: &Path, error: &io::Error) -> RunProblem {
    let what = format!("the key {}: {error}", file.display());
    match error.kind() {
        io::ErrorKind::InvalidData => RunProblem::DamagedKey(what),
        _ => RunProblem::State(what),
    }
}

/// The valid manifests, and the pointer to them.
pub(crate) type ValidManifests = (ManifestPointer, FetchedManifests);

/// Reads the valid manifests. A new base replaces the old manifests and deletes them,
/// perhaps while they are being read; then they are read again.
pub(crate) async fn valid_manifests(
    store: &RetryStore,
    prefix: &str,
    key: Option<&JobKey>,
) -> Result<ValidManifests, RunProblem> {
    let mut retries = store.retries();
    let mut reads = 1;
    loop {
        let admission = store.admit(0).await;
        match read(store, prefix, key).await {
            Err(RunProblem::Store(error))
                if error.kind == StoreErrorKind::Missing && reads < MAX_MANIFEST_READS =>
            {
                // Another base answered: what failed before was for the last one.
                retries = store.retries();
                reads += 1;
            }
            Err(problem) => {
                admission.failed(&problem);
                retries.after(problem).await?;
            }
            Ok(manifests) => return Ok(manifests),
        }
    }
}

async fn read(
    store: &RetryStore,
    prefix: &str,
    key: Option<&JobKey>,
) -> Result<ValidManifests, RunProblem> {
    let pointer = read_pointer(&**store, prefix).await?;
    let pointer = pointer.ok_or(RunProblem::NothingPushed)?;
    let pointer = pointer.map_err(|error| unusable(prefix, &error))?;
    let fetched = FetchedManifests::fetch(&**store, prefix, &pointer, key).await?;
    Ok((pointer, fetched))
}

/// The valid manifests, base first. Each has been read to its end once.
#[derive(Debug)]
pub(crate) struct FetchedManifests {
    /// All of them, one after the other.
    file: Arc<File>,
    ranges: Vec<Range<u64>>,
    /// Number of entries.
    pub(crate) entries: u64,
    /// Bytes of all files.
    pub(crate) bytes: u64,
}

impl FetchedManifests {
    /// Fetches the manifests that a pointer names. With a key they have to be genuine.
    pub(crate) async fn fetch(
        store: &dyn Store,
        prefix: &str,
        pointer: &ManifestPointer,
        key: Option<&JobKey>,
    ) -> Result<Self, RunProblem> {
        match key.map(|key| pointer.authenticity(key)) {
            None | Some(Authenticity::Genuine) => {}
            Some(Authenticity::Missing) => {
                return Err(RunProblem::NotGenuine("have no authenticator"));
            }
            Some(Authenticity::Wrong) => {
                return Err(RunProblem::NotGenuine("have a wrong authenticator"));
            }
        }
        let file = tempfile::tempfile().map_err(not_kept)?;
        let (mut ranges, mut end, mut digest) = (Vec::new(), 0, None);
        for key in keys(pointer, prefix) {
            let start = end;
            let mut hash = Sha256::new();
            let mut content = store.get(&key, RequestContext::default()).await?;
            while let Some(piece) = content.try_next().await? {
                end += piece.len() as u64;
                if end > MAX_STORED {
                    let what = format!("they have more than {} GiB", MAX_STORED >> 30);
                    return Err(damaged(what));
                }
                hash.update(&piece);
                (&file).write_all(&piece).map_err(not_kept)?;
            }
            digest = Some(Digest256::and_then(digest, hash.finalize().into()));
            ranges.push(start..end);
        }
        if key.is_some() && pointer.manifests != digest {
            return Err(RunProblem::NotGenuine(
                "are not those that were authenticated",
            ));
        }
        let mut fetched = Self {
            file: Arc::new(file),
            ranges,
            entries: 0,
            bytes: 0,
        };
        blocking(move || {
            for item in fetched.items()? {
                fetched.entries += 1;
                if let ItemContent::File { size, .. } = item?.content {
                    let sum = fetched.bytes.checked_add(size);
                    let sum = sum.filter(|bytes| *bytes <= MAX_CONTENT);
                    fetched.bytes = sum.ok_or_else(|| damaged("its files have too many bytes"))?;
                }
            }
            Ok(fetched)
        })
        .await?
    }

    /// All entries, ordered by path. Blocking.
    pub(crate) fn items(
        &self,
    ) -> Result<impl Iterator<Item = Result<ManifestItem, RunProblem>> + use<>, RunProblem> {
        let readers = self.ranges.iter().map(|range| {
            let section = FileSection {
                file: Arc::clone(&self.file),
                left: range.clone(),
            };
            ManifestReader::open(section).map_err(damaged)
        });
        let merged = MergedManifests::new(readers.collect::<Result<_, _>>()?).map_err(damaged)?;
        Ok(merged.map(|item| item.map_err(damaged)))
    }
}

/// A part of a file that others read as well.
#[derive(Debug)]
struct FileSection {
    file: Arc<File>,
    /// The bytes that were not read yet.
    left: Range<u64>,
}

impl Read for FileSection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.left.end - self.left.start).unwrap_or(usize::MAX);
        let length = buffer.len().min(left);
        let read = self.file.read_at(&mut buffer[..length], self.left.start)?;
        self.left.start += read as u64;
        Ok(read)
    }
}

fn damaged(error: impl std::fmt::Display) -> RunProblem {
    RunProblem::Manifest(format!("a manifest in the store cannot be used: {error}"))
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn not_kept(error: io::Error) -> RunProblem {
    RunProblem::Disk(format!("temporary files: {error}"))
}
