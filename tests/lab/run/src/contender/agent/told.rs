//! What an agent that pushes has told so far.

use crate::contender::agent::api::{DIRECTION, LastRun, Status};
use crate::contender::site::Site;
use crate::machine::Clock;
use crate::samples::{BackgroundRecord, ControlSample, Progress, SiteSample, TransferRecord};

/// What it has told so far.
#[derive(Debug)]
pub(crate) struct Told {
    /// Names of the jobs, in the order of the scenario.
    jobs: Vec<String>,
    /// When the lab's clock was at 0, s since 1970.
    zero: f64,
    /// The lab's clock, where moments that are told are of no use: what is told is true now.
    now: Option<Clock>,
    /// When what was told last was true.
    last: f64,
    /// What became of it.
    pub(crate) record: BackgroundRecord,
}

impl Told {
    /// Nothing yet of the transfers of this site. The agent may have another wall clock than the
    /// lab.
    pub(crate) fn new(site: &Site, has_true_clock: bool) -> Self {
        let jobs = site.served.iter().map(|one| one.name.clone());
        Self {
            now: (!has_true_clock).then_some(site.clock),
            ..Self::of(jobs.collect(), unix_now() - site.clock.seconds())
        }
    }

    fn of(jobs: Vec<String>, zero: f64) -> Self {
        Self {
            jobs,
            zero,
            now: None,
            last: f64::NEG_INFINITY,
            record: BackgroundRecord::default(),
        }
    }

    /// Whether all jobs are done, or one has failed.
    pub(crate) fn is_over(&self) -> bool {
        self.record.failure.is_some() || self.record.transfers.len() == self.jobs.len()
    }

    /// Takes in how it stands.
    pub(crate) fn take(&mut self, status: &Status) {
        let site = status.fleet.map(|fleet| SiteSample {
            t: unix_now() - self.zero,
            takes_part: fleet.takes_part(),
        });
        self.record.site.extend(site);
        let Some(lane) = status.lane(DIRECTION) else {
            self.record.failure = Some("the agent has no lane for what it pushes".to_owned());
            return;
        };
        let moment = self.moment(lane.sample.t);
        let is_new = match self.now {
            None => lane.sample.t > self.last,
            Some(_) => lane.sample.t.total_cmp(&self.last).is_ne(),
        };
        if is_new {
            self.last = lane.sample.t;
            self.record.control.push(ControlSample {
                t: moment,
                ..lane.sample
            });
            self.progress(status, moment);
        }
        for job in self.jobs.clone() {
            let known = self.record.transfers.iter().any(|one| one.name == job);
            let last = status.task(&job).and_then(|task| task.last.as_ref());
            if let Some(last) = last.filter(|_| !known) {
                self.ended(job, last);
            }
        }
    }

    /// This moment, s since 1970, on the lab's clock.
    fn moment(&self, told: f64) -> f64 {
        self.now.map_or(told - self.zero, Clock::seconds)
    }

    fn progress(&mut self, status: &Status, t: f64) {
        // A run that has ended counts no more; what it has moved is there.
        let before = self.record.progress.last();
        let before = |index: usize| before.map_or(0, |before| before.bytes[index]);
        let done = |job: &String| status.task(job).map_or(0, |task| task.bytes_done);
        let jobs = self.jobs.iter().enumerate();
        let bytes: Vec<u64> = jobs
            .map(|(index, job)| done(job).max(before(index)))
            .collect();
        self.record.bytes = Some(bytes.iter().sum());
        self.record.progress.push(Progress { t, bytes });
    }

    fn ended(&mut self, job: String, last: &LastRun) {
        if !last.ok {
            self.record.failure = Some(complaint(&job, last));
            return;
        }
        let done = self.moment(last.ended.as_duration().as_secs_f64());
        self.record.transfers.push(TransferRecord {
            name: job,
            done: Some(done),
            ..TransferRecord::default()
        });
        if self.is_over() {
            let all = self.record.transfers.iter().filter_map(|one| one.done);
            self.record.done = all.reduce(f64::max);
        }
    }
}

pub(crate) fn complaint(job: &str, last: &LastRun) -> String {
    let problem = last.problem.clone();
    let of_file = last.failures.first();
    let why = problem.or_else(|| of_file.map(|(path, why)| format!("{path}: {why}")));
    let why = why.unwrap_or_else(|| "it does not say why".to_owned());
    format!("job {job} has failed: {why}")
}

#[allow(
    clippy::disallowed_methods,
    reason = "the shell: the agent tells moments on the wall clock"
)]
pub(crate) fn unix_now() -> f64 {
    jiff::Timestamp::now().as_duration().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One second of two jobs: bytes done of each, and how the first one ended.
    fn status(t: f64, bytes: [u64; 2], last: &str) -> Status {
        let text = format!(
            r#"{{"version":"0","lanes":[{{"direction":"pull","lever":"none","sample":{{"t":0.0,
            "n":0.0,"m":0.0,"active":0,"w":0.0,"zeta":null,"rate":0.0}}}},{{"direction":"push",
            "lever":"congestion-control","sample":{{"t":{t:?},"n":1.0,"m":1.5,"active":2,"w":0.25,
            "zeta":1000.0,"rate":900.0}}}}],"tasks":[{{"id":"file-1","bytes_done":{},"last":{last}}},
            {{"id":"file-2","bytes_done":{},"last":null}}]}}"#,
            bytes[0], bytes[1]
        );
        serde_json::from_str(&text).expect("a status")
    }

    fn two() -> Told {
        Told::of(vec!["file-1".to_owned(), "file-2".to_owned()], 100.0)
    }

    #[test]
    fn moments_are_on_the_clock_of_the_lab_and_told_once() {
        let mut told = two();
        let ended = r#"{"ended":"1970-01-01T00:01:44.5Z","ok":true,"problem":null,"failures":[]}"#;
        for now in [
            status(103.0, [10, 0], "null"),
            status(103.0, [12, 0], "null"),
            status(105.0, [30, 5], ended),
            // It counts no more what has ended.
            status(106.0, [0, 6], ended),
        ] {
            told.take(&now);
        }
        assert!(!told.is_over());
        let record = &told.record;
        let moments: Vec<_> = record.control.iter().map(|sample| sample.t).collect();
        assert_eq!(moments, [3.0, 5.0, 6.0]);
        assert_eq!((record.control[0].m, record.control[0].active), (1.5, 2));
        assert_eq!(record.progress[1].bytes, [30, 5]);
        assert_eq!(record.bytes, Some(36));
        let [first] = &record.transfers[..] else {
            panic!("{:?}", record.transfers);
        };
        assert_eq!((&*first.name, first.done), ("file-1", Some(4.5)));
        assert_eq!(record.done, None);
    }

    #[test]
    fn a_job_that_fails_says_why() {
        let mut told = two();
        let ended = r#"{"ended":"1970-01-01T00:01:44Z","ok":false,"problem":null,
                        "failures":[["00/1","refused"]]}"#;
        told.take(&status(103.0, [0, 0], ended));
        assert!(told.is_over());
        let failure = told.record.failure.expect("it failed");
        assert_eq!(failure, "job file-1 has failed: 00/1: refused");
    }
}
