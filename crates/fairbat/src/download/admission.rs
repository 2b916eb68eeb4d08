//! How many connections a run may have and how hard they press: as its own
//! controllers say, or the lane that it shares with others. A closed choice; what
//! the connections do is no business of it.

use std::num::NonZeroU64;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dalbe::weight::FlowTarget;
use tokio::sync::watch;

use crate::error::{ErrorKind, TransferError};
use crate::lane::AdmissionSettings;
use crate::lane::backlog::BacklogPolicy;
use crate::lane::controller::{Load, Pace, PaceSample, share_of};
use crate::lane::{Backlog, LaneSample, Member, Permit};
use crate::settings::Settings;
use crate::transport::RequestContext;

/// A place in a lane that is shared with others.
#[derive(Debug)]
pub struct Share {
    /// The place.
    pub member: Member,
    /// The ceilings that the lane keeps to, and where bytes are counted.
    pub passage: RequestContext,
    /// Where chunks are counted: requests that have brought bytes of the file.
    pub chunks: Arc<AtomicU64>,
}

/// A turn in the lane that is waited for.
pub(super) type Wish = Pin<Box<dyn Future<Output = Permit> + Send>>;

/// See the module.
#[derive(Debug)]
pub(super) enum Admission {
    /// Its own controllers.
    Own(Box<Pace>),
    /// A lane.
    Shared(Box<Shared>),
}

/// What a run knows of its place in a lane.
#[derive(Debug)]
pub(super) struct Shared {
    member: Arc<Member>,
    passage: RequestContext,
    chunks: Arc<AtomicU64>,
    order: watch::Receiver<FlowTarget>,
    samples: watch::Receiver<LaneSample>,
    /// A connection that was granted and is not in use yet.
    granted: Option<Permit>,
    /// Bytes of this run since the last sample, and when that was.
    bytes: u64,
    sampled: Duration,
}

impl Admission {
    /// The controllers of a run that shares nothing. `window` is the time to its
    /// nearest deadline; `is_held` says whether anything can hold its flows back.
    pub(super) fn own(
        settings: &Settings,
        window: Option<Duration>,
        is_held: bool,
    ) -> Result<Self, TransferError> {
        let pace = Pace::new(
            settings.split,
            settings.max_connections,
            window,
            is_held.then_some(settings.weight),
            // A person's downloads are not a stream of jobs: one polite
            // connection is enough until a deadline says that it is not.
            BacklogPolicy::paced(),
        );
        let pace = pace.map_err(|error| TransferError::new(ErrorKind::Other, error.to_string()))?;
        Ok(Self::Own(Box::new(pace)))
    }

    /// The controllers of a run whose jobs come and go; `is_held` says whether
    /// anything can hold its flows back.
    pub(super) fn of_arrivals(
        settings: &Settings,
        law: AdmissionSettings,
        is_held: bool,
    ) -> Result<Self, TransferError> {
        let pace = Pace::of_arrivals(law, is_held.then_some(settings.weight));
        let pace = pace.map_err(|error| TransferError::new(ErrorKind::Other, error.to_string()))?;
        Ok(Self::Own(Box::new(pace)))
    }

    pub(super) fn shared(share: Share) -> Self {
        let Share {
            member,
            passage,
            chunks,
        } = share;
        let lane = member.lane();
        Self::Shared(Box::new(Shared {
            order: lane.order(),
            samples: lane.samples(),
            member: Arc::new(member),
            passage,
            chunks,
            granted: None,
            bytes: 0,
            sampled: Duration::ZERO,
        }))
    }

    /// Whether one more may be used beside so many.
    pub(super) fn admits(&self, active: usize) -> bool {
        match self {
            Self::Own(pace) => active < pace.connections(),
            Self::Shared(shared) => shared.granted.is_some(),
        }
    }

    /// Whether there is somebody to be asked for each one.
    pub(super) fn has_to_ask(&self) -> bool {
        match self {
            Self::Own(_) => false,
            Self::Shared(shared) => shared.granted.is_none(),
        }
    }

    /// Asks for one. While it is waited for, those that are due later wait, too.
    pub(super) fn ask(&self) -> Option<Wish> {
        match self {
            Self::Own(_) => None,
            Self::Shared(shared) => {
                let member = Arc::clone(&shared.member);
                Some(Box::pin(async move { member.admit().await }))
            }
        }
    }

    /// The lane has granted a connection.
    pub(super) fn granted(&mut self, permit: Permit) {
        if let Self::Shared(shared) = self {
            shared.granted = Some(permit);
        }
    }

    /// What goes with a connection that is taken into use, until it is free
    /// again.
    pub(super) fn take(&mut self) -> Option<Permit> {
        match self {
            Self::Own(_) => None,
            Self::Shared(shared) => shared.granted.take(),
        }
    }

    /// So many are in use, and nothing more can be begun now.
    pub(super) fn active(&mut self, now: Duration, active: usize) {
        match self {
            Self::Own(pace) => pace.active(now, active),
            // Others may have a use for it.
            Self::Shared(shared) => shared.granted = None,
        }
    }

    /// A chunk has ended that took so long.
    pub(super) fn finished(&mut self, chunk: Duration) {
        if let Self::Own(pace) = self {
            pace.finished(chunk);
        }
    }

    /// No more jobs come.
    pub(super) fn no_more_come(&mut self) {
        if let Self::Own(pace) = self {
            pace.no_more_come();
        }
    }

    /// A connection brings the first bytes of a chunk.
    pub(super) fn chunk(&self) {
        if let Self::Shared(shared) = self {
            shared.chunks.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Bytes have been moved, over a connection with this round-trip time.
    pub(super) fn moved(
        &mut self,
        now: Duration,
        bytes: u64,
        is_due: bool,
        rtt: impl FnOnce() -> Option<Duration>,
    ) {
        match self {
            Self::Own(pace) => pace.moved(now, bytes, is_due),
            Self::Shared(shared) => {
                shared.bytes += bytes;
                let lane = shared.member.lane();
                shared.passage.count(bytes, &lane);
                lane.moved(bytes, rtt());
            }
        }
    }

    /// The connections in use have this mean receive window, bytes.
    pub(super) fn sees_window(&self, window: Option<f64>) {
        if let (Self::Shared(shared), Some(window)) = (self, window) {
            shared.member.lane().sees_window(window);
        }
    }

    /// The host refused the load of a connection, which is free already.
    pub(super) fn pushed_back(&self, not_for: Duration) {
        if let Self::Shared(shared) = self {
            shared.member.pushed_back(Some(not_for));
        }
    }

    /// Tells the lane what there is to move.
    pub(super) fn owes(&self, backlog: impl FnOnce() -> Backlog) {
        if let Self::Shared(shared) = self {
            shared.member.set_backlog(backlog());
        }
    }

    /// Length of the next chunk, bytes, where `natural` is what the rate asks for
    /// and `pending` is what waits.
    pub(super) fn chunk_length(&self, natural: NonZeroU64, pending: u64) -> NonZeroU64 {
        match self {
            Self::Own(pace) => pace.chunk_length(natural, pending),
            // Never longer: somebody may come who is due first.
            Self::Shared(shared) => {
                let connections = shared.samples.borrow().m.ceil() as u64;
                share_of(natural, natural, pending, connections)
            }
        }
    }

    /// What the path carries when nobody else uses it, as far as has been seen,
    /// byte/s.
    pub(super) fn capacity(&self, now: Duration) -> f64 {
        match self {
            Self::Own(pace) => pace.capacity(now),
            Self::Shared(shared) => shared.samples.borrow().capacity,
        }
    }

    /// Takes a sample. Of a lane, all but the rate is the lane's.
    pub(super) fn sample(&mut self, now: Duration, load: &Load) -> PaceSample {
        match self {
            Self::Own(pace) => pace.sample(now, load),
            Self::Shared(shared) => {
                let elapsed = now.saturating_sub(shared.sampled).as_secs_f64();
                let bytes = std::mem::take(&mut shared.bytes) as f64;
                shared.sampled = now;
                let LaneSample { n, m, w, .. } = *shared.samples.borrow();
                let rate = if elapsed > 0.0 { bytes / elapsed } else { 0.0 };
                PaceSample { n, m, w, rate }
            }
        }
    }

    /// What the connections are to follow after a sample.
    pub(super) fn order(&self, now: Duration, sample: &PaceSample) -> FlowTarget {
        match self {
            Self::Own(pace) => FlowTarget {
                w: sample.w,
                capacity: pace.capacity(now),
            },
            Self::Shared(shared) => *shared.order.borrow(),
        }
    }
}
