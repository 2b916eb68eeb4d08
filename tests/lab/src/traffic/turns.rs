//! When a source sends and when it is silent. Knows nothing of networks.

use std::time::Duration;

use super::Span;

/// The turns of a source, counted from its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turns {
    /// From the first turn to the end of the last.
    pub(super) span: Span,
    /// Length of a turn of sending; above 0.
    pub(super) on: Duration,
    /// Length of a pause.
    pub(super) off: Duration,
}

/// What to do, and until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Send.
    On(Duration),
    /// Be silent.
    Off(Duration),
    /// End.
    Over,
}

impl Turns {
    /// One turn that lasts for all of it.
    pub(super) fn always(span: Span) -> Self {
        Self {
            span,
            on: span.length(),
            off: Duration::ZERO,
        }
    }

    /// What to do now.
    pub(super) fn at(&self, now: Duration) -> Turn {
        let Span { start, stop } = self.span;
        if now >= stop {
            return Turn::Over;
        }
        let Some(since) = now.checked_sub(start) else {
            return Turn::Off(start);
        };
        let begun = now - remainder(since, self.on + self.off);
        let pause = begun + self.on;
        if now < pause {
            Turn::On(pause.min(stop))
        } else {
            Turn::Off((pause + self.off).min(stop))
        }
    }
}

/// What `length` is longer than a multiple of `period`.
fn remainder(length: Duration, period: Duration) -> Duration {
    let nanos = length.as_nanos() % period.as_nanos();
    Duration::from_nanos(u64::try_from(nanos).expect("shorter than 584 years"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn turns_alternate_from_the_start() {
        let turns = Turns {
            span: Span {
                start: seconds(1.0),
                stop: seconds(8.0),
            },
            on: seconds(2.0),
            off: seconds(3.0),
        };
        let expected = [
            (0.5, Turn::Off(seconds(1.0))),
            (1.0, Turn::On(seconds(3.0))),
            (2.9, Turn::On(seconds(3.0))),
            (3.0, Turn::Off(seconds(6.0))),
            (5.9, Turn::Off(seconds(6.0))),
            (6.0, Turn::On(seconds(8.0))),
            (8.0, Turn::Over),
        ];
        for (now, turn) in expected {
            assert_eq!(turns.at(seconds(now)), turn, "at {now} s");
        }
    }

    #[test]
    fn no_turn_lasts_longer_than_the_source() {
        let span = Span {
            start: seconds(1.0),
            stop: seconds(4.0),
        };
        let turns = Turns {
            span,
            on: seconds(1.0),
            off: seconds(9.0),
        };
        assert_eq!(turns.at(seconds(2.5)), Turn::Off(seconds(4.0)));
        assert_eq!(Turns::always(span).at(seconds(3.9)), Turn::On(seconds(4.0)));
        assert_eq!(Turns::always(span).at(seconds(4.0)), Turn::Over);
    }
}
