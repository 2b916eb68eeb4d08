//! What is wrong with a transfer that did not complain: whoever begins late or
//! moves nothing disturbs nobody, and would look polite.

use super::site::Site;
use crate::record::BackgroundRecord;

/// How much later than it should a contender may begin, s.
const LATEST: f64 = 0.2;

/// With jobs it may be this part of the time until figures are taken, if that is
/// more. Jobs that have come by then are begun at once, count from when they had
/// come, and are done with before anything is measured.
const LATEST_PART: f64 = 0.05;

/// What was wrong, for people. `ended` is when the run was over, s.
pub(super) fn failure(site: &Site, record: &BackgroundRecord, ended: f64) -> Option<String> {
    let start = site.background.start_s;
    let is_endless = site.end().is_none() && site.background.jobs.is_none();
    let latest = match site.background.jobs {
        Some(_) => latest_with_jobs(site.measure_from_s - start),
        None => LATEST,
    };
    late(site.began.get().copied(), start, ended, latest)
        .or_else(|| {
            let is_idle = is_endless && ended >= start && record.bytes.unwrap_or(0) == 0;
            is_idle.then(|| "it moved nothing".to_owned())
        })
        .or_else(|| record.done.and_then(|_| site.fault()))
}

/// How late whoever takes jobs may begin, s, when figures are taken after `lead_s`.
fn latest_with_jobs(lead_s: f64) -> f64 {
    (lead_s * LATEST_PART).max(LATEST)
}

/// For a transfer that was to begin at `start`, or by `latest` seconds later, and
/// `began` if it did.
fn late(began: Option<f64>, start: f64, ended: f64, latest: f64) -> Option<String> {
    let late = began.unwrap_or(ended) - start;
    let how = match began {
        Some(_) => format!("it began {late:.1} s late"),
        None => format!("it had not begun {late:.1} s after its time, when the run was over"),
    };
    (late > latest).then_some(how)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_begins_late_says_so() {
        assert_eq!(late(Some(2.19), 2.0, 30.0, LATEST), None);
        let said = late(Some(3.5), 2.0, 30.0, LATEST);
        assert_eq!(said.as_deref(), Some("it began 1.5 s late"));
    }

    #[test]
    fn whoever_takes_jobs_has_some_time_if_nothing_is_measured_yet() {
        assert_eq!(latest_with_jobs(40.0), 2.0);
        assert_eq!(latest_with_jobs(-3.0), LATEST);
        assert_eq!(late(Some(3.5), 2.0, 30.0, latest_with_jobs(40.0)), None);
    }

    #[test]
    fn whoever_has_not_begun_is_late_only_when_it_was_time() {
        assert_eq!(late(None, 2.0, 1.0, LATEST), None);
        let said = late(None, 2.0, 5.0, LATEST);
        let expected = "it had not begun 3.0 s after its time, when the run was over";
        assert_eq!(said.as_deref(), Some(expected));
    }
}
