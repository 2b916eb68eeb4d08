//! What all hosts of a site did as one record: sums, and the largest weight.

use std::collections::BTreeMap;

use crate::samples::{BackgroundRecord, ControlSample, FaultRecord, Progress, SiteSample};

/// One record of those of the hosts, each with its name, in the order of the scenario's
/// transfers.
pub(crate) fn merged<'a>(
    all: impl Iterator<Item = (&'a str, BackgroundRecord)>,
) -> BackgroundRecord {
    let (names, all): (Vec<_>, Vec<_>) = all.unzip();
    let failures = names.iter().zip(&all);
    let mut failures =
        failures.filter_map(|(name, one)| Some(format!("{name}: {}", one.failure.as_ref()?)));
    let done: Option<Vec<_>> = all.iter().map(|one| one.done).collect();
    let bytes: Option<Vec<_>> = all.iter().map(|one| one.bytes).collect();
    let cpu_s: Vec<_> = all.iter().filter_map(|one| one.cpu_s).collect();
    BackgroundRecord {
        control: control(&all),
        progress: progress(&all),
        done: done.and_then(|all| all.into_iter().reduce(f64::max)),
        bytes: bytes.map(|all| all.into_iter().sum()),
        cpu_s: (!cpu_s.is_empty()).then(|| cpu_s.iter().sum()),
        failure: failures.next(),
        held_by: all.iter().find_map(|one| one.held_by.clone()),
        transfers: all.into_iter().flat_map(|one| one.transfers).collect(),
        ..BackgroundRecord::default()
    }
}

/// The second in which a moment is.
fn second(t: f64) -> i64 {
    t.floor() as i64
}

/// The samples of each second.
fn control(all: &[BackgroundRecord]) -> Vec<ControlSample> {
    let mut sums: BTreeMap<i64, ControlSample> = BTreeMap::new();
    for sample in all.iter().flat_map(|one| last_of_each(&one.control)) {
        let add = |sum: &mut ControlSample| {
            sum.n += sample.n;
            sum.m += sample.m;
            sum.active += sample.active;
            sum.rate += sample.rate;
            sum.w = sum.w.max(sample.w);
            let zeta = [sum.zeta, sample.zeta].into_iter().flatten();
            sum.zeta = zeta.reduce(|all, one| all + one);
        };
        let second = second(sample.t);
        sums.entry(second).and_modify(add).or_insert(ControlSample {
            t: second as f64,
            ..*sample
        });
    }
    sums.into_values().collect()
}

/// The last sample in each second.
fn last_of_each(samples: &[ControlSample]) -> impl Iterator<Item = &ControlSample> {
    samples
        .chunk_by(|one, next| second(one.t) == second(next.t))
        .filter_map(|chunk| chunk.last())
}

/// How far each was in each second. They tell it at moments of their own.
fn progress(all: &[BackgroundRecord]) -> Vec<Progress> {
    let told = || all.iter().flat_map(|one| &one.progress);
    let first = told().map(|told| second(told.t)).min();
    let last = told().map(|told| second(told.t)).max();
    let (Some(first), Some(last)) = (first, last) else {
        return Vec::new();
    };
    let at = |t: f64| {
        let bytes = all.iter().map(|one| {
            let until = one.progress.partition_point(|told| told.t <= t);
            let before = until.checked_sub(1).map(|index| &one.progress[index]);
            before.map_or(0, |told| told.bytes.iter().sum())
        });
        Progress {
            t,
            bytes: bytes.collect(),
        }
    };
    (first..=last + 1).map(|second| at(second as f64)).collect()
}

/// A host that tells nothing for so long before the others end has finished its work, s.
const MISSED_S: f64 = 1.0;

/// Notes of each fault how long it took until all hosts took part in the lane of their site for
/// good.
pub(crate) fn note_recovery(faults: &mut [FaultRecord], sites: &[Vec<SiteSample>]) {
    let last = |site: &Vec<SiteSample>| site.last().map(|sample| sample.t);
    let end = sites.iter().filter_map(last).fold(0.0, f64::max);
    let mut next = f64::INFINITY;
    for fault in faults.iter_mut().rev() {
        let from = fault.until.unwrap_or(fault.t);
        let of_hosts = sites.iter().map(|site| {
            let begin = site.partition_point(|sample| sample.t < from);
            let until = site.partition_point(|sample| sample.t < next);
            let ends = last(site).is_some_and(|last| last < end - MISSED_S);
            let has_finished = ends && until == site.len();
            recovered(&site[begin.min(until)..until], from).or(has_finished.then_some(0.0))
        });
        fault.recovered_s = of_hosts
            .reduce(|one, other| Some(one?.max(other?)))
            .flatten();
        next = fault.t;
    }
}

/// The same of one host, of which this is known from `from` on. A host that has told nothing since
/// then has finished its work, and counts as recovered.
fn recovered(samples: &[SiteSample], from: f64) -> Option<f64> {
    match samples.iter().rposition(|sample| !sample.takes_part) {
        None => Some(0.0),
        Some(last) => samples.get(last + 1).map(|sample| sample.t - from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(t: f64, bytes: u64, done: Option<f64>) -> BackgroundRecord {
        BackgroundRecord {
            control: vec![ControlSample {
                t,
                n: 1.0,
                m: 1.5,
                active: 1,
                w: t / 100.0,
                zeta: done,
                rate: 1000.0,
            }],
            progress: vec![Progress {
                t,
                bytes: vec![bytes],
            }],
            bytes: Some(bytes),
            cpu_s: Some(0.5),
            done,
            ..BackgroundRecord::default()
        }
    }

    #[test]
    fn what_hosts_did_adds_up() {
        let one = host(10.25, 100, Some(20.0));
        let mut other = host(10.75, 50, None);
        other.failure = Some("broken".to_owned());
        let record = merged([("host-1", one), ("host-2", other)].into_iter());
        assert_eq!((record.bytes, record.done), (Some(150), None));
        assert_eq!(record.cpu_s, Some(1.0));
        assert_eq!(record.failure.as_deref(), Some("host-2: broken"));
        let [sample] = &record.control[..] else {
            panic!("{:?}", record.control);
        };
        assert_eq!((sample.t, sample.n, sample.m), (10.0, 2.0, 3.0));
        assert_eq!((sample.active, sample.rate), (2, 2000.0));
        assert_eq!((sample.w, sample.zeta), (0.1075, Some(20.0)));
        let progress: Vec<_> = record
            .progress
            .iter()
            .map(|told| (told.t, told.bytes.as_slice()))
            .collect();
        assert_eq!(progress, [(10.0, &[0, 0][..]), (11.0, &[100, 50])]);
    }

    #[test]
    fn a_site_has_recovered_when_the_last_host_takes_part_for_good() {
        let site = |bad: &[std::ops::Range<f64>]| -> Vec<SiteSample> {
            let moments = (0..200).map(|quarter| f64::from(quarter) / 4.0);
            let samples = moments.map(|t| SiteSample {
                t,
                takes_part: !bad.iter().any(|bad| bad.contains(&t)),
            });
            samples.collect()
        };
        let sites = [
            site(&[11.0..15.0, 16.0..17.0, 38.0..60.0]),
            site(&[12.0..14.0]),
            // It finishes while something is wrong.
            site(&[22.0..30.0])[..100].to_vec(),
            Vec::new(),
        ];
        let fault = |t, until| FaultRecord {
            t,
            until,
            ..FaultRecord::default()
        };
        let mut faults = [
            fault(10.0, Some(13.0)),
            fault(20.0, None),
            fault(30.0, Some(35.0)),
        ];
        note_recovery(&mut faults, &sites);
        let recovered = faults.map(|fault| fault.recovered_s);
        assert_eq!(recovered, [Some(4.0), Some(0.0), None]);
    }
}
