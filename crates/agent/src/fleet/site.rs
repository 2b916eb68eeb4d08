//! Questions to the coordinator of a site, whichever agent that is: how the site stands, and
//! that a host be held or released.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex, mpsc, oneshot, watch};
use tokio::time::timeout;

use super::connection::NatsConnection;
use super::message::{self, VERSION, holds_of, status_of};
use super::status::{FleetStatus, SiteStatus};
use crate::clock::uptime;
use crate::config::FleetConfig;

/// Longest wait for an answer.
const ANSWER: Duration = Duration::from_secs(4);

/// Longest wait for a turn and an answer.
const TURN: Duration = Duration::from_secs(5);

/// For so long the last status is fresh: many may ask at once.
const FRESH: Duration = Duration::from_secs(1);

/// Questions that may wait.
const MAX_WAITING: usize = 64;

/// Largest status, bytes.
const MAX_STATUS: usize = 1 << 20;

/// The way to the site for the rest of the agent. Clones are the same.
#[derive(Debug, Clone)]
pub struct SiteHandle {
    questions: mpsc::Sender<SiteQuestion>,
}

/// The other end of it.
#[derive(Debug)]
pub struct SitePort {
    questions: Mutex<mpsc::Receiver<SiteQuestion>>,
    pub(crate) status: watch::Sender<FleetStatus>,
}

#[derive(Debug)]
enum SiteQuestion {
    Status(oneshot::Sender<Result<SiteStatus, NoAnswer>>),
    Hold(HoldHost, oneshot::Sender<Result<HostHeld, NoAnswer>>),
}

impl SiteQuestion {
    /// Whether nobody waits for the answer any more.
    fn is_dropped(&self) -> bool {
        match self {
            Self::Status(reply) => reply.is_closed(),
            Self::Hold(_, reply) => reply.is_closed(),
        }
    }
}

/// Asks that a host be held or released.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HoldHost {
    /// [`VERSION`].
    pub(crate) version: u32,
    pub(crate) host: String,
    /// Whether it is to be held.
    pub(crate) held: bool,
}

/// What the coordinator says to that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostHeld {
    /// Version of the messages.
    pub version: u32,
    /// The host; empty if none could be read.
    pub host: String,
    /// Whether the host was held before, or was not.
    pub changed: bool,
    /// Whether it takes part now.
    pub present: bool,
    /// Why nothing was done.
    pub problem: Option<String>,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// There is no way to the coordinator.
    #[error("{0}")]
    Away(String),
    /// The coordinator cannot do it.
    #[error("{0}")]
    Refused(String),
}

/// Makes both ends.
#[must_use]
pub fn channel(fleet: &FleetConfig) -> (SiteHandle, SitePort) {
    let (sender, questions) = mpsc::channel(MAX_WAITING);
    let status = watch::Sender::new(FleetStatus {
        site: fleet.site.clone(),
        host: fleet.host.clone(),
        connected: false,
        member: false,
        held: false,
        coordinator: false,
        problem: None,
        term: None,
        heard_s: None,
        known: None,
    });
    let site = SiteHandle { questions: sender };
    let port = SitePort {
        questions: Mutex::new(questions),
        status,
    };
    (site, port)
}

impl SitePort {
    /// How this agent takes part, from now on.
    pub(crate) fn subscribe(&self) -> watch::Receiver<FleetStatus> {
        self.status.subscribe()
    }
}

impl SiteHandle {
    /// How the site stands.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn status(&self) -> Result<SiteStatus, NoAnswer> {
        self.ask(SiteQuestion::Status).await
    }

    /// Holds a host, or releases it.
    ///
    /// # Errors
    /// There is no answer, or the coordinator cannot do it.
    pub async fn hold(&self, host: String, held: bool) -> Result<HostHeld, NoAnswer> {
        let hold = HoldHost {
            version: VERSION,
            host,
            held,
        };
        let held = self.ask(|reply| SiteQuestion::Hold(hold, reply)).await?;
        match held.problem {
            Some(problem) => Err(NoAnswer::Refused(problem)),
            None => Ok(held),
        }
    }

    async fn ask<T>(
        &self,
        question: impl FnOnce(oneshot::Sender<Result<T, NoAnswer>>) -> SiteQuestion,
    ) -> Result<T, NoAnswer> {
        let (reply, answer) = oneshot::channel();
        let away = |why: &str| NoAnswer::Away(why.to_owned());
        let asked = self.questions.try_send(question(reply));
        asked.map_err(|_| away("too many ask for the site; try again"))?;
        match timeout(TURN, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(away("this agent ends")),
            Err(_) => Err(away("the site does not answer in time")),
        }
    }
}

/// Passes questions on, one after another, until it is dropped. Without a connection it answers
/// that there is none.
pub(crate) async fn pass_on(
    connection: Option<&NatsConnection>,
    fleet: &FleetConfig,
    port: &SitePort,
) {
    let mut questions = port.questions.lock().await;
    let mut last = None::<(Duration, SiteStatus)>;
    while let Some(question) = questions.recv().await {
        if question.is_dropped() {
            continue;
        }
        match question {
            SiteQuestion::Status(reply) => {
                let fresh = last.take().filter(|(at, _)| uptime() < *at + FRESH);
                let answer = match fresh {
                    Some(fresh) => Ok(fresh),
                    None => ask(connection, port, status_of(&fleet.site), Vec::new())
                        .await
                        .map(|status| (uptime(), status)),
                };
                last = answer.as_ref().ok().cloned();
                let _ = reply.send(answer.map(|(_, status)| status));
            }
            SiteQuestion::Hold(hold, reply) => {
                let answer = match serde_json::to_vec(&hold) {
                    Ok(hold) => ask(connection, port, holds_of(&fleet.site), hold).await,
                    Err(error) => Err(NoAnswer::Refused(error.to_string())),
                };
                last = None;
                let _ = reply.send(answer);
            }
        }
    }
    // Nobody can ask any more.
    std::future::pending::<()>().await;
}

/// Asks the coordinator.
async fn ask<T: serde::de::DeserializeOwned>(
    connection: Option<&NatsConnection>,
    port: &SitePort,
    subject: String,
    question: Vec<u8>,
) -> Result<T, NoAnswer> {
    let Some(connection) = connection.filter(|connection| *connection.is_up.borrow()) else {
        let problem = port.status.borrow().problem.clone();
        let why = problem.unwrap_or_else(|| "see the log of this agent".to_owned());
        return Err(NoAnswer::Away(format!("NATS is out of reach: {why}")));
    };
    let answer = connection.client.request(subject.clone(), question.into());
    let none = "no coordinator of the site answers; one is found within seconds if there are \
                agents that may be one";
    match timeout(ANSWER, answer).await {
        Ok(Ok(answer)) => message::read(&answer.payload, MAX_STATUS)
            .map_err(|why| NoAnswer::Away(format!("the answer of the coordinator: {why}"))),
        Ok(Err(_)) | Err(_) if connection.is_refused(&subject) => Err(NoAnswer::Refused(
            "the credentials of this host do not allow that; ask at another host, or make them \
             again with --hold (docs/fleet.md)"
                .to_owned(),
        )),
        Ok(Err(_)) | Err(_) => Err(NoAnswer::Away(none.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;

    #[tokio::test]
    async fn without_a_connection_questions_are_answered_and_dropped_ones_are_not_asked() {
        let fleet = FleetConfig {
            url: Url::parse("nats://host.example:4222").unwrap(),
            site: "berlin".to_owned(),
            host: "a".to_owned(),
            credentials: None,
            cacert: None,
            coordinate: true,
            connections: 1,
        };
        let (site, port) = channel(&fleet);
        // As many as may wait, and each of them has given up.
        for _ in 0..MAX_WAITING {
            let asked = timeout(Duration::from_millis(1), site.status()).await;
            asked.expect_err("nobody answers");
        }
        let busy = site.status().await.expect_err("there are too many");
        assert!(busy.to_string().contains("too many"), "{busy}");
        let asked = async {
            tokio::task::yield_now().await;
            [
                site.status().await.map(drop),
                site.hold("b".to_owned(), true).await.map(drop),
            ]
        };
        tokio::select! {
            biased;
            () = pass_on(None, &fleet, &port) => {}
            answers = asked => for answer in answers {
                let away = answer.expect_err("there is no connection");
                assert!(away.to_string().contains("NATS is out of reach"), "{away}");
            },
        }
    }
}
