//! Gives up what is left unfinished in stores, without running anything.

use super::entry::Work;
use super::service::{Daemon, StartError};
use crate::config::{Config, Course};
use crate::sync::RunProblem;

/// Gives up what killed processes have left unfinished in the stores that jobs
/// push to; returns how many uploads, by job, and what went wrong. Not while the
/// daemon runs: the state is open then. A state that is new is called
/// `fresh_identity` from then on, also by the daemon.
///
/// # Errors
/// [`StartError`].
pub async fn collect(
    config: Config,
    fresh_identity: u64,
) -> Result<Vec<(String, Result<u64, RunProblem>)>, StartError> {
    let daemon = Daemon::open(config, fresh_identity)?;
    let mut collected = Vec::new();
    for entry in &daemon.entries {
        let Work::Job(job) = &entry.work else {
            continue;
        };
        let Course::Push { to, .. } = &job.0.course else {
            continue;
        };
        let store = daemon.ways[0].store(&daemon.config, &to.store, |name| std::env::var_os(name));
        let given_up = match store {
            Ok((store, _)) => {
                let (state, writer) = (&daemon.state, &daemon.writer);
                crate::sync::collect(state, writer, &entry.id, &store, &to.path).await
            }
            Err(error) => Err(error.into()),
        };
        collected.push((entry.id.clone(), given_up));
    }
    Ok(collected)
}
