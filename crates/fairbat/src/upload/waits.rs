//! What an upload waits for: its connection, and its next try.

use std::pin::pin;

use super::send::Upload;
use crate::error::{ErrorKind, TransferError};
use crate::event::{Event, RetryCause};
use crate::http::{Failure, Transient};
use crate::lane::Permit;
use crate::lane::handle::control_periods;

impl Upload {
    /// Waits for the next try.
    ///
    /// # Errors
    /// There is no next try.
    pub(super) async fn back_off(&mut self, failure: Failure) -> Result<(), TransferError> {
        let failure = match failure {
            Failure::Fatal(error) | Failure::Expired(error) => return Err(error),
            Failure::Transient(transient) => transient,
            Failure::Changed(reason) => Transient::server(reason),
            Failure::WholeFile => Transient::server("the server answered as if asked for a file"),
        };
        if failure.kind == ErrorKind::Server {
            self.backoff.answered();
        }
        let wait = self.backoff.failure(failure.retry_after, &mut self.rng);
        let attempt = self.backoff.failures();
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
        self.done = 0;
        self.member.backs_off(after);
        let mut tick = control_periods();
        let mut over = pin!(tokio::time::sleep(after));
        loop {
            tokio::select! {
                biased;
                () = &mut over => return Ok(()),
                _ = tick.tick() => self.tick(None),
            }
        }
    }

    /// Waits for the connection. In a lane of its own it is free.
    pub(super) async fn admitted(&mut self) -> Permit {
        let mut request = self.member.request();
        let mut tick = control_periods();
        self.is_waiting = true;
        self.set_backlog();
        let permit = loop {
            tokio::select! {
                biased;
                permit = &mut request => break permit,
                _ = tick.tick() => self.tick(None),
            }
        };
        self.is_waiting = false;
        self.set_backlog();
        permit
    }
}
