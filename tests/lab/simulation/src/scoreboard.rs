//! What a sender knows of each segment that it has sent: which have arrived (SACK,
//! RFC 2018), which are lost (RACK, RFC 8985), and at what rate they arrive
//! (draft-cheng-iccrg-delivery-rate-estimation).

use std::collections::VecDeque;
use std::time::Duration;

use crate::congestion::state::Acknowledged;
use crate::packet::{Acknowledgement, HEADERS, SEGMENT};

/// So many segments beyond a hole end the tolerance of reordering (`DupThresh`).
const DUPLICATES: u32 = 3;

/// Segments that are not acknowledged, in order.
#[derive(Debug, Default)]
pub(crate) struct Scoreboard {
    segments: VecDeque<Segment>,
    /// Of those: have arrived, are taken for lost, were sent again since.
    arrived: u32,
    lost: u32,
    repeated: u32,
    /// Of the newest that has arrived: when it was sent, and its first byte.
    newest: Option<(Duration, u64)>,
    delivered: Delivered,
    /// The application has nothing more to send until so many have arrived.
    application_limited_until: u64,
}

/// The state of delivery, at a moment or when a segment was sent.
#[derive(Debug, Clone, Copy, Default)]
struct Delivered {
    /// Segments that have arrived.
    segments: u64,
    /// When the last one did.
    at: Duration,
    /// When the newest of them was sent.
    sent: Duration,
}

#[derive(Debug, Clone, Copy)]
struct Segment {
    first: u64,
    length: u64,
    sent: Duration,
    /// Whether it was sent again since it was taken for lost, ...
    is_repeated: bool,
    /// ... and whether it ever was.
    was_repeated: bool,
    has_arrived: bool,
    is_lost: bool,
    /// When it was sent.
    delivered: Delivered,
    is_application_limited: bool,
}

impl Segment {
    fn end(&self) -> u64 {
        self.first + self.length
    }
}

/// What an acknowledgement says, for the sender.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Progress {
    pub(crate) ack: Acknowledged,
    /// Round-trip time of the oldest segment that has arrived now.
    pub(crate) first_rtt: Option<Duration>,
    /// End of what has arrived in order.
    pub(crate) acknowledged: Option<u64>,
}

/// What one acknowledgement has brought so far.
#[derive(Debug, Default)]
struct Arrivals {
    newest: Option<Segment>,
    first_sent: Option<Duration>,
    last_sent: Option<Duration>,
    last_beyond_hole: Option<Duration>,
    is_ambiguous: bool,
}

impl Arrivals {
    /// A segment has arrived. Of one that was sent twice it may be the first copy.
    fn add(&mut self, segment: Segment, now: Duration, min_rtt: Duration) {
        let is_sure = !segment.was_repeated || now.saturating_sub(segment.sent) >= min_rtt;
        let key = (segment.sent, segment.first);
        if is_sure && self.newest.is_none_or(|one| key > (one.sent, one.first)) {
            self.newest = Some(segment);
        }
    }
}

impl Scoreboard {
    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Segments that are not acknowledged.
    pub(crate) fn outstanding(&self) -> u32 {
        self.segments.len() as u32
    }

    /// Segments on the network, as far as is known.
    pub(crate) fn in_flight(&self) -> f64 {
        f64::from(self.outstanding() + self.repeated) - f64::from(self.arrived + self.lost)
    }

    /// Segments that have arrived since the connection was opened.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered.segments
    }

    /// Whether anything has arrived beyond a hole.
    pub(crate) fn has_hole(&self) -> bool {
        self.arrived > 0
    }

    pub(crate) fn has_lost(&self) -> bool {
        self.lost > 0
    }

    /// When the oldest was sent.
    pub(crate) fn oldest_sent(&self) -> Option<Duration> {
        self.segments.front().map(|segment| segment.sent)
    }

    /// A new segment is sent.
    pub(crate) fn push(&mut self, now: Duration, first: u64, length: u64) {
        if self.segments.is_empty() {
            (self.delivered.at, self.delivered.sent) = (now, now);
        }
        self.segments.push_back(Segment {
            first,
            length,
            sent: now,
            is_repeated: false,
            was_repeated: false,
            has_arrived: false,
            is_lost: false,
            delivered: self.delivered,
            is_application_limited: self.is_application_limited(),
        });
    }

    /// The first segment that is lost is sent again, if there is one that was not;
    /// returns its first byte and its length.
    pub(crate) fn repeat_lost(&mut self, now: Duration) -> Option<(u64, u64)> {
        if self.lost <= self.repeated {
            return None;
        }
        let is_application_limited = self.is_application_limited();
        let mut segments = self.segments.iter_mut();
        let segment = segments.find(|segment| segment.is_lost && !segment.is_repeated)?;
        (segment.is_repeated, segment.was_repeated) = (true, true);
        segment.sent = now;
        segment.delivered = self.delivered;
        segment.is_application_limited = is_application_limited;
        self.repeated += 1;
        Some((segment.first, segment.length))
    }

    /// The last segment is sent again, if it has not arrived beyond a hole.
    pub(crate) fn probe_tail(&mut self, now: Duration) -> Option<(u64, u64)> {
        let segment = self.segments.back_mut().filter(|one| !one.has_arrived)?;
        (segment.was_repeated, segment.sent) = (true, now);
        Some((segment.first, segment.length))
    }

    /// The application has nothing more to send.
    pub(crate) fn limit_by_application(&mut self) {
        self.application_limited_until = self.delivered.segments + self.in_flight().max(1.0) as u64;
    }

    fn is_application_limited(&self) -> bool {
        self.application_limited_until > self.delivered.segments
    }

    /// An acknowledgement has come, on a path of this least round-trip time.
    pub(crate) fn acknowledge(
        &mut self,
        now: Duration,
        ack: &Acknowledgement,
        min_rtt: Duration,
    ) -> Progress {
        let before = self.delivered.segments;
        let prior_in_flight = self.in_flight();
        let mut arrivals = Arrivals::default();
        for (from, to) in ack.blocks {
            self.take_block(now, (from.max(ack.next), to), min_rtt, &mut arrivals);
        }
        let acknowledged = self.take_front(now, ack.next, min_rtt, &mut arrivals);
        if arrivals.is_ambiguous {
            (arrivals.first_sent, arrivals.last_sent) = (None, None);
        }
        let beyond = arrivals.last_beyond_hole;
        let since = |sent: Option<Duration>| sent.or(beyond).map(|sent| now - sent);
        let rtt = since(arrivals.last_sent);
        let mut taken = Acknowledged {
            segments: (self.delivered.segments - before) as u32,
            rtt,
            prior_in_flight,
            delay: ack.delay,
            ..Acknowledged::default()
        };
        if let Some(segment) = arrivals.newest {
            self.newest = self.newest.max(Some((segment.sent, segment.first)));
            if taken.segments > 0 {
                self.measure_rate(
                    now,
                    &segment,
                    rtt.unwrap_or(min_rtt).min(min_rtt),
                    &mut taken,
                );
            }
        }
        Progress {
            ack: taken,
            first_rtt: since(arrivals.first_sent),
            acknowledged,
        }
    }

    /// Data has arrived beyond a hole.
    fn take_block(
        &mut self,
        now: Duration,
        (from, to): (u64, u64),
        min_rtt: Duration,
        arrivals: &mut Arrivals,
    ) {
        let start = self
            .segments
            .partition_point(|segment| segment.first < from);
        for segment in self.segments.range_mut(start..) {
            if segment.end() > to {
                break;
            }
            if segment.has_arrived {
                continue;
            }
            segment.has_arrived = true;
            self.arrived += 1;
            self.lost -= u32::from(std::mem::take(&mut segment.is_lost));
            self.repeated -= u32::from(std::mem::take(&mut segment.is_repeated));
            self.delivered.segments += 1;
            if !segment.was_repeated {
                arrivals.last_beyond_hole = Some(segment.sent);
            }
            arrivals.add(*segment, now, min_rtt);
        }
    }

    /// Data has arrived in order up to `next`; returns that if it is new.
    fn take_front(
        &mut self,
        now: Duration,
        next: u64,
        min_rtt: Duration,
        arrivals: &mut Arrivals,
    ) -> Option<u64> {
        let mut acknowledged = None;
        while let Some(&segment) = self.segments.front().filter(|one| one.end() <= next) {
            self.segments.pop_front();
            acknowledged = Some(segment.end());
            if segment.has_arrived {
                self.arrived -= 1;
                continue;
            }
            self.delivered.segments += 1;
            self.lost -= u32::from(segment.is_lost);
            self.repeated -= u32::from(segment.is_repeated);
            if segment.was_repeated {
                arrivals.is_ambiguous = true;
            } else {
                arrivals.first_sent.get_or_insert(segment.sent);
                arrivals.last_sent = Some(segment.sent);
            }
            arrivals.add(segment, now, min_rtt);
        }
        acknowledged
    }

    fn measure_rate(
        &mut self,
        now: Duration,
        newest: &Segment,
        min_rtt: Duration,
        taken: &mut Acknowledged,
    ) {
        let then = newest.delivered;
        let sending = newest.sent.saturating_sub(then.sent);
        let took = now.saturating_sub(then.at).max(sending);
        (self.delivered.at, self.delivered.sent) = (now, newest.sent);
        // Shorter ones are of acknowledgements that came together.
        if !took.is_zero() && took >= min_rtt {
            let segments = self.delivered.segments - then.segments;
            let bytes = (segments * (SEGMENT + HEADERS)) as f64;
            taken.rate = Some(bytes / took.as_secs_f64());
        }
        taken.delivered_before = then.segments;
        taken.is_application_limited = newest.is_application_limited;
    }

    /// Takes segments for lost that were sent before one that has arrived, by more than
    /// a tolerance of reordering unless there are many of those; returns how many, and
    /// when to look again.
    pub(crate) fn detect_lost(
        &mut self,
        now: Duration,
        tolerance: Duration,
    ) -> (u32, Option<Duration>) {
        let Some(newest) = self.newest else {
            return (0, None);
        };
        let tolerance = if self.arrived >= DUPLICATES {
            Duration::ZERO
        } else {
            tolerance
        };
        let rtt = now.saturating_sub(newest.0);
        let (mut lost, mut look_again): (u32, Option<Duration>) = (0, None);
        for segment in &mut self.segments {
            if segment.has_arrived || segment.is_lost && !segment.is_repeated {
                continue;
            }
            if (segment.sent, segment.first) >= newest {
                // Later ones were sent later, but for those that were sent again.
                if !segment.was_repeated && segment.sent > newest.0 {
                    break;
                }
                continue;
            }
            let due = segment.sent + rtt + tolerance;
            if due <= now || tolerance.is_zero() {
                self.lost += u32::from(!segment.is_lost);
                segment.is_lost = true;
                self.repeated -= u32::from(std::mem::take(&mut segment.is_repeated));
                lost += 1;
            } else {
                look_again = Some(look_again.map_or(due, |other| other.min(due)));
            }
        }
        (lost, look_again)
    }

    /// Takes all for lost that have not arrived: a timer has expired.
    pub(crate) fn lose_all(&mut self) {
        (self.lost, self.repeated) = (0, 0);
        for segment in &mut self.segments {
            segment.is_repeated = false;
            segment.is_lost = !segment.has_arrived;
            self.lost += u32::from(segment.is_lost);
        }
    }
}
