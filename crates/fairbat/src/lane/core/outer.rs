//! What a lane knows as a guest of an outer one.

use std::collections::BTreeMap;
use std::time::Duration;

use dalbe::weight::FlowTarget;
use jiff::Timestamp;

use super::rank::MemberId;
use crate::lane::wire::{Class, Counts};

/// Transfers that are served alike: by their deadline, the last moment without one. Those of a
/// stream are groups of one.
pub(super) type OuterGroup = (Timestamp, Option<MemberId>);

/// What an outer lane allows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    pub(super) until: Duration,
    pub(super) target: FlowTarget,
    pub(super) stream_w: f64,
    /// At which a download begins, byte/s; 0 if that is not known.
    pub(super) rate: f64,
    pub(super) carriers: u32,
}

/// The lane as a guest.
#[derive(Debug, Default)]
pub(super) struct Outer {
    pub(super) share: Option<Share>,
    pub(super) seq: u64,
    pub(super) term: u64,
    /// Permits of this term that have come.
    pub(super) seen: Counts,
    /// Those of them that are not used yet, and since when.
    pub(super) unused: Counts,
    pub(super) came_at: Duration,
    /// The most connections in use since the last grant.
    most: Counts,
    /// So many connections go on without permits, while the outer lane is silent.
    kept: Option<Counts>,
    /// The numbers of the groups.
    pub(super) keys: BTreeMap<OuterGroup, u64>,
    pub(super) next_key: u64,
    /// Bytes moved since the start, for deadlines and besides.
    pub(super) moved: (u64, u64),
    /// Whether the path limits the downloads of this lane; `None` without any.
    pub(super) is_path_limited: Option<bool>,
}

impl Outer {
    /// Bytes have been moved.
    pub(super) fn moved(&mut self, bytes: u64, is_due: bool) {
        let (due, besides) = &mut self.moved;
        let sum = if is_due { due } else { besides };
        *sum = sum.saturating_add(bytes);
    }

    /// Whether another lane says who is next.
    pub(super) fn has_share(&self) -> bool {
        self.share.is_some()
    }

    /// Whether one more connection of this class is allowed, beside those in use; `None` without
    /// a share.
    pub(super) fn allows(&self, class: Class, in_use: Counts) -> Option<bool> {
        let is_kept = |kept: Counts| in_use.of(class) < kept.of(class);
        self.share
            .map(|_| self.unused.of(class) > 0 || self.kept.is_some_and(is_kept))
    }

    /// A connection of this class is used, on a permit if there is one.
    pub(super) fn used(&mut self, class: Class) {
        let unused = self.unused.of_mut(class);
        *unused = unused.saturating_sub(1);
    }

    /// So many connections are in use now.
    pub(super) fn note_use(&mut self, in_use: Counts) {
        for class in Class::ALL {
            let most = self.most.of_mut(class);
            *most = (*most).max(in_use.of(class));
        }
    }

    /// The outer lane has said something, while so many connections are in use.
    pub(super) fn heard(&mut self, in_use: Counts) {
        (self.most, self.kept) = (in_use, None);
    }

    /// The outer lane is silent. Permits that were given back in the meantime may have gone to
    /// nobody, so whoever had connections goes on with as many, until its share is over. Returns
    /// whether it was not so before.
    pub(super) fn keep(&mut self) -> bool {
        let is_new = self.share.is_some() && self.kept.is_none();
        if is_new {
            self.kept = Some(self.most);
        }
        is_new
    }

    /// What the connections are to do, that are not of the stream.
    pub(super) fn target(&self) -> Option<FlowTarget> {
        self.share.map(|share| share.target)
    }

    /// The weight of those of the stream.
    pub(super) fn stream_w(&self) -> Option<f64> {
        self.share.map(|share| share.stream_w)
    }
}
