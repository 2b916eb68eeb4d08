//! What is taken from the runs at a bottleneck, and what is required of it: lines
//! A, B and C of what must hold.

use crate::report::bottlenecks::cell::Cell;
use crate::report::select::{FILLED, Runs};
use crate::results::{ALONE, RunSummary};
use crate::verdict::{Bound, Verdict};
use lab_run::record::{CallFigures, Summary};
use lab_run::statistics::{Spread, median};

/// The download that yields to nobody, with which the others are compared.
pub(crate) const CURL: &str = "curl";

/// quinn's CUBIC over HTTP/3, which nothing holds back.
const QUINN: &str = "http3";

/// What a download over HTTP/3 carries alone at least, % of what that carries.
const OF_QUINN: f64 = 97.0;

/// Downloads that see a link at its receiver only.
const RECEIVERS: [&str; 3] = ["fairbat-no-deadline", "fairbat-observed", "http3-get"];

/// How much later 99 % of a call's packets may be there, ms.
const CALL_LATER_MS: f64 = 10.0;

/// How many more of them may be lost, %.
const CALL_LOST: f64 = 0.1;

/// On bottlenecks on which nothing was tuned, a bound is to hold within this part
/// of it.
pub(crate) const UNTUNED: f64 = 0.1;

/// A contender, and the congestion control of its server if it heeds that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Subject<'a> {
    pub(crate) contender: &'a str,
    pub(crate) server: Option<&'a str>,
}

/// A figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Figure {
    /// Goodput that a greedy CUBIC flow keeps, %.
    Greedy,
    /// The same of a greedy BBR flow.
    GreedyBbr,
    /// Goodput that a live stream keeps, %.
    Stream,
    /// What is used of what it leaves, %.
    BesideStream,
    /// How much later 99 % of a call's packets are there, ms.
    CallLater,
    /// How many more of them are lost, % of all.
    CallLost,
    /// What is carried alone, % of what curl carries.
    Alone,
    /// The same beside quinn's CUBIC over HTTP/3.
    OfQuinn,
    /// What is used of the link alone, %; nothing is required of it.
    UsedAlone,
    /// The queue that stands then, ms.
    Queue,
    /// How much longer web fetches take in the mean, %.
    Web,
    /// What is used of what they leave, %.
    BesideWeb,
}

impl Figure {
    /// All that something is required of, in the order of the page, with the line
    /// that requires it.
    pub(crate) const ALL: [(&'static str, Self); 10] = [
        ("A", Self::Greedy),
        ("A", Self::GreedyBbr),
        ("A", Self::Stream),
        ("A", Self::BesideStream),
        ("A", Self::CallLater),
        ("A", Self::CallLost),
        ("B", Self::Alone),
        ("B", Self::Queue),
        ("C", Self::Web),
        ("C", Self::BesideWeb),
    ];

    /// Those that tell of harm to others.
    pub(crate) const HARMS: [Self; 6] = [
        Self::Greedy,
        Self::GreedyBbr,
        Self::Stream,
        Self::CallLater,
        Self::CallLost,
        Self::Web,
    ];

    /// For people.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Greedy => "a greedy CUBIC flow keeps, %",
            Self::GreedyBbr => "a greedy BBR flow keeps, %",
            Self::Stream => "a live stream keeps, %",
            Self::BesideStream => "used of what the stream leaves, %",
            Self::CallLater => "99 % of a call's packets are later by, ms",
            Self::CallLost => "more of a call's packets lost, %",
            Self::Alone => "carried alone, % of what curl carries",
            Self::OfQuinn => "carried alone, % of what quinn's CUBIC carries",
            Self::UsedAlone => "used of the link alone, %",
            Self::Queue => "standing queue alone, ms",
            Self::Web => "web fetches take longer by, %",
            Self::BesideWeb => "used of what web fetches leave, %",
        }
    }

    /// What one of [`Self::HARMS`] tells about.
    pub(crate) fn harmed(self) -> &'static str {
        match self {
            Self::Greedy => "a greedy CUBIC flow",
            Self::GreedyBbr => "a greedy BBR flow",
            Self::Stream => "a live stream",
            Self::CallLater => "the delay of a call",
            Self::CallLost => "the loss of a call",
            Self::Web => "web fetches",
            _ => self.title(),
        }
    }

    /// Whether more of it is better.
    pub(crate) fn is_to_be_high(self) -> bool {
        !matches!(
            self,
            Self::CallLater | Self::CallLost | Self::Queue | Self::Web
        )
    }

    /// Digits behind the point.
    pub(crate) fn digits(self) -> usize {
        match self {
            Self::CallLost => 2,
            _ => 1,
        }
    }

    fn scenario(self) -> &'static str {
        match self {
            Self::Greedy => "bottleneck-greedy",
            Self::GreedyBbr => "bottleneck-greedy-bbr",
            Self::Stream | Self::BesideStream | Self::CallLater | Self::CallLost => {
                "bottleneck-stream"
            }
            Self::Alone | Self::OfQuinn | Self::UsedAlone | Self::Queue => "bottleneck-alone",
            Self::Web | Self::BesideWeb => "bottleneck-web",
        }
    }

    /// Of each seed.
    pub(crate) fn values(self, subject: Subject<'_>, cell: &Cell, runs: &Runs<'_>) -> Vec<f64> {
        let is_here = |run: &RunSummary| {
            run.scenario == self.scenario() && run.variant.as_deref() == Some(cell.name.as_str())
        };
        // Of itself, curl carries all.
        if self == Self::Alone && subject.contender == CURL {
            return Vec::new();
        }
        let own = runs.iter().filter(|run| {
            is_here(run)
                && run.contender == subject.contender
                && run.congestion_control.as_deref() == subject.server
        });
        let values = own.filter_map(|run| {
            let other = |contender: &str| {
                let is_it = |one: &&RunSummary| {
                    is_here(one) && one.contender == contender && one.seed == run.seed
                };
                // That with the same server, if there is one.
                let is_same = |one: &&RunSummary| one.congestion_control == run.congestion_control;
                let same = runs.iter().filter(is_it).find(is_same);
                Some(&same.or_else(|| runs.iter().find(is_it))?.summary)
            };
            let own = &run.summary;
            match self {
                Self::BesideStream | Self::BesideWeb | Self::UsedAlone => {
                    Some(1e2 * own.yielding?.spare_used)
                }
                Self::Queue => Some(own.yielding?.queue_median_ms),
                Self::Alone => of(own.goodput_mbit(), other(CURL)?.goodput_mbit()),
                Self::OfQuinn => of(own.goodput_mbit(), other(QUINN)?.goodput_mbit()),
                Self::Greedy | Self::GreedyBbr | Self::Stream => {
                    let first = |it: &Summary| it.foreground_mbit.first().copied();
                    of(first(own)?, first(other(ALONE)?)?)
                }
                Self::CallLater => worst(own, other(ALONE)?, |call| call.delay_p99_ms),
                Self::CallLost => worst(own, other(ALONE)?, |call| Some(1e2 * call.loss)),
                Self::Web => Some(of(own.fetch_mean_s?, other(ALONE)?.fetch_mean_s?)? - 100.0),
            }
        });
        values.collect()
    }

    /// What it must be there, and of how many seeds of curl's that is, where it depends on
    /// them. `None` where nobody knows what curl does, and for curl itself, which is not
    /// judged by what it does.
    fn bound(
        self,
        subject: Subject<'_>,
        cell: &Cell,
        runs: &Runs<'_>,
    ) -> Option<(Bound, Option<usize>)> {
        let curl = || self.values_of_curl(subject, cell, runs);
        let bound = match self {
            Self::Greedy if cell.hides_others() && RECEIVERS.contains(&subject.contender) => {
                let curl = curl();
                let worst = Spread::of(&curl).map_or(f64::INFINITY, |curl| curl.least);
                let rests = (worst < cell.greedy()).then_some(curl.len());
                return Some((Bound::AtLeast(cell.greedy().min(worst)), rests));
            }
            Self::Greedy => Bound::AtLeast(cell.greedy()),
            Self::GreedyBbr => Bound::AtLeast(90.0),
            Self::Stream => Bound::AtLeast(99.0),
            Self::BesideStream => Bound::AtLeast(cell.beside_stream()),
            Self::CallLater => Bound::AtMost(CALL_LATER_MS.max(cell.two_packets_ms())),
            Self::CallLost => Bound::AtMost(CALL_LOST),
            Self::Alone => Bound::AtLeast(cell.alone()),
            Self::OfQuinn => Bound::AtLeast(OF_QUINN),
            Self::UsedAlone => return None,
            Self::Queue if subject.contender == CURL => return None,
            Self::Queue => {
                let (curl, packets) = (curl(), cell.two_packets_ms());
                let share = cell.queue() * median(&curl)?;
                let rests = (share > packets).then_some(curl.len());
                return Some((Bound::AtMost(share.max(packets)), rests));
            }
            Self::Web => Bound::AtMost(cell.web()),
            Self::BesideWeb => Bound::AtLeast(cell.beside_web()),
        };
        Some((bound, None))
    }

    /// What was measured, and whether it is what it must be, with so much more room;
    /// `None` without runs.
    pub(crate) fn judged(
        self,
        subject: Subject<'_>,
        cell: &Cell,
        runs: &Runs<'_>,
        room: f64,
    ) -> Option<Judged> {
        let values = self.values(subject, cell, runs);
        let spread = Spread::of(&values)?;
        let (bound, rests_on) = self.bound(subject, cell, runs).unzip();
        let bound = bound.map(|bound: Bound| bound.relaxed(room));
        // What is compared with few seeds of curl's is no surer than these.
        let seeds = rests_on.flatten().unwrap_or(usize::MAX).min(values.len());
        let holds = bound.map(|bound| bound.holds(spread));
        let crosses = bound.is_some_and(|bound| bound.is_crossed_by(spread));
        Some(Judged {
            spread,
            bound,
            verdict: Verdict::of_seeds(holds, seeds, crosses),
        })
    }

    /// Whether it is harm by its own bound, and worse for others with this subject's
    /// mildest seed than with curl's harshest; `None` where one of them was not
    /// measured.
    pub(crate) fn is_worse_than_curl(
        self,
        subject: Subject<'_>,
        cell: &Cell,
        runs: &Runs<'_>,
    ) -> Option<bool> {
        let own = self.judged(subject, cell, runs, 0.0)?;
        let curl = Spread::of(&self.values_of_curl(subject, cell, runs))?;
        let is_worse = match self.is_to_be_high() {
            true => own.spread.most < curl.least,
            false => own.spread.least > curl.most,
        };
        Some(is_worse && own.verdict.is_bad())
    }

    /// Those of curl with the same server, or without such runs with CUBIC.
    fn values_of_curl(self, subject: Subject<'_>, cell: &Cell, runs: &Runs<'_>) -> Vec<f64> {
        let of = |server| {
            let contender = CURL;
            self.values(Subject { contender, server }, cell, runs)
        };
        let same = of(subject.server);
        if same.is_empty() {
            of(Some(FILLED))
        } else {
            same
        }
    }
}

/// A figure at a bottleneck.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judged {
    pub(crate) spread: Spread,
    pub(crate) bound: Option<Bound>,
    pub(crate) verdict: Verdict,
}

/// In per cent; `None` of nothing.
fn of(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| 100.0 * part / whole)
}

/// By how much a figure of calls grows, of the call that it grows most for.
fn worst(
    own: &Summary,
    alone: &Summary,
    figure: impl Fn(&CallFigures) -> Option<f64>,
) -> Option<f64> {
    let pairs = own.calls.iter().zip(&alone.calls);
    let grown = pairs.filter_map(|(own, alone)| Some(figure(own)? - figure(alone)?));
    grown.reduce(f64::max)
}
