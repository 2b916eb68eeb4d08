//! The state of one transfer, as the event loop keeps it. No I/O.

use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dalbe::deadline::Deadline;
use tokio::sync::watch;
use url::Url;

use super::finishing::Senders;
use super::inquiry::{ExpectedFile, Inquiry};
use super::joint::Joint;
use super::part::file::PartFile;
use super::pieces::{Lease, Pieces};
use super::setup::Outcome;
use super::sources::Sources;
use super::ways::{Tries, Way, WayId};
use super::worker::{StopSignal, TransferId, UnreadAnswer};
use crate::error::{ErrorKind, TransferError};
use crate::http::priority::DeadlineHint;
use crate::http::without_credentials;
use crate::lane::{EvenPace, Lane, Member, Rank, Service};
use crate::metalink::MetalinkFile;
use crate::settings::{RetrySettings, TransferRequest};
use crate::transport::RemoteFile;

/// So long the first one of several sources may take to answer, before the next one is asked. It is
/// doubled once all have been asked.
const PROBE_PATIENCE: Duration = Duration::from_millis(400);

/// How often bytes of a finished file that is wrong are fetched again.
const MAX_MENDINGS: u32 = 3;

/// Of fewer sources nobody can tell which is wrong.
const MIN_COMPARED: usize = 3;

/// A transfer and how far it is.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) id: TransferId,
    pub(crate) request: TransferRequest,
    /// The URL as events show it.
    pub(crate) url: String,
    pub(crate) sources: Sources,
    /// Its sources over the paths of the run. Those of the present source are always there.
    ways: Vec<Way>,
    /// Soft deadline, on the run's clock.
    pub(crate) deadline: Option<Deadline>,
    /// The even pace towards it, once the size is known.
    pub(crate) even_pace: Option<EvenPace>,
    pub(crate) stage: Stage,
    /// Bytes on disk.
    pub(crate) done: u64,
    /// Size, if known.
    pub(crate) total: Option<u64>,
    /// When its first probe started.
    pub(crate) started: Option<Duration>,
    /// Probes that found another file than the probe before, without progress in between.
    pub(crate) reprobes: u32,
    /// How often a server that claims to serve ranges sent the whole file, without progress
    /// in between.
    pub(crate) range_refusals: u32,
    /// Sources in a row that did not answer soon, while others may.
    pub(crate) slow_probes: u32,
    /// Whether it has been said when it will be there.
    pub(crate) is_predicted: bool,
    /// Parts that had to be thrown away.
    pub(crate) discards: u32,
    /// Tasks that work for it and may hold its part file.
    pub(crate) tasks: u32,
    /// Tells those tasks to stop.
    stop: watch::Sender<bool>,
}

/// Where a transfer stands.
#[derive(Debug)]
pub(crate) enum Stage {
    /// To be probed.
    Waiting,
    /// Being probed, over one path or several. The first answer counts.
    Probing {
        /// Set by the first one that has an answer.
        won: Arc<AtomicBool>,
        /// Paths over which it is being asked.
        running: Vec<usize>,
    },
    /// Bytes are moving, or waiting for a connection.
    Moving(Box<Moving>),
    /// Its tasks are ending.
    Closing {
        /// The part file, until its last checkpoint is taken.
        part: Option<Arc<PartFile>>,
        /// Whether that is thrown away: nobody wants the beginning of a file that may not be whole.
        discards: bool,
        /// What comes after that.
        then: Then,
    },
    /// All bytes are there; the file is being verified and put in place. What it needs to go on
    /// if some of them are wrong.
    Finishing(Option<Box<Moving>>),
    /// Done or given up.
    Ended(Outcome),
}

/// What comes after the tasks have ended.
#[derive(Debug)]
pub(crate) enum Then {
    /// Another probe.
    Probe,
    /// Giving up.
    Fail(TransferError),
}

/// A transfer whose part file is open.
#[derive(Debug)]
pub(crate) struct Moving {
    pub(crate) source: Arc<RemoteFile>,
    pub(crate) part: Arc<PartFile>,
    /// What is left to fetch.
    pub(crate) pieces: Pieces,
    /// The answer that carries a whole stream, or the first bytes, until a worker takes it.
    pub(crate) answer: Option<(WayId, UnreadAnswer)>,
    /// Whether a checkpoint is being taken.
    pub(crate) in_checkpoint: bool,
    /// When the last one was started.
    pub(crate) last_checkpoint: Duration,
    /// What bytes of several sources are joined under.
    pub(crate) joint: Joint,
}

impl Moving {
    /// Leases the next piece for a source, of about this length.
    pub(crate) fn lease(&mut self, source: usize, length: NonZeroU64) -> Option<Lease> {
        let first = self.answer.as_ref();
        let first = first.filter(|_| self.source.version.is_some());
        if let Some(length) = first.and_then(|(_, answer)| answer.body.expected) {
            return self.pieces.lease_at(0..length);
        }
        // Where only the whole file has a hash, the bytes to compare others with come first.
        let sample = self.joint.sample.as_ref().filter(|it| it.sha256.is_none());
        let sample = sample.map(|it| it.range.clone());
        if let Some(lease) = sample.and_then(|range| self.pieces.lease_at(range)) {
            return Some(lease);
        }
        let Some(start) = self
            .pieces
            .next_offset()
            .filter(|_| self.source.version.is_some())
        else {
            return self.pieces.lease(length);
        };
        let end = self.joint.end_of_chunk(source, start, length.get());
        self.pieces.lease(NonZeroU64::new(end - start)?)
    }
}

/// A URL as events show it.
pub(crate) fn shown(url: &Url) -> String {
    without_credentials(url).into()
}

/// Host and port of a URL.
pub(crate) fn host_of(url: &Url) -> String {
    let port = url.port_or_known_default().unwrap_or_default();
    format!("{}:{port}", url.host_str().unwrap_or_default())
}

impl Transfer {
    /// A transfer that has a place in the lane of each path.
    pub(crate) fn new(
        id: TransferId,
        request: TransferRequest,
        members: Vec<Member>,
        retry: RetrySettings,
    ) -> Self {
        let tries = Tries::new(retry);
        let way = |(path, member)| Way::new(WayId { source: 0, path }, member, tries.clone());
        Self {
            id,
            url: shown(&request.url),
            sources: Sources::of(&request),
            request,
            ways: members.into_iter().enumerate().map(way).collect(),
            deadline: None,
            even_pace: None,
            stage: Stage::Waiting,
            done: 0,
            total: None,
            started: None,
            reprobes: 0,
            range_refusals: 0,
            slow_probes: 0,
            is_predicted: false,
            discards: 0,
            tasks: 0,
            stop: watch::Sender::new(false),
        }
    }

    /// All ways that there are at present.
    pub(crate) fn ways(&self) -> &[Way] {
        &self.ways
    }

    pub(crate) fn way(&self, id: WayId) -> Option<&Way> {
        self.ways.iter().find(|way| way.id == id)
    }

    pub(crate) fn way_mut(&mut self, id: WayId) -> Option<&mut Way> {
        self.ways.iter_mut().find(|way| way.id == id)
    }

    /// Which sources have sent some of these bytes.
    pub(crate) fn senders_of(&self, range: &Range<u64>) -> Vec<usize> {
        let senders = self.sources.iter();
        let senders = senders.filter(|(_, source)| {
            source
                .sent
                .iter()
                .any(|it| it.start < range.end && it.end > range.start)
        });
        senders.map(|(index, _)| index).collect()
    }

    /// From whom its bytes are. Without several sources, what is wrong stays so.
    pub(crate) fn senders(&self, moving: &Moving) -> Senders {
        let sources = self.sources.iter();
        let senders = sources.filter(|(_, it)| !it.sent.is_empty());
        Senders {
            present: self.sources.present_index(),
            sent: senders
                .map(|(index, it)| (index, it.sent.clone()))
                .collect(),
            doubts: moving.joint.doubts.clone(),
            may_mend: moving.joint.joins() && moving.joint.mendings < MAX_MENDINGS,
            // Else most servers would count for more than the one whose digest it is.
            may_compare: moving.joint.joins()
                && self.sources.is_hash_of_user()
                && moving.joint.mendings == 0
                && self.sources.ready().count() >= MIN_COMPARED,
        }
    }

    /// A Metalink of the server describes the file.
    pub(crate) fn describe(&mut self, file: MetalinkFile) {
        self.sources.describe(&file);
        self.request.checksum = file.checksum;
        self.request.known.size = file.size;
        self.request.known.pieces = file.pieces;
    }

    /// What every source must say of the file.
    pub(crate) fn expected(&self) -> ExpectedFile {
        ExpectedFile {
            checksum: self
                .request
                .checksum
                .clone()
                .or_else(|| self.sources.told().cloned()),
            known: self.request.known.clone(),
        }
    }

    /// The ways of the source that says what the file is, one for each path.
    pub(crate) fn main_ways(&self) -> impl Iterator<Item = &Way> {
        let present = self.sources.present_index();
        self.ways.iter().filter(move |way| way.id.source == present)
    }

    /// That of them over this path.
    pub(crate) fn main_way(&self, path: usize) -> WayId {
        WayId {
            source: self.sources.present_index(),
            path,
        }
    }

    /// Another source is asked, over all paths.
    pub(crate) fn add_ways(&mut self, source: usize, members: Vec<Member>, retry: RetrySettings) {
        let tries = self.sources.get(source).tries(retry);
        let way = |(path, member)| Way::new(WayId { source, path }, member, tries.clone());
        self.ways.extend(members.into_iter().enumerate().map(way));
    }

    /// A source is not asked again. Its places in the lanes go to the source that takes its place
    /// as the one that says what the file is, if that has none.
    pub(crate) fn drop_ways(&mut self, source: usize, retry: RetrySettings) {
        let present = self.sources.present_index();
        if self
            .ways
            .iter()
            .any(|way| way.id.source == present && present != source)
        {
            self.ways.retain(|way| way.id.source != source);
            return;
        }
        for way in self.ways.iter_mut().filter(|way| way.id.source == source) {
            way.id.source = present;
            way.renew(self.sources.get(present).tries(retry));
        }
    }

    /// Its ways over a path begin as if nothing had failed.
    pub(crate) fn renew_ways(&mut self, path: usize, retry: RetrySettings) {
        for way in self.ways.iter_mut().filter(|way| way.id.path == path) {
            way.renew(Tries::new(retry));
        }
    }

    /// What is said of a source to people, who know the transfer by its first one.
    pub(crate) fn told_of(&self, source: usize, what: &str) -> String {
        match source {
            0 => what.to_owned(),
            _ => format!(
                "the mirror {}: {what}",
                shown(&self.sources.get(source).at.url)
            ),
        }
    }

    /// How many sources may send at once.
    pub(crate) fn sources_at_once(&self) -> usize {
        match &self.stage {
            Stage::Moving(moving) if moving.joint.alone.is_none() && moving.joint.joins() => {
                self.sources.left()
            }
            _ => 1,
        }
    }

    /// The path belongs to another lane from now on.
    pub(crate) fn enter_lane(&mut self, path: usize, lane: &Lane) {
        let sources = &self.sources;
        for way in self.ways.iter_mut().filter(|way| way.id.path == path) {
            let source = way.id.source;
            let remote = sources.remote(source).map(|remote| &remote.url);
            let host = host_of(remote.unwrap_or(&sources.get(source).at.url));
            way.member = lane.enter(&host, way.member.service());
        }
    }

    /// It has ended.
    pub(crate) fn leave_lanes(&self) {
        for way in &self.ways {
            way.member.leave();
        }
    }

    /// How it is served.
    pub(crate) fn service(&self) -> Service {
        self.ways[0].member.service()
    }

    /// Its place in the order of service.
    pub(crate) fn rank(&self) -> Rank {
        Rank::new(self.service(), self.id.0)
    }

    /// Bytes that it still has to move, if that is known.
    pub(crate) fn remaining(&self) -> Option<u64> {
        match &self.stage {
            Stage::Finishing(_) => Some(0),
            Stage::Moving(moving) => moving.pieces.remaining(),
            _ => Some(self.total?.saturating_sub(self.done)),
        }
    }

    /// Counts a task that starts; returns its stop signal.
    pub(crate) fn begin_task(&mut self) -> StopSignal {
        self.tasks += 1;
        self.stop.subscribe()
    }

    /// Ends the tasks; `then` follows.
    pub(crate) fn close(&mut self, then: Then) {
        let discards = matches!(&then, Then::Fail(error) if error.kind == ErrorKind::TooLarge);
        self.close_part(then, discards);
    }

    fn close_part(&mut self, then: Then, discards: bool) {
        self.stop.send_replace(true);
        let part = match &self.stage {
            Stage::Moving(moving) => Some(Arc::clone(&moving.part)),
            _ => None,
        };
        self.stage = Stage::Closing {
            part,
            discards,
            then,
        };
    }

    /// Begins anew with another source. `discards` says whether what is there is thrown away.
    pub(crate) fn change_source(&mut self, before: usize, retry: RetrySettings, discards: bool) {
        self.drop_ways(before, retry);
        (self.reprobes, self.range_refusals, self.discards) = (0, 0, 0);
        (self.done, self.total, self.even_pace) = (0, None, None);
        self.close_part(Then::Probe, discards);
    }

    /// Ready for another probe.
    pub(crate) fn reopen(&mut self) {
        self.stop = watch::Sender::new(false);
        self.stage = Stage::Waiting;
        self.sources.forget_sent();
        let present = self.sources.present_index();
        self.ways.retain(|way| way.id.source == present);
    }

    pub(crate) fn moving(&mut self) -> Option<&mut Moving> {
        match &mut self.stage {
            Stage::Moving(moving) => Some(moving),
            _ => None,
        }
    }

    /// What the next probe is to find out.
    pub(crate) fn inquiry(
        &self,
        now: Duration,
        length: u64,
        hint: Option<DeadlineHint>,
    ) -> Inquiry {
        // One refusal may be an accident on the way, and a part would be thrown away.
        let as_stream = self.range_refusals >= 2;
        let target = self.request.target.clone();
        // The next source is asked soon, and all of them longer in each round.
        let patience = self.sources.next_not_before().map(|not_before| {
            let round = self.slow_probes / u32::try_from(self.sources.left()).unwrap_or(1);
            let patience = PROBE_PATIENCE * (1 << round.min(10));
            patience.max(not_before.saturating_sub(now))
        });
        let expected = self.expected();
        Inquiry {
            length,
            patience,
            ..self.sources.inquiry(expected, target, as_stream, hint)
        }
    }

    /// Forgets failures: bytes have arrived over this way, and they stay.
    pub(crate) fn progress(&mut self, way: WayId) {
        // A server that hardly sends, or not what all are compared with, has not got over its
        // failures.
        let is_over = !self.is_unsampled();
        if is_over {
            self.sources.get_mut(way.source).failed = None;
        }
        if let Some(way) = self.way_mut(way) {
            match is_over {
                true => way.progress(),
                false => way.tries.backoff.answered(),
            }
        }
        self.reprobes = 0;
        self.range_refusals = 0;
    }

    /// Whether the bytes that all sources are asked for are still to come.
    pub(crate) fn is_unsampled(&self) -> bool {
        match &self.stage {
            Stage::Moving(moving) => {
                let sample = moving.joint.sample.as_ref();
                sample.is_some_and(|sample| sample.sha256.is_none())
            }
            _ => false,
        }
    }

    /// Whether it moves in one request that starts over when it fails.
    pub(crate) fn is_stream(&self) -> bool {
        matches!(self.stage, Stage::Moving(_)) && !self.is_resumable()
    }

    /// Whether what has been fetched survives a failure.
    pub(crate) fn is_resumable(&self) -> bool {
        match &self.stage {
            Stage::Moving(moving) => moving.source.version.is_some(),
            _ => false,
        }
    }

    /// Whether a probe over this path is of use.
    pub(crate) fn waits_for_probe(&self, path: usize) -> bool {
        match &self.stage {
            Stage::Waiting => true,
            Stage::Probing { won, running } => {
                !running.contains(&path) && !won.load(Ordering::Relaxed)
            }
            _ => false,
        }
    }

    pub(crate) fn is_ended(&self) -> bool {
        matches!(self.stage, Stage::Ended(_))
    }
}
