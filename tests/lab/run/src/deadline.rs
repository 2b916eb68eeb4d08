//! What became of transfers with deadlines, in figures. Pure: from what a
//! record holds of the contenders, without links or the foreground.

use std::ops::Range;

use dalbe::weight::MIN_WEIGHT;
use serde::{Deserialize, Serialize};

use crate::samples::{BackgroundRecord, ControlSample, Forecast, TransferRecord};
use crate::scenario::Scenario;
use crate::statistics::{deviation, mean};

/// How deadlines were kept in a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DeadlineFigures {
    /// Each transfer.
    pub transfers: Vec<TransferRecord>,
    /// Whether all were there in time.
    pub met: bool,
    /// Lateness of the latest, s; 0 in time. At least that when `is_done` is
    /// not so.
    pub late_s: f64,
    /// The largest lateness in parts of the time that the transfer had.
    pub late_share: f64,
    /// Whether all were there at the end of the run.
    pub is_done: bool,
    /// Seconds from the beginning until the last was there, or until the end
    /// of the run.
    pub finish_s: f64,
    /// When and how `fairbat` first said that it cannot meet them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<Forecast>,
    /// Of all that had been moved when the transfer due first was there, the share
    /// that was its own, 0 to 1: 1 when nothing was moved before its time. `None`
    /// with one transfer, and where the contender does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_share: Option<f64>,
    /// What our control loop did; `None` for a contender without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<ControlFigures>,
    /// After each fault, how long it took until all hosts took part in the lane of their site, as
    /// [`FaultRecord::recovered_s`](crate::samples::FaultRecord::recovered_s).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recovered_s: Vec<Option<f64>>,
}

impl DeadlineFigures {
    /// Of this background; `None` unless it was a transfer with a deadline,
    /// and long enough to know what became of it.
    #[must_use]
    pub fn of(setup: &Scenario, background: &[BackgroundRecord]) -> Option<Self> {
        let all = background.iter().flat_map(|one| &one.transfers);
        let transfers: Vec<_> = all.filter(|one| one.met.is_some()).cloned().collect();
        let began = background.iter().filter_map(|one| one.began);
        let began = began.reduce(f64::min).filter(|_| !transfers.is_empty())?;
        let done = transfers.iter().map(|one| one.done);
        let done: Option<Vec<_>> = done.collect();
        let done = done.and_then(|all| all.into_iter().reduce(f64::max));
        let end = done.unwrap_or(setup.duration_s);
        let late = |one: &TransferRecord| one.late_s.unwrap_or_default();
        let share = |one: &TransferRecord| one.deadline_s.map_or(0.0, |time| late(one) / time);
        let samples = background.iter().map(|one| one.control.as_slice());
        let samples = samples.into_iter().find(|samples| !samples.is_empty());
        Some(Self {
            met: transfers.iter().all(|one| one.met == Some(true)),
            late_s: transfers.iter().map(late).fold(0.0, f64::max),
            late_share: transfers.iter().map(share).fold(0.0, f64::max),
            is_done: done.is_some(),
            finish_s: end - began,
            forecast: background.iter().find_map(|one| one.forecast),
            first_share: background.iter().find_map(first_share),
            control: samples.and_then(|samples| {
                ControlFigures::of(samples, began..end, setup.pressure_until_s)
            }),
            recovered_s: background
                .iter()
                .flat_map(|one| one.faults.iter().map(|fault| fault.recovered_s))
                .collect(),
            transfers,
        })
    }

    /// The names of the transfers in the order in which they were there.
    #[must_use]
    pub fn order(&self) -> Vec<&str> {
        let mut done: Vec<_> = self.transfers.iter().collect();
        done.retain(|one| one.place.is_some());
        done.sort_by_key(|one| one.place);
        done.into_iter().map(|one| one.name.as_str()).collect()
    }

    /// Whether they were there in the order of their deadlines, as far as they
    /// were there.
    #[must_use]
    pub fn is_in_order(&self) -> bool {
        let mut by_deadline: Vec<_> = self.transfers.iter().collect();
        by_deadline.sort_by(|a, b| {
            a.deadline_s
                .unwrap_or(0.0)
                .total_cmp(&b.deadline_s.unwrap_or(0.0))
        });
        let names = by_deadline.iter().map(|one| one.name.as_str());
        names.take(self.order().len()).eq(self.order())
    }
}

/// See [`DeadlineFigures::first_share`].
fn first_share(background: &BackgroundRecord) -> Option<f64> {
    let all = background.transfers.iter().enumerate();
    let due = all.filter_map(|(index, one)| Some((index, one.deadline_s?, one.done?)));
    let (first, _, done) = due.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let mut told = background.progress.iter().rev();
    let bytes = &told.find(|told| told.t <= done)?.bytes;
    let sum: u64 = bytes.iter().sum();
    (bytes.len() > 1 && sum > 0).then(|| bytes[first] as f64 / sum as f64)
}

/// w is at its floor up to here; what is printed and rounded may be a little
/// more.
const LOW_W: f64 = MIN_WEIGHT + 0.01;

/// m is at its floor of one connection up to here, for the same reason.
const LOW_M: f64 = 1.05;

/// What w and m did while a transfer lived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ControlFigures {
    /// Mean of w.
    pub w_mean: f64,
    /// Standard deviation of w over the last half of the transfer's life.
    pub w_deviation: f64,
    /// How often m changed, rounded to whole connections.
    pub m_changes: usize,
    /// The largest m.
    pub m_most: f64,
    /// The most connections. Of several hosts it is the sum of one look at each in a second.
    #[serde(default)]
    pub active_most: u32,
    /// How long the transfer went on when nothing pressed any more, s; `None`
    /// where a scenario does not say from when on, or it was over before.
    pub free_s: Option<f64>,
    /// Seconds from then until w and m were at their floors for good; `None` if
    /// never.
    pub settled_s: Option<f64>,
}

impl ControlFigures {
    /// Of samples in their order, of which those within `life` (s) count;
    /// `None` without any.
    #[must_use]
    pub fn of(
        samples: &[ControlSample],
        life: Range<f64>,
        pressure_until: Option<f64>,
    ) -> Option<Self> {
        let lived = samples.iter().filter(|sample| life.contains(&sample.t));
        let lived: Vec<_> = lived.collect();
        let half = f64::midpoint(life.start, life.end);
        let w: Vec<f64> = lived.iter().map(|sample| sample.w).collect();
        let late = lived.iter().filter(|sample| sample.t >= half);
        let late: Vec<f64> = late.map(|sample| sample.w).collect();
        let free = pressure_until.filter(|until| *until < life.end);
        let whole = |sample: &ControlSample| sample.m.round();
        Some(Self {
            w_mean: mean(&w)?,
            w_deviation: deviation(&late).unwrap_or_default(),
            m_changes: lived
                .windows(2)
                .filter(|pair| whole(pair[0]) != whole(pair[1]))
                .count(),
            m_most: lived.iter().map(|sample| sample.m).fold(0.0, f64::max),
            active_most: lived.iter().map(|sample| sample.active).max().unwrap_or(0),
            free_s: free.map(|until| life.end - until),
            settled_s: free.and_then(|until| Some(settled(&lived, until)? - until)),
        })
    }
}

/// From when on after this moment both are at their floors; `None` if they are
/// not at the end.
fn settled(samples: &[&ControlSample], until: f64) -> Option<f64> {
    let is_low = |sample: &&ControlSample| sample.w <= LOW_W && sample.m <= LOW_M;
    let free = samples.partition_point(|sample| sample.t < until);
    let free = &samples[free..];
    let low = free
        .iter()
        .rev()
        .take_while(|sample| is_low(sample))
        .count();
    match free.len() - low {
        // They were there already, at the last sample before at the latest.
        0 if low > 0 => Some(until),
        high => free.get(high).map(|sample| sample.t),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::Progress;

    fn setup() -> Scenario {
        let text = "description = \"a test\"\nduration_s = 80.0\nmeasure_from_s = 2.0\n\
                    [[link]]\nrate_mbit = 10.0\ndelay_ms = 20.0\nqueue = { bdp = 1.0 }\n";
        toml::from_str(text).unwrap()
    }

    fn transfer(name: &str, deadline: f64, late: f64, place: Option<usize>) -> TransferRecord {
        TransferRecord {
            name: name.to_owned(),
            bytes: 1_000_000,
            deadline_s: Some(deadline),
            done: place.map(|_| 2.0 + deadline + late),
            met: Some(late <= 0.0),
            late_s: Some(late.max(0.0)),
            took_s: place.map(|_| deadline + late),
            place,
        }
    }

    fn figures(transfers: Vec<TransferRecord>) -> Option<DeadlineFigures> {
        let background = BackgroundRecord {
            began: Some(2.0),
            transfers,
            ..BackgroundRecord::default()
        };
        DeadlineFigures::of(&setup(), &[background])
    }

    #[test]
    fn one_in_time_is_not_late() {
        let figures = figures(vec![transfer("file", 60.0, -3.0, Some(1))]).unwrap();
        assert!(figures.met && figures.is_done);
        assert_eq!((figures.late_s, figures.late_share), (0.0, 0.0));
        assert_eq!(figures.finish_s, 57.0);
    }

    #[test]
    fn one_that_is_not_there_is_as_late_as_the_end_of_the_run() {
        let figures = figures(vec![transfer("file", 60.0, 18.0, None)]).unwrap();
        assert!(!figures.met && !figures.is_done);
        assert_eq!((figures.late_s, figures.late_share), (18.0, 0.3));
        assert_eq!(figures.finish_s, 78.0);
        assert!(figures.order().is_empty());
    }

    #[test]
    fn the_latest_of_several_counts_and_so_does_their_order() {
        let all = |places: [usize; 3]| {
            figures(vec![
                transfer("c", 60.0, -1.0, Some(places[0])),
                transfer("a", 20.0, 3.0, Some(places[1])),
                transfer("b", 40.0, 4.0, Some(places[2])),
            ])
            .unwrap()
        };
        let figures = all([3, 1, 2]);
        assert!(!figures.met);
        assert_eq!((figures.late_s, figures.late_share), (4.0, 0.15));
        assert_eq!(figures.finish_s, 59.0);
        assert_eq!(figures.order(), ["a", "b", "c"]);
        assert!(figures.is_in_order());
        assert!(!all([1, 2, 3]).is_in_order());
    }

    #[test]
    fn what_was_moved_before_its_time_is_seen() {
        let told = |t, bytes: [u64; 2]| Progress {
            t,
            bytes: bytes.to_vec(),
        };
        let mut background = BackgroundRecord {
            began: Some(2.0),
            transfers: vec![
                transfer("later", 60.0, -3.0, Some(2)),
                transfer("first", 20.0, -2.0, Some(1)),
            ],
            // The first was there at 20 s.
            progress: vec![
                told(10.0, [0, 50]),
                told(19.5, [10, 90]),
                told(21.0, [30, 100]),
            ],
            ..BackgroundRecord::default()
        };
        let share = |background: &BackgroundRecord| {
            let figures = DeadlineFigures::of(&setup(), std::slice::from_ref(background));
            figures.unwrap().first_share
        };
        assert_eq!(share(&background), Some(0.9));
        background.progress.clear();
        assert_eq!(share(&background), None);
    }

    #[test]
    fn without_a_deadline_there_are_none() {
        assert_eq!(figures(Vec::new()), None);
        let free = TransferRecord {
            done: Some(9.0),
            ..TransferRecord::default()
        };
        assert_eq!(figures(vec![free]), None);
        assert_eq!(DeadlineFigures::of(&setup(), &[]), None);
    }

    fn sample(t: f64, w: f64, m: f64) -> ControlSample {
        ControlSample {
            t,
            n: 0.0,
            m,
            active: 1,
            w,
            zeta: None,
            rate: 0.0,
        }
    }

    /// One sample a second from 3 s, of a transfer from 2 s until after the
    /// last.
    fn control_figures(all: &[(f64, f64)], pressure_until: Option<f64>) -> ControlFigures {
        let samples = all.iter().zip(3_u32..);
        let samples: Vec<_> = samples
            .map(|(&(w, m), second)| sample(f64::from(second), w, m))
            .collect();
        let life = 2.0..3.0 + all.len() as f64;
        ControlFigures::of(&samples, life, pressure_until).unwrap()
    }

    #[test]
    fn w_is_judged_by_its_second_half_and_m_by_its_changes() {
        let rising = [(0.2, 1.0), (0.6, 1.4), (1.0, 1.6), (0.6, 2.4), (1.0, 1.2)];
        let figures = control_figures(&rising, None);
        assert!((figures.w_mean - 0.68).abs() < 1e-9);
        // The life is from 2 s to 8 s: of 1, 0.6 and 1.
        assert!((figures.w_deviation - 0.4 * 2_f64.sqrt() / 3.0).abs() < 1e-9);
        assert_eq!(figures.m_changes, 2);
        assert_eq!(figures.m_most, 2.4);
        assert_eq!((figures.free_s, figures.settled_s), (None, None));
    }

    #[test]
    fn floors_are_reached_when_they_are_not_left_again() {
        let low = (0.02, 1.0);
        let all = [(1.0, 2.0), (0.5, 1.0), low, (0.02, 1.2), low, low];
        assert_eq!(control_figures(&all, Some(3.5)).settled_s, Some(3.5));
        assert_eq!(control_figures(&all, Some(3.5)).free_s, Some(5.5));
        assert_eq!(control_figures(&all, Some(6.5)).settled_s, Some(0.0));
        let never = [low, low, (0.07, 1.0)];
        assert_eq!(control_figures(&never, Some(3.5)).settled_s, None);
    }

    #[test]
    fn a_transfer_that_was_over_before_has_nothing_to_show() {
        let figures = control_figures(&[(0.05, 1.0)], Some(30.0));
        assert_eq!((figures.free_s, figures.settled_s), (None, None));
        assert_eq!(ControlFigures::of(&[], 0.0..9.0, None), None);
    }
}
