//! Runs of jobs and of what was added: their settings, and what they work with.
//!
//! A run begins with the configuration and the credentials of that moment.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use fairbat::transport::RateLimit;
use jiff::Timestamp;
use tokio::sync::watch;

use super::download::{self, Download};
use super::entry::{Entry, Work};
use super::extra::What;
use super::lanes::Way;
use super::place::address;
use super::service::Daemon;
use crate::config::{Config, Course, Delete, Job, Place};
use crate::filter::Filter;
use crate::store::Store;
use crate::sync::{
    MANIFEST_PAUSES, PUBLISH_INTERVAL, Progress, PullOrigin, PullSettings, PushContext,
    PushSettings, RunProblem, RunReport, pull, push,
};

/// A run, with what it is called by.
pub(super) type Running = Pin<Box<dyn Future<Output = (String, RunReport)> + Send>>;

impl Daemon {
    /// A run of something.
    pub(super) fn start(
        &self,
        index: usize,
        deadline: Option<Timestamp>,
        ledger: Progress,
        stopped: watch::Receiver<bool>,
    ) -> Running {
        let Entry { id, work, task, .. } = &self.entries[index];
        match work {
            Work::Job(job) => {
                let (job, filter) = &**job;
                match &job.course {
                    Course::Push { from, to } => {
                        let settings = self.push_settings(job, filter, from, to, deadline);
                        self.push(id.clone(), &to.store, settings, ledger, stopped)
                    }
                    Course::Pull { from, to } => {
                        let settings = PullSettings {
                            filter: filter.clone(),
                            was_filled: task.succeeded.is_some(),
                            ..self.pull_settings(job, to, &from.path, deadline)
                        };
                        self.pull(id.clone(), &from.store, settings, ledger, stopped)
                    }
                }
            }
            Work::Extra(_, extra) => match &extra.what {
                What::Restore { job, to } => self.restore(id, job, to, deadline, ledger, stopped),
                What::Download { url, to } => {
                    let download = Download {
                        url: url.clone(),
                        to: to.clone(),
                        deadline,
                        seed: self.identity,
                        lane: self.ways[1].lane.clone(),
                        ceilings: self.ceilings(1, None),
                    };
                    let agent = self.config.agent.clone();
                    running(id.clone(), async move {
                        download::download(download, &agent, ledger, stopped).await
                    })
                }
            },
        }
    }

    fn push_settings(
        &self,
        job: &Job,
        filter: &Filter,
        from: &Path,
        to: &Place,
        deadline: Option<Timestamp>,
    ) -> PushSettings {
        PushSettings {
            source: from.to_owned(),
            address: address(&self.config, &to.store),
            prefix: to.path.clone(),
            filter: filter.clone(),
            one_file_system: job.one_file_system,
            detect: job.detect,
            delete: job.delete,
            verify: job.verify,
            deadline,
            weight: job.min_weight,
            rate_limits: self.ceilings(0, job.limit_rate),
            connections: self.config.agent.connections,
            seed: self.identity,
            identity: self.identity,
            publish_interval: PUBLISH_INTERVAL,
        }
    }

    fn pull_settings(
        &self,
        job: &Job,
        to: &Path,
        prefix: &str,
        deadline: Option<Timestamp>,
    ) -> PullSettings {
        PullSettings {
            prefix: prefix.to_owned(),
            to: to.to_owned(),
            was_filled: false,
            filter: Filter::everything(),
            detect: job.detect,
            pauses: MANIFEST_PAUSES.to_vec(),
            delete: job.delete,
            deadline,
            weight: job.min_weight,
            rate_limits: self.ceilings(1, job.limit_rate),
            connections: self.config.agent.connections,
            seed: self.identity,
        }
    }

    /// Those of a lane, and of a job.
    fn ceilings(&self, way: usize, own: Option<u64>) -> Vec<Arc<RateLimit>> {
        let own = own.map(RateLimit::new).map(Arc::new);
        own.into_iter()
            .chain(self.ways[way].ceiling.clone())
            .collect()
    }

    fn push(
        &self,
        id: String,
        store: &str,
        settings: PushSettings,
        ledger: Progress,
        stopped: watch::Receiver<bool>,
    ) -> Running {
        let opening = self.opening(0, store, stopped.clone());
        let (state, writer) = (self.state.clone(), self.writer.clone());
        let lane = self.ways[0].lane.clone();
        let name = id.clone();
        running(id, async move {
            match opening.await {
                Ok((store, host)) => {
                    let context = PushContext {
                        state,
                        writer,
                        store: Arc::new(store),
                        host,
                        lane,
                    };
                    push(context, &name, settings, ledger, stopped).await
                }
                Err(problem) => RunReport::of(problem),
            }
        })
    }

    fn pull(
        &self,
        id: String,
        store: &str,
        settings: PullSettings,
        ledger: Progress,
        stopped: watch::Receiver<bool>,
    ) -> Running {
        let opening = self.opening(1, store, stopped.clone());
        let lane = self.ways[1].lane.clone();
        running(id, async move {
            match opening.await {
                Ok((store, host)) => {
                    let origin = PullOrigin {
                        store: Arc::new(store),
                        host,
                        lane,
                    };
                    pull(origin, settings, ledger, stopped).await
                }
                Err(problem) => RunReport::of(problem),
            }
        })
    }

    fn restore(
        &self,
        id: &str,
        job: &str,
        to: &Path,
        deadline: Option<Timestamp>,
        ledger: Progress,
        stopped: watch::Receiver<bool>,
    ) -> Running {
        let Some(job) = self.config.jobs.iter().find(|known| known.name == job) else {
            let problem = RunProblem::NoJob(job.to_owned());
            return running(id.to_owned(), async { RunReport::of(problem) });
        };
        let place = job.course.place();
        let settings = PullSettings {
            delete: Delete::Never,
            ..self.pull_settings(job, to, &place.path, deadline)
        };
        self.pull(id.to_owned(), &place.store, settings, ledger, stopped)
    }

    /// Opens a store, with what its credentials are then.
    fn opening(
        &self,
        way: usize,
        store: &str,
        stopped: watch::Receiver<bool>,
    ) -> impl Future<Output = Result<(Store, String), RunProblem>> + Send + use<> {
        let (way, config) = (Arc::clone(&self.ways[way]), Arc::clone(&self.config));
        let store = store.to_owned();
        async move { open(way, config, store, stopped).await }
    }
}

async fn open(
    way: Arc<Way>,
    config: Arc<Config>,
    store: String,
    mut stopped: watch::Receiver<bool>,
) -> Result<(Store, String), RunProblem> {
    // Files are read for that, and a disk may not answer.
    let opening = tokio::task::spawn_blocking(move || {
        way.store(&config, &store, |name| std::env::var_os(name))
    });
    tokio::select! {
        biased;
        _ = stopped.wait_for(|stop| *stop) => Err(RunProblem::Stopped),
        opened = opening => Ok(opened.map_err(|_| RunProblem::Lost)??),
    }
}

/// A run, which says at its end what it was.
fn running(id: String, run: impl Future<Output = RunReport> + Send + 'static) -> Running {
    Box::pin(async move {
        // A defect in one run is no end of the others, nor of its own book.
        let report = tokio::spawn(run).await;
        (
            id,
            report.unwrap_or_else(|_| RunReport::of(RunProblem::Lost)),
        )
    })
}

impl RunReport {
    fn of(problem: RunProblem) -> Self {
        Self {
            problem: Some(problem),
            ..Self::default()
        }
    }
}
