//! What one direction of a link carried, by whom, over any span of time. Knows
//! samples only.

use std::ops::Range;

use crate::link::{PAYLOAD_SHARE, Rate};
use crate::samples::Samples;
use crate::scenario::DirectionSpec;

/// Length of the means by which moments are found, s.
pub(crate) const MEAN: f64 = 0.5;

/// A change has come when so many means in a row say so.
const IN_A_ROW: u32 = 3;

/// Where others leave less of the link than this there is nothing to be found
/// out about who takes the rest.
const MIN_SHARE_LEFT: f64 = 0.25;

/// Sums of the samples, so that any span takes two lookups.
pub(crate) struct Carried {
    /// From sample to sample, s.
    interval: f64,
    /// Whole packets of the background until each sample, bytes.
    ours: Vec<f64>,
    /// Payload of the foreground, likewise.
    foreground: Vec<f64>,
    /// Whole packets of anybody, likewise.
    all: Vec<f64>,
    /// What the link could have carried, likewise, where it was sampled.
    could: Option<Vec<f64>>,
    rate: Rate,
}

impl Carried {
    /// `None` without samples.
    pub(crate) fn of(samples: &Samples, link: &DirectionSpec) -> Option<Self> {
        let is_sampled = samples.interval_ms > 0 && !samples.background.is_empty();
        is_sampled.then(|| Self {
            interval: samples.interval_ms as f64 / 1e3,
            ours: sums(&samples.background, 1.0 / PAYLOAD_SHARE),
            foreground: sums(&samples.foreground, 1.0),
            all: sums(&samples.carried, 1.0),
            could: (!samples.capacity.is_empty()).then(|| sums(&samples.capacity, 1.0)),
            rate: Rate::of(link),
        })
    }

    /// What the background carried, whole packets, bytes; all of them are taken
    /// for full ones.
    pub(crate) fn ours(&self, span: &Range<f64>) -> f64 {
        self.between(&self.ours, span)
    }

    /// Payload of the background, bytes.
    pub(crate) fn our_payload(&self, span: &Range<f64>) -> f64 {
        self.ours(span) * PAYLOAD_SHARE
    }

    /// Payload of the foreground, bytes.
    pub(crate) fn foreground(&self, span: &Range<f64>) -> f64 {
        self.between(&self.foreground, span)
    }

    /// What the link can carry, bytes.
    pub(crate) fn capacity(&self, span: &Range<f64>) -> f64 {
        if let Some(could) = &self.could {
            return self.between(could, span);
        }
        let span = self.indices(span);
        let moment = |index: usize| index as f64 * self.interval;
        self.rate.capacity(moment(span.start), moment(span.end))
    }

    /// What the others leave of that, bytes: acknowledgements of what goes the
    /// other way are theirs.
    fn left(&self, span: &Range<f64>) -> f64 {
        let others = (self.between(&self.all, span) - self.ours(span)).max(0.0);
        (self.capacity(span) - others).max(0.0)
    }

    /// Share of what the others left that the background took, 0 to 1; `None`
    /// where they left nothing.
    pub(crate) fn spare_used(&self, span: &Range<f64>) -> Option<f64> {
        let left = self.left(span);
        (left > 0.0).then(|| (self.ours(span) / left).min(1.0))
    }

    /// How long after `from` it is that the background takes at least `share`
    /// of what the others leave, in the mean over the next [`MEAN`], s; if that
    /// is never before `until`, the time until then.
    pub(crate) fn reaches(&self, share: f64, from: f64, until: f64) -> f64 {
        self.first(from, until, |span| {
            let left = self.left(span);
            left >= MIN_SHARE_LEFT * self.capacity(span) && self.ours(span) >= share * left
        })
    }

    /// How long after `from` it is that the background carries at least this
    /// rate (byte/s), likewise.
    pub(crate) fn carries(&self, rate: f64, from: f64, until: f64) -> f64 {
        self.first(from, until, |span| {
            self.ours(span) >= rate * (span.end - span.start)
        })
    }

    /// How long after `from` it is that the background has at least this rate
    /// (byte/s) in the mean over the [`MEAN`] around that moment and in the means
    /// over the next two, s; if that is never before `until`, the time until then.
    pub(crate) fn rises_to(&self, rate: f64, from: f64, until: f64) -> f64 {
        self.settles(from, until, |span| {
            self.ours(span) >= rate * (span.end - span.start)
        })
    }

    /// The same for at most this rate.
    pub(crate) fn falls_to(&self, rate: f64, from: f64, until: f64) -> f64 {
        self.settles(from, until, |span| {
            self.ours(span) <= rate * (span.end - span.start)
        })
    }

    /// The longest time within a span in which nothing of the background came,
    /// s.
    pub(crate) fn longest_gap(&self, span: &Range<f64>) -> f64 {
        let indices = self.indices(span);
        let sums = &self.ours[indices.start..=indices.end];
        let (mut longest, mut current) = (0, 0);
        for pair in sums.windows(2) {
            current = if pair[1] > pair[0] { 0 } else { current + 1 };
            longest = longest.max(current);
        }
        f64::from(longest) * self.interval
    }

    fn first(&self, from: f64, until: f64, found: impl Fn(&Range<f64>) -> bool) -> f64 {
        let steps = ((until - from - MEAN) / self.interval).floor();
        let starts = (0..=steps.max(-1.0) as i64).map(|step| from + step as f64 * self.interval);
        let mut starts = starts.filter(|start| found(&(*start..start + MEAN)));
        starts
            .next()
            .map_or((until - from).max(0.0), |start| start - from)
    }

    /// The middle of the first mean of [`IN_A_ROW`] that are as wanted: one that
    /// begins with the moment would foresee a change, and noise of half a second
    /// may be in two of them.
    fn settles(&self, from: f64, until: f64, found: impl Fn(&Range<f64>) -> bool) -> f64 {
        let least = (f64::from(IN_A_ROW) - 0.5) * MEAN;
        let steps = ((until - from - least) / self.interval).floor();
        let moments = (0..=steps.max(-1.0) as i64).map(|step| from + step as f64 * self.interval);
        let mut moments = moments.filter(|moment| {
            let start = |mean: u32| moment + (f64::from(mean) - 0.5) * MEAN;
            (0..IN_A_ROW).all(|mean| found(&(start(mean)..start(mean + 1))))
        });
        moments
            .next()
            .map_or((until - from).max(0.0), |moment| moment - from)
    }

    fn between(&self, sums: &[f64], span: &Range<f64>) -> f64 {
        let Range { start, end } = self.indices(span);
        let at = |index: usize| sums.get(index).or(sums.last()).copied().unwrap_or(0.0);
        (at(end) - at(start)).max(0.0)
    }

    /// Places in the sums: that of a moment is the number of samples before it.
    fn indices(&self, span: &Range<f64>) -> Range<usize> {
        let last = self.ours.len() - 1;
        let index = |moment: f64| ((moment / self.interval).round().max(0.0) as usize).min(last);
        index(span.start)..index(span.end).max(index(span.start))
    }
}

/// One more than there are samples.
fn sums(column: &[u64], factor: f64) -> Vec<f64> {
    let mut sum = 0.0;
    let add = |bytes: &u64| {
        sum += *bytes as f64 * factor;
        sum
    };
    std::iter::once(0.0).chain(column.iter().map(add)).collect()
}
