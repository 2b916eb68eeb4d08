//! Where a transfer may come from: the URL that the user named, and mirrors of it.
//!
//! ETags and lengths prove nothing between servers. So without a hash one source is asked at a time,
//! and when it is given up the next one begins with the first byte. Under a hash, bytes of several
//! sources are joined (`joining`). No I/O.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use url::Url;

use super::inquiry::{ExpectedFile, Inquiry, hash_of};
use super::ways::Tries;
use crate::error::ErrorKind;
use crate::event::Protocol;
use crate::file_name::{FileName, name_for};
use crate::http::is_downgrade;
use crate::http::priority::DeadlineHint;
use crate::metalink::MetalinkFile;
use crate::ranges::RangeSet;
use crate::settings::{Checksum, RetrySettings, Target, TransferRequest};
use crate::transport::{RemoteFile, SourceUrl};

/// Sources of one transfer. Later ones are not asked.
const MAX_SOURCES: usize = 32;

/// Under a hash, a source with another version of the file is asked before one that has failed more
/// often than this in a row.
pub(crate) const SUSPECT: u32 = 2;

/// A source that has failed is left for one that may be asked so much sooner. A failure that passes
/// at once is no reason for a change.
const MIN_GAIN: Duration = Duration::from_millis(500);

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
    /// What the last answer came over.
    pub(crate) protocol: Option<Protocol>,
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
    /// Its failures in a row, if there are any.
    pub(crate) failed: Option<Tries>,
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
    /// It has another version of the file than the others, or cannot do what they may. It is asked
    /// when these fail.
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
            protocol: None,
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

    /// Whether another one than this, which has just failed, may be asked so much sooner that it is
    /// worth a change.
    pub(crate) fn has_better(&self, than: usize) -> bool {
        let own = &self.list[than];
        let mut others = self.iter().filter(|(other, _)| *other != than);
        others.any(|(_, other)| match other.state {
            SourceState::Ready(_) => true,
            SourceState::Untried | SourceState::Asked => {
                other.not_before() + MIN_GAIN < own.not_before()
            }
            SourceState::SetAside => self.is_suspect(own),
            SourceState::GivenUp => false,
        })
    }

    /// Whether a source has failed so often that one with another version comes before it. Only a
    /// hash says which version is the right one.
    fn is_suspect(&self, source: &Source) -> bool {
        self.hash.is_some() && source.failures() > SUSPECT
    }

    /// The others than the present one that may continue what came from them.
    fn awaited(&self) -> impl Iterator<Item = &Url> {
        let others = self.iter().filter(|(other, _)| *other != self.present);
        let awaited = others.filter(|(_, it)| match it.state {
            SourceState::SetAside | SourceState::GivenUp => false,
            _ => !self.is_suspect(it),
        });
        awaited.map(|(_, it)| &it.at.url)
    }

    /// Whether another one than this may be asked now that has failed less often than `failures`
    /// times in a row. A source that has another version of the file counts if `also_set_aside`.
    pub(crate) fn has_fresher(
        &self,
        than: usize,
        failures: u32,
        now: Duration,
        also_set_aside: bool,
    ) -> bool {
        let mut others = self.iter().filter(|(other, _)| *other != than);
        others.any(|(_, other)| match other.state {
            SourceState::SetAside => also_set_aside,
            SourceState::GivenUp => false,
            _ => other.failures() < failures && other.not_before() <= now,
        })
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

    /// From when on another source may be asked for the same file, if there is one.
    pub(crate) fn next_not_before(&self) -> Option<Duration> {
        let next = self.next_to_ask().filter(|_| self.hash.is_some())?;
        Some(self.list[next].not_before())
    }

    /// The present source does not answer: another one comes first.
    pub(crate) fn ask_next(&mut self) {
        self.present = self.next_to_ask().unwrap_or(self.present);
    }

    /// The source to ask after the present one.
    fn next_to_ask(&self) -> Option<usize> {
        let count = self.list.len();
        let others = (1..count).map(|step| (self.present + step) % count);
        let others = others.filter(|&it| matches!(self.list[it].state, SourceState::Untried));
        others.min_by_key(|&other| self.list[other].not_before())
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

    /// Whether others have not failed yet, and may send what the user knows the hash of.
    pub(crate) fn may_join_without_present(&self) -> bool {
        let is_fresh = |(index, it): (usize, &Source)| {
            let is_untried = matches!(it.state, SourceState::Untried);
            index != self.present && is_untried && it.failed.is_none()
        };
        self.hash.is_some() && self.iter().any(is_fresh)
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
            awaited: self.awaited().cloned().collect(),
            hash: self.hash(),
            length: 1,
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
    /// one does: one that sends it already, else the one that may be asked soonest. One that has
    /// another version comes after it, unless that is suspect.
    pub(crate) fn leave(&mut self, index: usize, state: SourceState) {
        self.list[index].state = state;
        if index != self.present {
            return;
        }
        let rank = |other: usize, source: &Source| match source.state {
            SourceState::Ready(_) => Some((0, Duration::ZERO, other)),
            SourceState::Untried | SourceState::Asked if !self.is_suspect(source) => {
                Some((1, source.not_before(), other))
            }
            SourceState::SetAside => Some((2, source.not_before(), other)),
            SourceState::Untried | SourceState::Asked => Some((3, source.not_before(), other)),
            SourceState::GivenUp => None,
        };
        let others = self.iter().filter(|(other, _)| *other != index);
        let ranked = others.filter_map(|(other, source)| rank(other, source));
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
    /// What a way to it begins with.
    pub(crate) fn tries(&self, retry: RetrySettings) -> Tries {
        self.failed.clone().unwrap_or_else(|| Tries::new(retry))
    }

    /// Its failures in a row.
    pub(crate) fn failures(&self) -> u32 {
        let failed = self.failed.as_ref();
        failed.map_or(0, |failed| failed.backoff.failures())
    }

    /// It is not asked before this.
    fn not_before(&self) -> Duration {
        let failed = self.failed.as_ref();
        failed.map_or(Duration::ZERO, |failed| failed.not_before)
    }
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
