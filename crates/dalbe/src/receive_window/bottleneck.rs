//! How fast the bottleneck is, found by an active test: what a share of it is a
//! share of, when the flow has never had it for itself.
//!
//! What all flows have in flight through a first-in-first-out queue is what it
//! carries in a round trip (Little 1961): another `s` bytes in flight are
//! another `s`/C of delay, for everybody, however many the others are and
//! whatever their congestion control is. So the window swings a little about
//! its level, and the delay is compared with that before and after: what goes
//! on evenly meanwhile cancels out. It swings up only after others have made
//! room, and stops before the buffer is full: else the swings would cost
//! packets, and others back off in their midst.
//!
//! Knows nothing of weights, nor of what the window is for; pure.

mod record;

use std::collections::VecDeque;
use std::time::Duration;

pub(crate) use self::record::BottleneckSample;
use self::record::{BottleneckRecord, RateEstimate, TICK, seconds};

/// The window swings by this share of its level to each side: little enough
/// for the room that one CUBIC flow makes (0.3 of its own window, RFC 9438
/// section 4.6), ...
const SWING: f64 = 0.12;
/// ... and by this many segments at least.
const SWING_LEAST: f64 = 1.0;

/// A swing lasts for so many round trips, ...
const LASTS: f64 = 2.5;
/// ... and at least for this time, s: some looks.
const LASTS_LEAST: f64 = 0.08;

/// Round trips after which a changed window shows in the delay: one until the
/// sender has it in flight, and one until that has come.
const SHOWS: f64 = 2.0;

/// Swings begin below this part of what the delay has been of late, ...
const LOW: f64 = 0.5;
/// ... and the window does not swing up above this one.
const HIGH: f64 = 0.7;

/// Both may be wherever a swing leaves the delay below this part.
const ROOM: f64 = 0.95;

/// The delay is even while it changes by less than this part of what a swing
/// does, as long as one lasts.
const EVEN: f64 = 0.3;

/// Nobody makes room where the delay of late has kept within this, s, and this
/// share of the base: a queue that others fill at once says nothing.
const FULL: f64 = 0.002;
const FULL_SHARE: f64 = 0.02;

/// The delay "now" is the median over so many round trips, ...
const NOW: f64 = 1.5;
/// ... and at least over this time, s.
const NOW_LEAST: f64 = 0.06;

/// Who has less than this share of its window in flight has another limit, and
/// the swings are not its own.
const USED: f64 = 0.9;

/// Then the level comes down by this factor, until it is the limit again, but
/// not further below what is used than this.
const RETREAT: f64 = 0.93;
const BELOW_USED: f64 = 0.95;

/// Neither are they if what is in flight swings by less than this part of them,
/// in the mean over so many tests: a window arrives in bunches, and one test
/// shows little of it. Then the level comes down as far as this.
const SWUNG: f64 = 0.3;
const ENOUGH_TO_JUDGE: u32 = 6;
const FAR: f64 = 0.85;

/// The part that is used counts from here to 1, and a new test for so much in
/// it.
const USED_LEAST: f64 = 0.8;
const USED_GAIN: f64 = 0.1;

/// The level may be so many times the one that was tested: the wider the
/// swings, the better the estimate.
const GROWTH: f64 = 1.5;

/// How much of the way from the old tested level to a new one is gone at once.
const GAIN: f64 = 0.8;

/// From so many tests on, those below the level rest for so many round trips:
/// they cost some of it.
const MANY: f64 = 8.0;
const REST: f64 = 20.0;

/// A level that has moved by this share says more than the swings about it.
const MOVED: f64 = 0.15;

/// A fall of the delay by so much of what is expected of a swing, and a tick,
/// is somebody else's.
const FALL: f64 = 0.2;

/// Least queueing delay that keeps a link busy: this, s, and this share of the
/// base.
const BUSY: f64 = 0.001;
const BUSY_SHARE: f64 = 0.01;

/// Time constant of the mean round-trip time, s: the level shall not follow
/// each swing.
const MEAN: f64 = 2.0;

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct Bottleneck {
    looks: BottleneckRecord,
    /// Mean round-trip time, s; 0 before the first.
    rtt: f64,
    /// Part of what is offered that is used.
    used: f64,
    estimate: RateEstimate,
    /// By how much what was in flight has swung in the last tests, in swings
    /// of the window, and how many these are.
    swung: f64,
    watched: u32,
    /// Level up to which the tests reach, bytes.
    tested: f64,
    swing: Option<Swing>,
    /// The one that is over, while its effect is still to come, and when it
    /// ended.
    last: Option<(Swing, Duration)>,
    /// Without room there is no test before.
    rest: Duration,
    /// What the last three did.
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

/// What came of a swing.
#[derive(Debug, Clone, Copy)]
struct SwingEffect {
    swing: Swing,
    /// s
    queueing: f64,
    /// Bytes in flight, from what arrived.
    flight: f64,
}

fn width(level: f64, segment: f64) -> f64 {
    (SWING * level).max(SWING_LEAST * segment)
}

impl Default for Bottleneck {
    fn default() -> Self {
        Self {
            looks: BottleneckRecord::default(),
            rtt: 0.0,
            used: 1.0,
            estimate: RateEstimate::default(),
            swung: 0.0,
            watched: 0,
            tested: 0.0,
            swing: None,
            last: None,
            rest: Duration::ZERO,
            effects: VecDeque::new(),
        }
    }
}

impl Bottleneck {
    /// Rate of the bottleneck, byte/s; infinite before anything is known.
    pub(crate) fn rate(&self) -> f64 {
        self.estimate.rate()
    }

    /// The highest level that the tests speak for, bytes: at least `first`.
    pub(crate) fn most(&self, first: f64) -> f64 {
        (GROWTH * self.tested).max(first)
    }

    /// What has to be offered for one byte in flight, bytes: no window is used
    /// to the last segment, and after a loss less of it.
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

    /// What was seen, and what was offered for it.
    pub(crate) fn look(&mut self, now: Duration, look: BottleneckSample) {
        self.follow(now, &look);
        self.looks.add(now, look, self.rtt);
        if !look.is_steady {
            (self.swing, self.last) = (None, None);
            self.effects.clear();
            return;
        }
        if let Some((swing, end)) = self.last
            && now >= end + seconds(swing.rtt)
        {
            self.last = None;
            self.came_of(swing, now, &look);
        }
        match self.swing {
            None if self.last.is_none() => {
                let has_room = self.has_room(now, &look, LOW);
                let is_due = self.estimate.tests() < MANY || now >= self.rest;
                let is_even = has_room.is_some() && is_due && self.is_even(now, &look);
                if has_room == Some(true) || is_even {
                    self.effects.clear();
                    self.begin(now, look.level, false, has_room == Some(true));
                }
            }
            Some(swing) if now >= swing.began + seconds((LASTS * swing.rtt).max(LASTS_LEAST)) => {
                self.last = Some((swing, now));
                self.swing = None;
                let has_room = self.has_room(now, &look, HIGH);
                let goes_on = if swing.has_room {
                    swing.is_up || has_room == Some(true)
                } else {
                    let is_known = self.estimate.tests() >= MANY && self.effects.len() > 1;
                    has_room.is_some() && !(swing.is_up && is_known)
                };
                if !swing.has_room && !goes_on {
                    self.rest = now + seconds(REST * swing.rtt);
                }
                if goes_on {
                    self.begin(now, look.level, !swing.is_up, swing.has_room);
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

    fn follow(&mut self, now: Duration, look: &BottleneckSample) {
        let Some(queueing) = look.queueing else {
            return;
        };
        let rtt = look.base + queueing;
        let before = self.looks.last_at().map(|at| now.saturating_sub(at));
        let kept = before.map_or(0.0, |elapsed| (-elapsed.as_secs_f64() / MEAN).exp());
        let old = if self.rtt > 0.0 { self.rtt } else { rtt };
        self.rtt = rtt + kept * (old - rtt);
    }

    /// Whether the delay is below a part of its range of late, or a swing up
    /// would still leave room; `None` where nobody ever makes any.
    fn has_room(&self, now: Duration, look: &BottleneckSample, part: f64) -> Option<bool> {
        let (low, high) = self.looks.range()?;
        if high - low < FULL + FULL_SHARE * look.base {
            return None;
        }
        let swing = 2.0 * width(look.level, look.segment) / self.rate();
        let below = (part * (high - low)).max(ROOM * (high - low) - swing);
        Some(
            self.looks
                .queueing(now.saturating_sub(self.lately()), now)?
                <= low + below,
        )
    }

    fn lately(&self) -> Duration {
        seconds((NOW * self.rtt).max(NOW_LEAST))
    }

    /// Whether the delay hardly grows, so that what was taken away finds room
    /// again: the plateau of CUBIC.
    fn is_even(&self, now: Duration, look: &BottleneckSample) -> bool {
        let swing = 2.0 * width(look.level, look.segment) / self.rate();
        let before = now.saturating_sub(seconds(LASTS * self.rtt));
        let old = self
            .looks
            .queueing(before.saturating_sub(self.lately()), before);
        let new = self.looks.queueing(now.saturating_sub(self.lately()), now);
        let grown = new.zip(old).map(|(new, old)| (new - old).abs());
        grown.is_some_and(|grown| grown < (EVEN * swing).max(TICK))
    }

    /// The effect of a swing has come.
    fn came_of(&mut self, swing: Swing, now: Duration, look: &BottleneckSample) {
        let shows = swing.began + seconds(SHOWS * swing.rtt);
        let Some(queueing) = self.looks.queueing(shows, now) else {
            self.effects.clear();
            return;
        };
        self.effects.push_back(SwingEffect {
            swing,
            queueing,
            flight: self.looks.came_in(now, look.base + queueing),
        });
        if self.effects.len() > 3 {
            self.effects.pop_front();
        }
        if let &mut [before, at, after] = self.effects.make_contiguous() {
            self.compare(now, look, [before, at, after]);
        }
    }

    /// One swing against those before and after it.
    fn compare(&mut self, now: Duration, look: &BottleneckSample, effects: [SwingEffect; 3]) {
        let [before, at, after] = effects.map(|effect| effect.queueing);
        let used = self.looks.used(effects[0].swing.began, now);
        let width = 2.0 * width(look.level, look.segment);
        let bytes = width * used.min(1.0);
        let sign = if effects[1].swing.is_up { 1.0 } else { -1.0 };
        let delay = sign * (at - 0.5 * (before + after));
        let expected = self.estimate.expected(bytes).unwrap_or(0.0);
        let moved = (look.level - effects[0].swing.level).abs();
        let is_busy = before.min(at).min(after) >= BUSY + BUSY_SHARE * look.base;
        // Where there was no room, others may have taken what was made.
        let is_filled = !effects[1].swing.has_room && delay < TICK;
        if after < before - TICK - FALL * expected
            || !is_busy
            || is_filled
            || moved > MOVED * look.level
        {
            return;
        }
        self.used += USED_GAIN * (used.clamp(USED_LEAST, 1.0) - self.used);
        let flights = effects.map(|effect| effect.flight);
        let swung = sign * (flights[1] - 0.5 * (flights[0] + flights[2]));
        if used < USED {
            let most = RETREAT.max(BELOW_USED * used) * look.level;
            self.retreat(most);
        } else if self.follows(swung / width) {
            self.estimate.add(width, bytes, delay);
            if self.rate().is_finite() {
                self.tested += GAIN * (look.level - self.tested);
            }
        } else {
            self.retreat(FAR * look.level);
        }
    }

    fn retreat(&mut self, most: f64) {
        self.tested = self.tested.min(most / GROWTH);
    }

    /// Whether the sender follows the window, when what is in flight has swung
    /// by such a part of it.
    fn follows(&mut self, swung: f64) -> bool {
        self.swung += swung;
        self.watched += 1;
        if self.watched < ENOUGH_TO_JUDGE {
            return true;
        }
        let follows = self.swung >= SWUNG * f64::from(self.watched);
        (self.swung, self.watched) = (0.0, 0);
        follows
    }
}

#[cfg(test)]
mod tests;
