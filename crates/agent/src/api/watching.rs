//! The status, told again each time that it changes: a body of JSON lines that ends
//! with the agent.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{Stream, unfold};
use http_body::Frame;
use tokio::sync::watch;

use super::answer::json;
use super::over;
use crate::status::AgentStatus;

/// See the module.
struct Watching {
    status: watch::Receiver<Arc<AgentStatus>>,
    end: watch::Receiver<bool>,
    pause: Duration,
    is_begun: bool,
}

/// How it stands, and then each change, with at least `pause` between two lines:
/// of what changes meanwhile the last counts.
pub(super) fn lines(
    status: watch::Receiver<Arc<AgentStatus>>,
    end: watch::Receiver<bool>,
    pause: Duration,
) -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> {
    let watching = Watching {
        status,
        end,
        pause,
        is_begun: false,
    };
    unfold(watching, |mut watching| async {
        let line = watching.line().await?;
        Some((Ok(Frame::data(line)), watching))
    })
}

impl Watching {
    /// The next line; `None` when there will be none.
    async fn line(&mut self) -> Option<Bytes> {
        if self.is_begun {
            let news = async {
                tokio::time::sleep(self.pause).await;
                self.status.changed().await.ok()
            };
            tokio::select! {
                news = news => news?,
                () = over(&mut self.end) => return None,
            }
        }
        self.is_begun = true;
        let status = Arc::clone(&self.status.borrow_and_update());
        Some(json(&*status))
    }
}
