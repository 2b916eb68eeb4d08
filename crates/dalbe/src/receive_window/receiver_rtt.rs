//! Which of the kernel's round-trip times of received data tell of the path.
//!
//! The kernel takes the time from an acknowledgement to the data that echoes its timestamp, and
//! averages. Such a time is longer than that of the path where the sender had nothing to send, or
//! was not allowed to: while it prepared an answer, and until its persist timer (RFC 9293, section
//! 3.8.6.1). And where only small segments come, the kernel's first value is the time in which a
//! whole window came, however long that was.

use std::time::Duration;

use super::delays::SEGMENTS_PER_UPDATE;
use super::rounds::MIN_ROUND;
use super::{LeastRtt, TIMESTAMP_TICK};
use crate::socket::TcpInfo;

/// So many segments after a wait for the sender's timer, the kernel's average (gain 1/8, an update
/// for every other segment) has forgotten nine tenths of it.
const BLURRED_SEGMENTS: u32 = 36;
/// After so many updates it has forgotten all but a millisecond of three seconds.
const FORGETTING_UPDATES: f64 = 60.0;

/// A first value is the time in which a window came if it is about as long as the time since
/// data first came, ...
const FIRST_VALUE_TOLERANCE: Duration = MIN_ROUND;
/// ... if that time is longer than a start of a bulk flow takes, ...
const MIN_FIRST_VALUE: Duration = MIN_ROUND.saturating_mul(5);
/// ... and this many times the least round-trip time.
const FIRST_VALUE_ROUND_TRIPS: u32 = 3;

/// An answer that comes no later than this many least round-trip times after the data before it
/// has not been thought about.
const ANSWER_ROUND_TRIPS: u32 = 2;

/// The kernel's round-trip times of one connection that receives.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReceiverRtt {
    /// Another program reads: nobody tells where a response begins.
    is_foreign: bool,
    /// Bytes received at the last sample.
    bytes: u64,
    /// Bytes acknowledged when data last came.
    acked: u64,
    /// When data first and last came.
    came: Option<(Duration, Duration)>,
    /// Whether the kernel had a value at the last sample.
    is_measured: bool,
    /// Segments when a piece last came.
    piece_at: Option<u32>,
    /// Updates until the average has forgotten a first value that does not tell of the path.
    updates_to_come: f64,
    /// When the last sample was.
    sampled: Duration,
}

/// How data comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArrivalPace {
    Steady,
    /// With pauses between segments.
    Pauses,
    /// Other connections have their turn.
    Waits,
}

impl ReceiverRtt {
    /// Another program reads what comes.
    pub(crate) fn of_foreign(self, is_foreign: bool) -> Self {
        Self { is_foreign, ..self }
    }

    /// Takes a sample of a connection with segments of so many bytes over a path. Returns what
    /// the kernel says, without what does not tell of the path, and whether a queue shows by it.
    pub(crate) fn update(
        &mut self,
        now: Duration,
        info: &TcpInfo,
        segment: f64,
        path: LeastRtt,
        pace: ArrivalPace,
    ) -> (TcpInfo, bool) {
        let bytes = info.bytes_received.unwrap_or(0);
        let segments = info.data_segs_in.unwrap_or(0);
        let more = bytes.saturating_sub(std::mem::replace(&mut self.bytes, bytes));
        let is_piece = self.shows_piece(more, segment, segments, pace);
        let least = path.handshake.unwrap_or_default();
        let is_answer = more > 0 && self.is_answer(now, info, least);
        let (began, _) = self.came.unwrap_or((now, now));
        if more > 0 {
            self.came = Some((began, now));
        }
        let is_first = !std::mem::replace(&mut self.is_measured, info.rcv_rtt.is_some());
        let before = std::mem::replace(&mut self.sampled, now);
        let since = |at: Duration| at.saturating_sub(began);
        let of_window = |rtt| is_of_window(rtt, since(before), since(now), least);
        if is_first && info.rcv_rtt.is_some_and(of_window) {
            self.updates_to_come = FORGETTING_UPDATES;
        } else {
            let ticks = now.saturating_sub(before).div_duration_f64(TIMESTAMP_TICK);
            // Smaller segments make none.
            let updates = (more as f64 / segment).floor() / f64::from(SEGMENTS_PER_UPDATE);
            self.updates_to_come = (self.updates_to_come - updates.min(ticks)).max(0.0);
        }
        if self.updates_to_come > 0.0 {
            let unknown = TcpInfo {
                rcv_rtt: None,
                ..*info
            };
            return (unknown, false);
        }
        let is_late = self.is_foreign && (is_piece || is_answer || is_first);
        (*info, !is_late)
    }

    /// Whether the round-trip time is that of a piece of a segment, which has waited for the
    /// sender's timer. Where pieces follow each other, the kernel takes them for segments, and its
    /// average needs some real ones to forget how long. `more` are the bytes since the last sample.
    fn shows_piece(&mut self, more: u64, segment: f64, segments: u32, pace: ArrivalPace) -> bool {
        let is_piece = pace != ArrivalPace::Steady && (more as f64) < segment;
        if is_piece && pace == ArrivalPace::Waits {
            self.piece_at = Some(segments);
        }
        let since = self.piece_at.map(|at| segments.wrapping_sub(at));
        is_piece || since.is_some_and(|since| since < BLURRED_SEGMENTS)
    }

    /// Whether the data that has come answers a request, and the time to it is not that of the
    /// path alone: the sender may have thought.
    fn is_answer(&mut self, now: Duration, info: &TcpInfo, least: Duration) -> bool {
        let acked = info.bytes_acked.unwrap_or(0);
        let is_asked = acked > std::mem::replace(&mut self.acked, acked);
        let prompt = least.max(MIN_ROUND) * ANSWER_ROUND_TRIPS;
        is_asked && self.came.is_some_and(|(_, last)| now > last + prompt)
    }
}

/// Whether a first value of the kernel is the time in which all data came so far: between the
/// `last` sample and `this` one, so much time after data first came.
fn is_of_window(rtt: Duration, last: Duration, this: Duration, least: Duration) -> bool {
    let between = last.saturating_sub(FIRST_VALUE_TOLERANCE)..=this + FIRST_VALUE_TOLERANCE;
    this >= MIN_FIRST_VALUE && rtt > least * FIRST_VALUE_ROUND_TRIPS && between.contains(&rtt)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: f64 = 1448.0;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn info(rcv_rtt: Option<u64>, bytes: u64, acked: u64) -> TcpInfo {
        TcpInfo {
            rcv_rtt: rcv_rtt.map(ms),
            rtt: Some(ms(20)),
            bytes_received: Some(bytes),
            bytes_acked: Some(acked),
            data_segs_in: Some((bytes / 1448) as u32),
            ..TcpInfo::parse(&[0; 240]).unwrap()
        }
    }

    fn path() -> LeastRtt {
        LeastRtt {
            base: None,
            handshake: Some(ms(20)),
        }
    }

    #[test]
    fn the_time_in_which_a_window_came_is_none_of_the_path() {
        let mut times = ReceiverRtt::default();
        for look in 1..150_u64 {
            let seen = info(None, 400 * look, 100 * look);
            times.update(ms(20 * look), &seen, SEGMENT, path(), ArrivalPace::Steady);
        }
        let bytes = 60_000_u64;
        let mut look = |at, rtt, more| {
            let seen = info(Some(rtt), bytes + more, 15_000);
            times.update(ms(at), &seen, SEGMENT, path(), ArrivalPace::Steady)
        };
        let (seen, counts) = look(3000, 2960, 0);
        assert_eq!((seen.rcv_rtt, counts), (None, false));
        for small in 1..200 {
            let (_, counts) = look(3000 + 20 * small, 2960, 400 * small);
            assert!(!counts, "{small} small answers more");
        }
        let (seen, counts) = look(7020, 700, 80_000 + 100 * 1448);
        assert_eq!((seen.path_rtt(), counts), (Some(ms(20)), false));
        let (seen, counts) = look(7120, 22, 80_000 + 150 * 1448);
        assert_eq!((seen.rcv_rtt, counts), (Some(ms(22)), true));
    }

    #[test]
    fn a_first_value_is_known_however_late_it_is_seen() {
        let mut times = ReceiverRtt::default();
        for (at, bytes) in [(0, 400), (2000, 800)] {
            let seen = info(None, bytes, 0);
            times.update(ms(at), &seen, SEGMENT, path(), ArrivalPace::Steady);
        }
        let seen = info(Some(2010), 1200, 0);
        let (_, counts) = times.update(ms(4000), &seen, SEGMENT, path(), ArrivalPace::Steady);
        assert!(!counts);
    }

    #[test]
    fn a_piece_of_a_segment_shows_no_queue_to_who_does_not_read_it_himself() {
        let look = |is_foreign: bool, pace: ArrivalPace| {
            let mut times = ReceiverRtt::default().of_foreign(is_foreign);
            for (at, bytes) in [(0, 9000), (20, 10_448), (200, 11_600)] {
                let seen = info(Some(21), bytes, 100);
                let (_, counts) = times.update(ms(at), &seen, SEGMENT, path(), pace);
                if at == 200 {
                    return counts;
                }
            }
            unreachable!("there is a last one")
        };
        assert!(!look(true, ArrivalPace::Waits) && !look(true, ArrivalPace::Pauses));
        assert!(look(true, ArrivalPace::Steady) && look(false, ArrivalPace::Pauses));
    }

    #[test]
    fn a_first_value_beside_a_queue_is_of_the_path() {
        for (at, rtt) in [(20, 300), (40, 60), (3000, 40), (3000, 500)] {
            let mut times = ReceiverRtt::default();
            for before in [0, at - 20] {
                let seen = info(None, 700, 0);
                times.update(ms(before), &seen, SEGMENT, path(), ArrivalPace::Steady);
            }
            let (seen, counts) = times.update(
                ms(at),
                &info(Some(rtt), 9000, 0),
                SEGMENT,
                path(),
                ArrivalPace::Steady,
            );
            assert_eq!((seen.rcv_rtt, counts), (Some(ms(rtt)), true), "{at}, {rtt}");
        }
    }

    #[test]
    fn what_a_server_thinks_about_is_no_queue() {
        let look = |is_foreign: bool, at: u64, acked: u64| {
            let mut times = ReceiverRtt::default().of_foreign(is_foreign);
            times.update(
                ms(0),
                &info(None, 9000, 100),
                SEGMENT,
                path(),
                ArrivalPace::Steady,
            );
            times.update(
                ms(20),
                &info(Some(21), 9000, 100),
                SEGMENT,
                path(),
                ArrivalPace::Steady,
            );
            let seen = info(Some(60), 19_000, acked);
            times
                .update(ms(at), &seen, SEGMENT, path(), ArrivalPace::Steady)
                .1
        };
        assert!(!look(true, 320, 200), "an answer after 300 ms");
        assert!(look(true, 320, 100), "nobody has asked");
        assert!(look(true, 40, 200), "it came at once");
        assert!(look(false, 320, 200), "responses are told");
    }
}
