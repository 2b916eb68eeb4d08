//! Where a transfer may come from: the URL that the user named, and mirrors of it.
//!
//! ETags and lengths prove nothing between servers. So without a hash one source is asked at a time,
//! and when it is given up the next one begins with the first byte. Under a hash, bytes of several
//! sources are joined (`joining`). No I/O.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use url::Url;

use super::part::Incoming;
use super::part::name::{FileName, name_for};
use super::ways::Failed;
use crate::checksum::sha256_hex;
use crate::error::{ErrorKind, TransferError};
use crate::http::priority::DeadlineHint;
use crate::http::{is_downgrade, without_credentials};
use crate::metalink::MetalinkFile;
use crate::ranges::RangeSet;
use crate::settings::{Checksum, KnownFile, PieceHashes, Target, TransferRequest};
use crate::transport::{RemoteFile, SourceUrl};

/// Sources of one transfer. Later ones are not asked.
const MAX_SOURCES: usize = 32;

/// A source with another version of the file counts as one that has failed so often in a row.
const SUSPECT: u32 = 2;

/// The sources of a transfer, and which of them is asked.
#[derive(Debug)]
pub(crate) struct Sources {
    /// The first is the URL of the transfer.
    list: Vec<Source>,
    /// The one that says what the file is.
    present: usize,
    /// What the file is called, as far as it is known.
    name: Option<FileName>,
    /// The hash that the user knows, as [`hash_of`] calls it.
    hash: Option<String>,
    /// The digest of the file that a server has told, where the user knows no hash, and which
    /// source that was. All others are held to it.
    told: Option<(usize, Checksum)>,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) at: SourceUrl,
    pub(crate) state: SourceState,
    /// What it has sent of the part file.
    pub(crate) sent: RangeSet,
    /// How often another source had to take over what it was to send.
    pub(crate) taken_over: u32,
    /// Its failures in a row, if others were asked because of them.
    pub(crate) failed: Option<Failed>,
}

/// How far a source is.
#[derive(Debug, Clone)]
pub(crate) enum SourceState {
    /// Not asked yet.
    Untried,
    /// Being asked, beside others.
    Asked,
    /// It has the file.
    Ready(Arc<RemoteFile>),
    /// It has another version of the file than the others. It is asked when these fail.
    SetAside,
    /// It is not asked again.
    GivenUp,
}

impl Sources {
    pub(crate) fn of(request: &TransferRequest) -> Self {
        let mut sources = Self {
            list: Vec::new(),
            present: 0,
            name: request.known.name.as_ref().map(|name| {
                // A safe name stays as it is.
                name_for(Some(name), &request.url)
            }),
            hash: hash_of(request.checksum.as_ref(), request.known.pieces.as_ref()),
            told: None,
        };
        let url = request.url.clone();
        sources.add(match request.known.is_found {
            true => SourceUrl { url, named: None },
            false => SourceUrl::named(url),
        });
        for mirror in &request.mirrors {
            let url = mirror.url.clone();
            sources.add(match mirror.is_named {
                true => SourceUrl::named(url),
                false => SourceUrl { url, named: None },
            });
        }
        sources
    }

    fn add(&mut self, at: SourceUrl) {
        if self.list.len() < MAX_SOURCES && self.list.iter().all(|it| it.at.url != at.url) {
            self.list.push(Source {
                at,
                state: SourceState::Untried,
                sent: RangeSet::new(),
                taken_over: 0,
                failed: None,
            });
        }
    }

    /// The present source names others. They count for less than those of the user.
    pub(crate) fn add_found(&mut self, urls: &[Url]) {
        for url in urls {
            if !is_downgrade(&self.present().url, url) {
                let (url, named) = (url.clone(), self.present().named.clone());
                self.add(SourceUrl { url, named });
            }
        }
    }

    /// The one that says what the file is.
    pub(crate) fn present(&self) -> &SourceUrl {
        &self.list[self.present].at
    }

    pub(crate) fn present_index(&self) -> usize {
        self.present
    }

    pub(crate) fn get(&self, index: usize) -> &Source {
        &self.list[index]
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> &mut Source {
        &mut self.list[index]
    }

    /// All of them, with their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &Source)> {
        self.list.iter().enumerate()
    }

    /// The file as this source has it.
    pub(crate) fn remote(&self, index: usize) -> Option<&Arc<RemoteFile>> {
        match &self.list[index].state {
            SourceState::Ready(remote) => Some(remote),
            _ => None,
        }
    }

    /// Those that have the file.
    pub(crate) fn ready(&self) -> impl Iterator<Item = usize> {
        let ready = |(index, source): (usize, &Source)| {
            matches!(source.state, SourceState::Ready(_)).then_some(index)
        };
        self.iter().filter_map(ready)
    }

    /// Those that may send the same file.
    pub(crate) fn left(&self) -> usize {
        let is_left = |(_, it): &(usize, &Source)| {
            !matches!(it.state, SourceState::SetAside | SourceState::GivenUp)
        };
        self.iter().filter(is_left).count()
    }

    /// Whether there is another one than this, which may have the file.
    pub(crate) fn has_other(&self, than: usize) -> bool {
        let mut sources = self.iter();
        sources.any(|(index, it)| index != than && !matches!(it.state, SourceState::GivenUp))
    }

    /// Whether there is another one than this that has failed less often than `failures` times in
    /// a row.
    pub(crate) fn has_better(&self, than: usize, failures: u32) -> bool {
        let mut sources = self.iter();
        let is_better = |it: &Source| it.failures().is_some_and(|other| other < failures);
        sources.any(|(index, it)| index != than && is_better(it))
    }

    /// Whether another one than this sends the file.
    pub(crate) fn has_other_ready(&self, than: usize) -> bool {
        self.ready().any(|index| index != than)
    }

    /// What the hash is called under which bytes of several sources may be joined: the user's, or
    /// else the one that a server has told.
    fn hash(&self) -> Option<String> {
        let told = || self.told().map(Checksum::to_string);
        self.hash.clone().or_else(told)
    }

    /// The digest that a server has told, where the user knows no hash.
    pub(crate) fn told(&self) -> Option<&Checksum> {
        self.told.as_ref().map(|(_, digest)| digest)
    }

    /// Whether the hash is that of the user, and so what most servers say counts for something.
    pub(crate) fn is_hash_of_user(&self) -> bool {
        self.hash.is_some()
    }

    /// Whether another source may be asked for the same file at once.
    pub(crate) fn may_ask_next(&self, now: Duration) -> bool {
        self.hash.is_some() && self.next_to_ask(now).is_some()
    }

    /// The present source does not answer: another one comes first.
    pub(crate) fn ask_next(&mut self, now: Duration) {
        self.present = self.next_to_ask(now).unwrap_or(self.present);
    }

    /// The source to ask after the present one.
    fn next_to_ask(&self, now: Duration) -> Option<usize> {
        let count = self.list.len();
        let others = (1..count).map(|step| (self.present + step) % count);
        let may_ask = |source: &Source| {
            let failed = source.failed.as_ref();
            let may_be_tried = failed.is_none_or(|failed| failed.not_before <= now);
            matches!(source.state, SourceState::Untried) && may_be_tried
        };
        let others = others.filter(|&other| may_ask(&self.list[other]));
        others.min_by_key(|&other| self.list[other].failures())
    }

    /// Whether bytes of several sources may be joined.
    pub(crate) fn may_join(&self) -> bool {
        self.left() > 1 && self.hash().is_some()
    }

    /// The present source has been found to have the file. It has this name from now on.
    pub(crate) fn found_file(&mut self, name: FileName, remote: &Arc<RemoteFile>) {
        self.name = Some(name);
        self.list[self.present].state = SourceState::Ready(Arc::clone(remote));
        let may_tell = self.told.as_ref().is_none_or(|(by, _)| *by == self.present);
        if self.hash.is_none() && may_tell {
            self.told = remote.digest.clone().map(|digest| (self.present, digest));
        }
        // Without a digest they say nothing of this file (RFC 6249, section 6).
        if self.hash().is_some() {
            self.add_found(&remote.links.duplicates);
        }
    }

    /// A Metalink describes the file.
    pub(crate) fn describe(&mut self, file: &MetalinkFile) {
        self.hash = hash_of(file.checksum.as_ref(), file.pieces.as_ref());
        self.add_found(&file.urls);
    }

    /// What the next probe is to find out.
    pub(crate) fn inquiry(
        &self,
        expected: ExpectedFile,
        target: Target,
        as_stream: bool,
        hint: Option<DeadlineHint>,
    ) -> Inquiry {
        let name = match &self.name {
            Some(name) => Some(name.clone()),
            // A mirror may call the file anything.
            None if self.present > 0 => Some(name_for(None, &self.list[0].at.url)),
            None => None,
        };
        Inquiry {
            at: self.present().clone(),
            expected,
            sources: self.list.iter().map(|it| it.at.url.clone()).collect(),
            hash: self.hash(),
            patience: None,
            name,
            target,
            as_stream,
            hint,
        }
    }

    /// The file is there already, so no other source is asked.
    pub(crate) fn keep_present(&mut self) {
        for (index, source) in self.list.iter_mut().enumerate() {
            if index != self.present {
                source.state = SourceState::GivenUp;
            }
        }
    }

    /// This source is not used from now on. If it was the one that says what the file is, another
    /// one does: one that sends it already, else the one that has failed least.
    pub(crate) fn leave(&mut self, index: usize, state: SourceState) {
        self.list[index].state = state;
        if index != self.present {
            return;
        }
        let others = self.iter().filter(|(other, _)| *other != index);
        let ranked = others.filter_map(|(other, source)| {
            let is_ready = matches!(source.state, SourceState::Ready(_));
            Some((!is_ready, source.failures()?, other))
        });
        if let Some((.., next)) = ranked.min() {
            self.present = next;
        }
    }

    /// Leaves the present source in this state, because of an error of this kind. Returns whether
    /// there is another one, which may do better.
    pub(crate) fn give_up(&mut self, kind: ErrorKind, state: SourceState) -> bool {
        let has_next = is_of_source(kind) && self.has_other(self.present);
        if has_next {
            self.leave(self.present, state);
        }
        has_next
    }

    /// These bytes are to be fetched again.
    pub(crate) fn forget(&mut self, range: &Range<u64>) {
        for source in &mut self.list {
            source.sent.remove(range.clone());
        }
    }

    /// The part file is thrown away, or closed: nothing in it is known to be of anybody.
    pub(crate) fn forget_sent(&mut self) {
        for source in &mut self.list {
            source.sent = RangeSet::new();
            if matches!(source.state, SourceState::Asked | SourceState::Ready(_)) {
                source.state = SourceState::Untried;
            }
        }
    }
}

impl Source {
    /// How often it counts as failed when one is chosen; `None` if it is not asked again. One that
    /// most others contradict comes after two failures of one that they do not.
    fn failures(&self) -> Option<u32> {
        match self.state {
            SourceState::GivenUp => None,
            SourceState::SetAside => Some(SUSPECT),
            SourceState::Untried | SourceState::Asked | SourceState::Ready(_) => {
                let failed = self.failed.as_ref();
                Some(failed.map_or(0, |failed| failed.backoff.failures()))
            }
        }
    }
}

/// What the hash is called that says what the file is, if there is one: of the whole file, or of all
/// its pieces.
fn hash_of(whole: Option<&Checksum>, pieces: Option<&PieceHashes>) -> Option<String> {
    let of_pieces = || {
        let pieces = pieces.filter(|it| it.is_strong())?;
        let all: String = pieces.hashes.iter().map(Checksum::hex).collect();
        Some(format!("pieces={}", sha256_hex(all.as_bytes())))
    };
    whole.map(Checksum::to_string).or_else(of_pieces)
}

/// Whether another source may do better after an error of this kind.
pub(crate) fn is_of_source(kind: ErrorKind) -> bool {
    match kind {
        ErrorKind::Refused
        | ErrorKind::Network
        | ErrorKind::Server
        | ErrorKind::Integrity
        | ErrorKind::TooLarge => true,
        ErrorKind::Disk | ErrorKind::MaxTime | ErrorKind::Interrupted | ErrorKind::Other => false,
    }
}

/// What is known of a file before a server is asked.
#[derive(Debug, Clone)]
pub(crate) struct ExpectedFile {
    pub(crate) checksum: Option<Checksum>,
    pub(crate) known: KnownFile,
}

impl ExpectedFile {
    /// Why a server cannot have the file, by what it says.
    pub(crate) fn objection(&self, remote: &RemoteFile) -> Option<TransferError> {
        let wrong = |what: String| {
            let hint = "look for another server: this one has another version of the file";
            Some(TransferError::new(ErrorKind::Integrity, what).with_hint(hint))
        };
        let total = remote.total;
        if let (Some(total), Some(size)) = (total, self.known.size)
            && total != size
        {
            return wrong(format!(
                "the server's file has {total} bytes instead of {size}"
            ));
        }
        if let (Some(total), Some(pieces)) = (total, &self.known.pieces)
            && !pieces.fits(total)
        {
            let pieces = pieces.hashes.len();
            return wrong(format!(
                "the server's file of {total} bytes has not {pieces} pieces"
            ));
        }
        if let (Some(sent), Some(asked)) = (&remote.digest, &self.checksum)
            && sent.algorithm() == asked.algorithm()
            && sent != asked
        {
            return wrong(format!(
                "the digest of the server's file is {sent} instead of {asked}"
            ));
        }
        None
    }
}

/// What a probe asks for.
#[derive(Debug)]
pub(crate) struct Inquiry {
    pub(crate) at: SourceUrl,
    pub(crate) expected: ExpectedFile,
    /// All sources of the file, this one among them.
    pub(crate) sources: Vec<Url>,
    /// What the hash of the file is called, if it is known.
    pub(crate) hash: Option<String>,
    /// How long to wait for an answer, if others may answer sooner.
    pub(crate) patience: Option<Duration>,
    /// The name of the file, if this source is not to give it.
    pub(crate) name: Option<FileName>,
    pub(crate) target: Target,
    /// Whether the file is fetched in one request, whatever the server says of ranges.
    pub(crate) as_stream: bool,
    /// The deadline, for a server that answers with the whole file.
    pub(crate) hint: Option<DeadlineHint>,
}

impl Inquiry {
    /// Whether nothing says what the file is.
    pub(crate) fn is_without_hash(&self) -> bool {
        self.hash.is_none() && self.expected.known.pieces.is_none()
    }

    /// The file of a Metalink that describes what a server has, if there is one.
    pub(crate) fn described(files: Vec<MetalinkFile>, remote: &RemoteFile) -> Option<MetalinkFile> {
        let is_alone = files.len() == 1;
        let last = |path: &str| path.rsplit('/').next().map(str::to_owned);
        let name = last(remote.asked.url.path());
        let mut files = files.into_iter().filter(|file| {
            let expected = ExpectedFile {
                checksum: file.checksum.clone(),
                known: KnownFile {
                    name: None,
                    is_found: true,
                    size: file.size,
                    pieces: file.pieces.clone(),
                },
            };
            let has_hash = hash_of(file.checksum.as_ref(), file.pieces.as_ref()).is_some();
            let is_it = is_alone || last(&file.name) == name;
            has_hash && is_it && expected.objection(remote).is_none()
        });
        files.next()
    }

    /// A Metalink describes the file.
    pub(crate) fn describe(&mut self, file: &MetalinkFile) {
        self.hash = hash_of(file.checksum.as_ref(), file.pieces.as_ref());
        self.sources.extend(file.urls.iter().cloned());
    }

    /// What the source says of the file that matters for the disk.
    pub(crate) fn incoming(&self, source: &RemoteFile) -> Incoming {
        let mut shown = without_credentials(&source.asked.url);
        shown.set_query(None);
        let resource = |url: &Url| sha256_hex(without_credentials(url).as_str().as_bytes());
        let own_name = || name_for(source.suggested_name.as_deref(), &source.url);
        Incoming {
            url: shown.into(),
            resource: resource(&source.asked.url),
            others: self
                .sources
                .iter()
                .chain(&source.links.duplicates)
                .map(resource)
                .collect(),
            hash: self
                .hash
                .clone()
                .or_else(|| Some(source.digest.as_ref()?.to_string())),
            total: source.total,
            validator: source.validator.clone(),
            version: source.version.clone(),
            name: self.name.clone().unwrap_or_else(own_name),
            start_over: self.as_stream,
        }
    }
}
