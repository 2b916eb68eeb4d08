//! What an upload waits for: its connection, and its next try.

use std::time::Duration;

use super::path::UploadPath;
use super::send::Upload;
use crate::error::ErrorKind;
use crate::error::TransferError;
use crate::event::{Event, RetryCause};
use crate::http::{Failure, Transient};
use crate::lane::Permit;

impl Upload {
    /// Waits for the next try of the whole upload.
    ///
    /// # Errors
    /// There is no next try.
    pub(super) async fn back_off(&self, failure: Failure) -> Result<(), TransferError> {
        let failure = transient(failure)?;
        let has_answered = failure.kind == ErrorKind::Server
            || self.paths.iter().any(|path| path.state().is_known);
        let (wait, attempt) = {
            let mut state = self.state();
            let state = &mut *state;
            if has_answered {
                state.backoff.answered();
            }
            let wait = state.backoff.failure(failure.retry_after, &mut state.rng);
            (wait, state.backoff.failures())
        };
        let Some(after) = wait else {
            return Err(failure.given_up(attempt, false));
        };
        self.emit(Event::Retry {
            cause: RetryCause::of(&failure),
            url: self.url.clone(),
            reason: failure.reason,
            after_s: after.as_secs_f64(),
            attempt,
        });
        for path in &self.paths {
            path.member.backs_off(after);
        }
        tokio::time::sleep(after).await;
        Ok(())
    }

    /// Waits for the next try over one of several paths, or until the path has gone and is back. One
    /// that has failed as often as it may is still tried, as rarely as possible, while another one
    /// is left.
    ///
    /// # Errors
    /// There is no next try, over none of them.
    pub(super) async fn back_off_path(
        &self,
        path: &UploadPath,
        failure: Failure,
    ) -> Result<(), Failure> {
        let failure = transient(failure).map_err(Failure::Fatal)?;
        let (wait, attempt) = {
            let mut state = path.state();
            state.backs_off = true;
            if failure.kind == ErrorKind::Server {
                state.backoff.answered();
            }
            let wait = state
                .backoff
                .failure(failure.retry_after, &mut self.state().rng);
            state.is_exhausted = wait.is_none();
            (wait, state.backoff.failures())
        };
        let is_left = |other: &UploadPath| {
            (other.is_used() || std::ptr::eq(other, path)) && !other.state().is_exhausted
        };
        if !self.paths.iter().any(is_left) {
            return Err(Failure::Fatal(failure.given_up(attempt, false)));
        }
        let after = wait.unwrap_or(self.settings.retry.cap);
        self.emit(Event::Retry {
            cause: RetryCause::of(&failure),
            url: self.url.clone(),
            reason: format!("over {}: {}", path.name(), failure.reason),
            after_s: after.as_secs_f64(),
            attempt,
        });
        path.member.backs_off(after);
        let returns = async {
            path.gone().await;
            path.up().await;
        };
        tokio::select! {
            () = tokio::time::sleep(after) => {}
            () = returns => path.member.backs_off(Duration::ZERO),
        }
        path.state().backs_off = false;
        Ok(())
    }

    /// Waits for the connection. In a lane of its own it is free.
    pub(super) async fn admitted(&self, path: &UploadPath) -> Permit {
        let request = path.member.request();
        path.state().is_waiting = true;
        self.set_backlogs();
        let permit = request.await;
        path.state().is_waiting = false;
        self.set_backlogs();
        permit
    }
}

/// A failure that may pass.
///
/// # Errors
/// It will not.
fn transient(failure: Failure) -> Result<Transient, TransferError> {
    match failure {
        Failure::Fatal(error) | Failure::Expired(error) => Err(error),
        Failure::Transient(transient) => Ok(transient),
        Failure::Changed(reason) => Ok(Transient::server(reason)),
        Failure::WholeFile => Ok(Transient::server(
            "the server answered as if asked for a file",
        )),
    }
}
