//! The rate of the bottleneck, found by an active test. A flow that has never
//! had the link for itself needs it to know its share.
//!
//! The data of all flows in flight through a first-in-first-out queue is what
//! it carries in a round trip (Little 1961). Another `s` bytes in flight add a
//! delay of `s`/C for all flows, whatever their number and congestion control.
//! So the window swings a little about its level, and the delay is compared
//! with the delay before and after. A steady change cancels out. The window
//! swings up only after other flows have made room, and stops before the buffer
//! is full. Otherwise the swings would cost packets, and other flows would back
//! off in the middle of a test.

mod record;

use std::collections::VecDeque;
use std::time::Duration;

pub(crate) use self::record::BottleneckSample;
use self::record::{BottleneckRecord, RateEstimate, TICK, seconds};

/// The window swings by this share of its level to each side. The room that one
/// CUBIC flow makes (0.3 of its window, RFC 9438, section 4.6) is larger.
const SWING_SHARE: f64 = 0.12;
/// Smallest swing, segments.
const MIN_SWING_SEGMENTS: f64 = 1.0;

/// A swing lasts for this many round trips, ...
const SWING_ROUND_TRIPS: f64 = 2.5;
/// ... and for at least this time, s.
const MIN_SWING_TIME: f64 = 0.08;

/// Round trips until a changed window shows in the delay: one until the sender
/// has it in flight, and one until that data has arrived.
const EFFECT_ROUND_TRIPS: f64 = 2.0;

/// Swings begin below this share of the recent range of the delay.
const START_DELAY_SHARE: f64 = 0.5;
/// The window swings up only below this share.
const UP_DELAY_SHARE: f64 = 0.7;

/// A swing is allowed anyway if it leaves the delay below this share.
const ROOM_DELAY_SHARE: f64 = 0.95;

/// The delay is even if it changes during a swing by less than this share of
/// the swing's own effect.
const EVEN_SHARE: f64 = 0.3;

/// Other flows make no room if the recent delay has stayed within this range,
/// s, ...
const MIN_DELAY_RANGE: f64 = 0.002;
/// ... plus this share of the base. A queue that others refill at once gives no
/// result.
const MIN_DELAY_RANGE_SHARE: f64 = 0.02;

/// The present delay is the median over this many round trips, ...
const PRESENT_ROUND_TRIPS: f64 = 1.5;
/// ... and over at least this time, s.
const MIN_PRESENT_TIME: f64 = 0.06;

/// A flow with less than this share of its window in flight has another limit,
/// and the swings have no effect.
const MIN_USED_SHARE: f64 = 0.9;

/// The level then comes down by this factor until it is the limit again, ...
const RETREAT_FACTOR: f64 = 0.93;
/// ... but not below this share of the used part.
const MIN_LEVEL_PER_USED: f64 = 0.95;

/// A sender follows the window if the data in flight swings by at least this
/// share of it, ...
const MIN_FOLLOWED_SHARE: f64 = 0.3;
/// ... in the mean over this many tests. A window arrives in bunches, so a
/// single test shows little.
const TESTS_PER_JUDGEMENT: u32 = 6;
/// Factor on the level if the sender does not follow.
const UNFOLLOWED_FACTOR: f64 = 0.85;

/// Lower limit of the used share in the mean.
const USED_FLOOR: f64 = 0.8;
/// Weight of a new test in the mean of the used share.
const USED_GAIN: f64 = 0.1;

/// The level may be this many times the tested one. Wide swings give a better
/// estimate.
const MAX_LEVEL_PER_TESTED: f64 = 1.5;

/// Weight of a new level in the tested level.
const TESTED_LEVEL_GAIN: f64 = 0.8;

/// From this many tests on, tests without room rest between each other. They
/// cost some of the level.
const ENOUGH_TESTS: f64 = 8.0;
/// Length of this rest, round trips.
const REST_ROUND_TRIPS: f64 = 20.0;

/// A test does not count if the level has moved by more than this share.
const MAX_LEVEL_CHANGE: f64 = 0.15;

/// A test does not count if the delay falls by more than this share of the
/// expected effect, and a tick: other traffic has left.
const MAX_FALL_SHARE: f64 = 0.2;

/// Least queueing delay that keeps a link busy: this, s, ...
const MIN_BUSY_DELAY: f64 = 0.001;
/// ... plus this share of the base.
const MIN_BUSY_SHARE: f64 = 0.01;

/// Time constant of the mean round-trip time, s. The level must not follow each
/// swing.
const RTT_TIME_CONSTANT: f64 = 2.0;

/// The test of one bottleneck.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bottleneck {
    record: BottleneckRecord,
    /// Mean round-trip time, s; 0 before the first.
    rtt: f64,
    /// The used part of the offered window.
    used: f64,
    estimate: RateEstimate,
    /// By how much what was in flight has swung in the last tests, in swings
    /// of the window, and how many these are.
    swung: f64,
    watched: u32,
    /// Level up to which the tests reach, bytes.
    tested: f64,
    swing: Option<Swing>,
    /// The last swing and its end, while its effect is still to come.
    last: Option<(Swing, Duration)>,
    /// Without room, there is no test before this time.
    rest: Duration,
    /// Effects of the last three swings.
    effects: VecDeque<SwingEffect>,
}

#[derive(Debug, Clone, Copy)]
struct Swing {
    began: Duration,
    /// Round-trip time then, s, and level, bytes.
    rtt: f64,
    level: f64,
    is_up: bool,
    /// Whether there is room above the level, or only below it.
    has_room: bool,
}

/// The effect of a swing.
#[derive(Debug, Clone, Copy)]
struct SwingEffect {
    swing: Swing,
    /// s
    queueing: f64,
    /// Bytes in flight, from what arrived.
    flight: f64,
}

fn width(level: f64, segment: f64) -> f64 {
    (SWING_SHARE * level).max(MIN_SWING_SEGMENTS * segment)
}

impl Bottleneck {
    /// Without any test.
    pub(crate) fn new() -> Self {
        Self {
            used: 1.0,
            ..Self::default()
        }
    }

    /// Rate of the bottleneck, byte/s; infinite before anything is known.
    pub(crate) fn rate(&self) -> f64 {
        self.estimate.rate()
    }

    /// The highest level that the tests support, bytes: at least `first`.
    pub(crate) fn max_level(&self, first: f64) -> f64 {
        (MAX_LEVEL_PER_TESTED * self.tested).max(first)
    }

    /// The window for one byte in flight, bytes. A window is never used to the last
    /// segment, and less so after a loss.
    pub(crate) fn allowance(&self) -> f64 {
        1.0 / self.used
    }

    /// Mean round-trip time, s; 0 before anything has come.
    pub(crate) fn rtt(&self) -> f64 {
        self.rtt
    }

    /// The window to offer now about a level, bytes.
    pub(crate) fn about(&self, level: f64, segment: f64) -> f64 {
        let width = width(level, segment);
        match self.swing {
            Some(swing) if swing.is_up => level + if swing.has_room { width } else { 0.0 },
            Some(swing) => level - if swing.has_room { width } else { 2.0 * width },
            None => level,
        }
    }

    /// Takes a sample and the window that was offered for it.
    pub(crate) fn update(&mut self, now: Duration, sample: BottleneckSample) {
        self.follow(now, &sample);
        self.record.add(now, sample, self.rtt);
        if !sample.is_steady {
            (self.swing, self.last) = (None, None);
            self.effects.clear();
            return;
        }
        if let Some((swing, end)) = self.last
            && now >= end + seconds(swing.rtt)
        {
            self.last = None;
            self.came_of(swing, now, &sample);
        }
        match self.swing {
            None if self.last.is_none() => {
                let has_room = self.has_room(now, &sample, START_DELAY_SHARE);
                let is_due = self.estimate.tests() < ENOUGH_TESTS || now >= self.rest;
                let is_even = has_room.is_some() && is_due && self.is_even(now, &sample);
                if has_room == Some(true) || is_even {
                    self.effects.clear();
                    self.begin(now, sample.level, false, has_room == Some(true));
                }
            }
            Some(swing)
                if now
                    >= swing.began
                        + seconds((SWING_ROUND_TRIPS * swing.rtt).max(MIN_SWING_TIME)) =>
            {
                self.last = Some((swing, now));
                self.swing = None;
                let has_room = self.has_room(now, &sample, UP_DELAY_SHARE);
                let goes_on = if swing.has_room {
                    swing.is_up || has_room == Some(true)
                } else {
                    let is_known = self.estimate.tests() >= ENOUGH_TESTS && self.effects.len() > 1;
                    has_room.is_some() && !(swing.is_up && is_known)
                };
                if !swing.has_room && !goes_on {
                    self.rest = now + seconds(REST_ROUND_TRIPS * swing.rtt);
                }
                if goes_on {
                    self.begin(now, sample.level, !swing.is_up, swing.has_room);
                }
            }
            _ => {}
        }
    }

    fn begin(&mut self, now: Duration, level: f64, is_up: bool, has_room: bool) {
        self.swing = Some(Swing {
            began: now,
            rtt: self.rtt,
            level,
            is_up,
            has_room,
        });
    }

    fn follow(&mut self, now: Duration, sample: &BottleneckSample) {
        let Some(queueing) = sample.queueing else {
            return;
        };
        let rtt = sample.base + queueing;
        let before = self.record.last_at().map(|at| now.saturating_sub(at));
        let kept = before.map_or(0.0, |elapsed| {
            (-elapsed.as_secs_f64() / RTT_TIME_CONSTANT).exp()
        });
        let old = if self.rtt > 0.0 { self.rtt } else { rtt };
        self.rtt = rtt + kept * (old - rtt);
    }

    /// Whether the delay is below a part of its recent range, or a swing up would
    /// still leave room; `None` if other flows never make room.
    fn has_room(&self, now: Duration, sample: &BottleneckSample, part: f64) -> Option<bool> {
        let (low, high) = self.record.range()?;
        if high - low < MIN_DELAY_RANGE + MIN_DELAY_RANGE_SHARE * sample.base {
            return None;
        }
        let swing = 2.0 * width(sample.level, sample.segment) / self.rate();
        let below = (part * (high - low)).max(ROOM_DELAY_SHARE * (high - low) - swing);
        Some(
            self.record
                .queueing(now.saturating_sub(self.lately()), now)?
                <= low + below,
        )
    }

    fn lately(&self) -> Duration {
        seconds((PRESENT_ROUND_TRIPS * self.rtt).max(MIN_PRESENT_TIME))
    }

    /// Whether the delay hardly grows, so that a larger window finds room again: the
    /// plateau of CUBIC.
    fn is_even(&self, now: Duration, sample: &BottleneckSample) -> bool {
        let swing = 2.0 * width(sample.level, sample.segment) / self.rate();
        let before = now.saturating_sub(seconds(SWING_ROUND_TRIPS * self.rtt));
        let old = self
            .record
            .queueing(before.saturating_sub(self.lately()), before);
        let new = self.record.queueing(now.saturating_sub(self.lately()), now);
        let grown = new.zip(old).map(|(new, old)| (new - old).abs());
        grown.is_some_and(|grown| grown < (EVEN_SHARE * swing).max(TICK))
    }

    /// The effect of a swing has come.
    fn came_of(&mut self, swing: Swing, now: Duration, sample: &BottleneckSample) {
        let shows = swing.began + seconds(EFFECT_ROUND_TRIPS * swing.rtt);
        let Some(queueing) = self.record.queueing(shows, now) else {
            self.effects.clear();
            return;
        };
        self.effects.push_back(SwingEffect {
            swing,
            queueing,
            flight: self.record.came_in(now, sample.base + queueing),
        });
        if self.effects.len() > 3 {
            self.effects.pop_front();
        }
        if let &mut [before, at, after] = self.effects.make_contiguous() {
            self.compare(now, sample, [before, at, after]);
        }
    }

    /// One swing against those before and after it.
    fn compare(&mut self, now: Duration, sample: &BottleneckSample, effects: [SwingEffect; 3]) {
        let [before, at, after] = effects.map(|effect| effect.queueing);
        let used = self.record.used(effects[0].swing.began, now);
        let width = 2.0 * width(sample.level, sample.segment);
        let bytes = width * used.min(1.0);
        let sign = if effects[1].swing.is_up { 1.0 } else { -1.0 };
        let delay = sign * (at - 0.5 * (before + after));
        let expected = self.estimate.expected(bytes).unwrap_or(0.0);
        let moved = (sample.level - effects[0].swing.level).abs();
        let is_busy = before.min(at).min(after) >= MIN_BUSY_DELAY + MIN_BUSY_SHARE * sample.base;
        // Without room before the test, other flows may have taken the new room.
        let is_filled = !effects[1].swing.has_room && delay < TICK;
        if after < before - TICK - MAX_FALL_SHARE * expected
            || !is_busy
            || is_filled
            || moved > MAX_LEVEL_CHANGE * sample.level
        {
            return;
        }
        self.used += USED_GAIN * (used.clamp(USED_FLOOR, 1.0) - self.used);
        let flights = effects.map(|effect| effect.flight);
        let swung = sign * (flights[1] - 0.5 * (flights[0] + flights[2]));
        if used < MIN_USED_SHARE {
            let max = RETREAT_FACTOR.max(MIN_LEVEL_PER_USED * used) * sample.level;
            self.retreat(max);
        } else if self.follows(swung / width) {
            self.estimate.add(width, bytes, delay);
            if self.rate().is_finite() {
                self.tested += TESTED_LEVEL_GAIN * (sample.level - self.tested);
            }
        } else {
            self.retreat(UNFOLLOWED_FACTOR * sample.level);
        }
    }

    fn retreat(&mut self, max: f64) {
        self.tested = self.tested.min(max / MAX_LEVEL_PER_TESTED);
    }

    /// Whether the sender follows the window. The data in flight has swung by this
    /// part of the window.
    fn follows(&mut self, swung: f64) -> bool {
        self.swung += swung;
        self.watched += 1;
        if self.watched < TESTS_PER_JUDGEMENT {
            return true;
        }
        let follows = self.swung >= MIN_FOLLOWED_SHARE * f64::from(self.watched);
        (self.swung, self.watched) = (0.0, 0);
        follows
    }
}

#[cfg(test)]
mod tests;
