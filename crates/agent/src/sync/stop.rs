//! How a run ends before it is done.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use super::report::RunProblem;

/// Runs until `stop` becomes true. Then the run is dropped.
pub(crate) async fn until_stopped<T>(
    run: impl Future<Output = Result<T, RunProblem>>,
    mut stop: watch::Receiver<bool>,
) -> Result<T, RunProblem> {
    tokio::select! {
        biased;
        _ = stop.wait_for(|stop| *stop) => Err(RunProblem::Stopped),
        result = run => result,
    }
}

/// Tells the threads of a run to end when the run is dropped.
#[derive(Debug, Default)]
pub(crate) struct StopOnDrop(pub(crate) Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
