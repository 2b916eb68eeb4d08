//! When the store is told of what has come: at the end of a run, and during it as
//! well, so that what a pull finds never differs for long from what it is told.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant, sleep_until};

use super::push::Job;
use super::report::RunProblem;
use super::tell::Occasion;
use crate::state::JobRecord;

/// How often the store is told during a run, if there is something to tell. An
/// object that was replaced since is refused by who pulls, or fetched once more.
pub const PUBLISH_INTERVAL: Duration = Duration::from_secs(60);

/// No more than one part of so many of the time goes into telling: a manifest of a
/// million entries takes a while over a slow link.
const SHARE: u32 = 10;

/// What is known of a job, and when the store is told next.
#[derive(Debug)]
pub(super) struct Teller {
    pub(super) record: JobRecord,
    every: Duration,
    next: Instant,
}

impl Teller {
    /// One that tells at once, and then this often.
    pub(super) fn new(record: JobRecord, every: Duration) -> Self {
        Self {
            record,
            every,
            next: instant(),
        }
    }

    /// Resolves when it is time to tell.
    pub(super) async fn due(&self) {
        sleep_until(self.next).await;
    }

    /// Tells, if it is time to.
    pub(super) async fn tell_if_due(&mut self, job: &Job) -> Result<(), RunProblem> {
        if self.next <= instant() {
            self.tell(job, Occasion::During).await?;
        }
        Ok(())
    }

    /// Tells the store what it has not been told yet.
    pub(super) async fn tell(&mut self, job: &Job, occasion: Occasion) -> Result<(), RunProblem> {
        let began = instant();
        self.record = job.tell(self.record.clone(), now(), occasion).await?;
        let took = instant() - began;
        self.next = instant() + pause(self.every, took);
        Ok(())
    }
}

/// How long to wait after the store has been told, which took so long.
fn pause(every: Duration, took: Duration) -> Duration {
    every.max(took * (SHARE - 1))
}

#[allow(clippy::disallowed_methods, reason = "the shell that reads the clock")]
fn instant() -> Instant {
    Instant::now()
}

/// The moment now: a manifest says when it was made, and a deadline is one.
#[allow(clippy::disallowed_methods, reason = "the shell that reads the clock")]
pub(super) fn now() -> Timestamp {
    Timestamp::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn telling_takes_a_tenth_of_the_time_at_most() {
        let s = Duration::from_secs;
        assert_eq!(pause(s(60), s(0)), s(60));
        assert_eq!(pause(s(60), s(6)), s(60));
        assert_eq!(pause(s(60), s(20)), s(180));
    }
}
