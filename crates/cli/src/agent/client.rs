//! Speaks to the agent over its Unix socket. Knows nothing of what is said.

use std::error::Error;
use std::future::Future;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::unistd::{Gid, Group};
use reqwest::{Client, Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::words::Refusal;
use crate::exit::ExitCode;

/// An agent that is well answers at once; of one that is not the user should hear.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why there is no answer that helps: what, what to do, and how the process ends.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) code: ExitCode,
    pub(super) message: String,
    /// Empty when there is nothing to advise.
    pub(super) hint: String,
    /// What the API said, if it was the API.
    pub(super) document: Option<Vec<u8>>,
}

impl Trouble {
    pub(super) fn new(code: ExitCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: String::new(),
            document: None,
        }
    }

    pub(super) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: hint.into(),
            ..self
        }
    }

    /// The agent is no more, or not well.
    pub(super) fn ended() -> Self {
        Self::new(ExitCode::Temporary, "the agent has ended").with_hint(IS_IT_RUNNING)
    }
}

const IS_IT_RUNNING: &str = "is fairbat-agent running? systemctl status fairbat-agent";

/// See the module.
#[derive(Debug)]
pub(super) struct Agent {
    socket: PathBuf,
    client: Client,
}

impl Agent {
    /// The one that listens there; it is not spoken to yet.
    pub(super) fn at(socket: &Path) -> Result<Self, Trouble> {
        // Wanted even where nothing is encrypted; and no authorities are read.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .unix_socket(socket)
            .tls_certs_only([])
            .http1_only()
            .no_proxy()
            .build()
            .map_err(|error| {
                Trouble::new(ExitCode::Other, format!("cannot set up a client: {error}"))
            })?;
        Ok(Self {
            socket: socket.to_owned(),
            client,
        })
    }

    /// What a path says.
    pub(super) async fn get(&self, path: &str) -> Result<Vec<u8>, Trouble> {
        self.in_time(async {
            let response = self.send(self.client.get(url(path))).await?;
            self.whole(response).await
        })
        .await
    }

    /// What a path says to an order.
    pub(super) async fn post(
        &self,
        path: &str,
        order: &impl Serialize,
    ) -> Result<Vec<u8>, Trouble> {
        let body = serde_json::to_vec(order).expect("texts and options only");
        self.in_time(async {
            let response = self.send(self.client.post(url(path)).body(body)).await?;
            self.whole(response).await
        })
        .await
    }

    /// The lines that a path says, until it says no more.
    pub(super) async fn lines(&self, path: &str) -> Result<Lines<'_>, Trouble> {
        let response = self.in_time(self.send(self.client.get(url(path)))).await?;
        Ok(Lines {
            agent: self,
            response,
            begun: Vec::new(),
        })
    }

    async fn in_time<T>(
        &self,
        answer: impl Future<Output = Result<T, Trouble>>,
    ) -> Result<T, Trouble> {
        match tokio::time::timeout(PATIENCE, answer).await {
            Ok(answer) => answer,
            Err(_) => {
                let message = format!("the agent at {} does not answer", self.socket.display());
                let hint = "see what it is doing: systemctl status fairbat-agent";
                Err(Trouble::new(ExitCode::Temporary, message).with_hint(hint))
            }
        }
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<Response, Trouble> {
        let response = request.send().await.map_err(|error| self.trouble(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let document = self.whole(response).await?;
        let said: Refusal = serde_json::from_slice(&document).unwrap_or_default();
        let message = match said.error.as_str() {
            "" => format!("the agent answers {status}"),
            _ => said.error,
        };
        let code = match status {
            StatusCode::SERVICE_UNAVAILABLE => ExitCode::Temporary,
            _ => ExitCode::Other,
        };
        Err(Trouble {
            document: Some(document),
            ..Trouble::new(code, message).with_hint(said.hint.unwrap_or_default())
        })
    }

    async fn whole(&self, response: Response) -> Result<Vec<u8>, Trouble> {
        let body = response.bytes().await;
        body.map(Into::into).map_err(|error| self.trouble(&error))
    }

    fn trouble(&self, error: &reqwest::Error) -> Trouble {
        let socket = self.socket.display();
        let Some(cause) = cause(error) else {
            let message =
                format!("the agent at {socket} does not speak HTTP as it should: {error}");
            return Trouble::new(ExitCode::Temporary, message);
        };
        match cause.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                let message = format!("no agent listens at {socket}: {cause}");
                Trouble::new(ExitCode::Temporary, message).with_hint(IS_IT_RUNNING)
            }
            io::ErrorKind::PermissionDenied => {
                let message = format!("no right to speak to the agent at {socket}: {cause}");
                Trouble::new(ExitCode::Other, message).with_hint(who_may(&self.socket))
            }
            io::ErrorKind::InvalidInput => {
                let message = format!("{socket} cannot be a socket: {cause}");
                Trouble::new(ExitCode::Other, message)
            }
            _ => {
                let message = format!("the agent at {socket} broke off: {cause}");
                Trouble::new(ExitCode::Temporary, message).with_hint(IS_IT_RUNNING)
            }
        }
    }
}

/// Any host does: the socket is the agent's.
fn url(path: &str) -> String {
    format!("http://agent{path}")
}

/// What the system said.
fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref() {
            return Some(error);
        }
        next = error.source();
    }
    None
}

/// Who may use the socket: the group of the first thing on the way to it that can be
/// looked at, the nearest one first.
fn who_may(socket: &Path) -> String {
    let group = socket
        .ancestors()
        .find_map(|path| path.metadata().ok())
        .map(|found| Gid::from_raw(found.gid()))
        .filter(|group| group.as_raw() != 0);
    let Some(group) = group else {
        return "only root has it: sudo".to_owned();
    };
    match Group::from_gid(group) {
        Ok(Some(Group { name, .. })) => format!(
            "members of the group {name} have it: sudo usermod -aG {name} \"$USER\", and log in \
             again; or sudo"
        ),
        Ok(None) | Err(_) => format!("members of the group {group} have it, and root: sudo"),
    }
}

/// Lines, as they come.
#[derive(Debug)]
pub(super) struct Lines<'a> {
    agent: &'a Agent,
    response: Response,
    /// Of the next ones.
    begun: Vec<u8>,
}

impl Lines<'_> {
    /// The next line, with its break; `None` when there will be none.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>, Trouble> {
        loop {
            if let Some(end) = self.begun.iter().position(|&byte| byte == b'\n') {
                let rest = self.begun.split_off(end + 1);
                return Ok(Some(std::mem::replace(&mut self.begun, rest)));
            }
            let piece = self.response.chunk().await;
            match piece.map_err(|error| self.agent.trouble(&error))? {
                Some(piece) => self.begun.extend_from_slice(&piece),
                None => return Ok(None),
            }
        }
    }
}

/// Reads what the agent said.
pub(super) fn read<T: DeserializeOwned>(document: &[u8]) -> Result<T, Trouble> {
    serde_json::from_slice(document).map_err(|error| {
        let message = format!("the agent's answer is not understood: {error}");
        Trouble::new(ExitCode::Other, message)
            .with_hint("fairbat and fairbat-agent should be of one version")
    })
}
