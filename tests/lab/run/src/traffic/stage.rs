//! Where sources run: a thread per host for everything with connections, and
//! threads of their own for what needs exact moments. Nothing begins before
//! everything is set up, so that a setup that fails leaves nothing behind.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::host::Host;
use crate::machine::Clock;
use crate::traffic::Meter;

/// What goes on in a host's thread.
type Job = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;
/// What goes on in a thread of its own.
type Task = Box<dyn FnOnce() -> io::Result<()> + Send>;

/// What is going to run.
pub(crate) struct Stage<'a> {
    /// The hosts, in the direction of the data.
    pub(crate) hosts: &'a [Host],
    /// The run's.
    pub(crate) clock: Clock,
    /// When the run is over.
    pub(crate) end: Duration,
    jobs: Vec<Vec<Job>>,
    tasks: Vec<(Host, Task)>,
}

impl<'a> Stage<'a> {
    pub(crate) fn new(hosts: &'a [Host], clock: Clock, end: Duration) -> Self {
        Self {
            hosts,
            clock,
            end,
            jobs: hosts.iter().map(|_| Vec::new()).collect(),
            tasks: Vec::new(),
        }
    }

    /// Something to do in the thread of this host. What is not over at the
    /// end of the run is dropped.
    pub(crate) fn job(
        &mut self,
        host: usize,
        job: impl Future<Output = io::Result<()>> + Send + 'static,
    ) {
        self.jobs[host].push(Box::pin(job));
    }

    /// Something to do in a thread of its own. It has to end with the run by
    /// itself.
    pub(crate) fn task(
        &mut self,
        host: usize,
        task: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) {
        self.tasks.push((self.hosts[host].clone(), Box::new(task)));
    }

    /// A meter of the run.
    pub(crate) fn meter(&self) -> Meter {
        Meter::new(self.clock, self.end)
    }

    /// Starts everything.
    ///
    /// # Errors
    /// When the kernel has nothing left for a runtime.
    pub(crate) fn start(self) -> io::Result<Running> {
        let mut workers = Vec::new();
        for (host, jobs) in self.hosts.iter().zip(self.jobs) {
            if !jobs.is_empty() {
                let runtime = Builder::new_current_thread().enable_all().build()?;
                workers.push((host, runtime, jobs));
            }
        }
        let failure = Failure::default();
        let (clock, end) = (self.clock, self.end);
        let mut threads = Vec::new();
        for (host, runtime, jobs) in workers {
            let failure = failure.clone();
            threads.push(host.run(move || work(&runtime, jobs, &failure, clock, end)));
        }
        for (host, task) in self.tasks {
            let failure = failure.clone();
            threads.push(host.run(move || failure.keep(task())));
        }
        Ok(Running { threads, failure })
    }
}

fn work(runtime: &Runtime, jobs: Vec<Job>, failure: &Failure, clock: Clock, end: Duration) {
    let end = instant(clock, end);
    runtime.block_on(async {
        let mut jobs: JoinSet<_> = jobs.into_iter().collect();
        let all = async {
            while let Some(over) = jobs.join_next().await {
                failure.keep(over.unwrap_or_else(|panic| Err(panicked(&panic))));
            }
        };
        // Only when the run is over, and not before, is what goes on dropped.
        let _ = timeout_at(end, all).await;
        sleep_until(end).await;
    });
}

/// What runs.
pub(crate) struct Running {
    threads: Vec<JoinHandle<()>>,
    failure: Failure,
}

impl Running {
    /// Blocks until the run is over.
    ///
    /// # Errors
    /// The first that a job met; a panic is one too.
    pub(crate) fn finish(self) -> io::Result<()> {
        for thread in self.threads {
            if thread.join().is_err() {
                let error = "a foreground thread panicked; see standard error";
                self.failure.keep(Err(io::Error::other(error)));
            }
        }
        self.failure.take().map_or(Ok(()), Err)
    }
}

/// What became of a job that did not come to its end.
pub(crate) fn panicked(error: &JoinError) -> io::Error {
    io::Error::other(format!(
        "a foreground source did not come to its end: {error}"
    ))
}

/// The first thing that went wrong.
#[derive(Debug, Clone, Default)]
struct Failure(Arc<Mutex<Option<io::Error>>>);

impl Failure {
    fn keep(&self, result: io::Result<()>) {
        if let Err(error) = result {
            self.first().get_or_insert(error);
        }
    }

    fn take(&self) -> Option<io::Error> {
        self.first().take()
    }

    fn first(&self) -> std::sync::MutexGuard<'_, Option<io::Error>> {
        self.0.lock().expect("nobody panics with it")
    }
}

/// A moment of the run, for tokio's timers.
pub(crate) fn instant(clock: Clock, moment: Duration) -> Instant {
    Instant::from_std(clock.at(moment))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_panics_is_an_error_of_the_run() {
        let Some(host) = Host::for_test(0) else {
            return;
        };
        let hosts = [host];
        let mut stage = Stage::new(&hosts, Clock::start(), Duration::from_secs(2));
        stage.job(0, async { panic!("as this test wants") });
        let finished = stage.start().expect("a runtime").finish();
        let error = finished.expect_err("a job panicked").to_string();
        assert!(error.contains("as this test wants"), "{error}");
    }

    #[test]
    fn an_answer_that_panics_is_an_error_of_the_run() {
        use crate::traffic::{Span, tcp};
        let Some(host) = Host::for_test(0) else {
            return;
        };
        let hosts = [host];
        let clock = Clock::start();
        let span = Span {
            start: Duration::ZERO,
            stop: Duration::from_secs(2),
        };
        let options = tcp::SenderOptions {
            congestion_control: "reno".to_owned(),
            unsent: None,
        };
        let (listener, address) = tcp::listen(&hosts[0], options).expect("reno is there");
        let mut stage = Stage::new(&hosts, clock, span.stop);
        let answer = |_| async { panic!("as this test wants") };
        stage.job(0, tcp::serve(listener, span, clock, answer));
        let running = stage.start().expect("a runtime");
        let client = hosts[0].within(move || std::net::TcpStream::connect(address));
        client.expect("it listens");
        let error = running
            .finish()
            .expect_err("an answer panicked")
            .to_string();
        assert!(error.contains("as this test wants"), "{error}");
    }
}
