//! HTTP requests to the agent over its Unix socket, and errors with advice.

use std::error::Error;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fairbat::error::TransferError;
use fairbat::printable::printable_json;
use nix::unistd::{Gid, Group};
use reqwest::{Client, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::api::RefusedRequest;
use crate::console::Console;
use crate::exit::ExitCode;
use crate::progress;

/// Longest wait for an answer. A healthy agent answers at once.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// A request that failed: the message, advice, and the exit code.
#[derive(Debug)]
pub(crate) struct AgentError {
    pub(crate) code: ExitCode,
    pub(crate) message: String,
    /// Empty if there is no advice.
    pub(crate) hint: String,
    /// The answer of the API, if it refused the request.
    pub(crate) document: Option<Vec<u8>>,
}

impl AgentError {
    pub(crate) fn new(code: ExitCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: String::new(),
            document: None,
        }
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: hint.into(),
            ..self
        }
    }

    /// The agent has ended in the middle of an answer.
    pub(crate) fn ended() -> Self {
        Self::new(ExitCode::Temporary, "the agent has ended").with_hint(IS_IT_RUNNING)
    }

    /// Prints the API's answer for programs, if asked for, and the message for people.
    pub(crate) fn print(&self, json: bool) {
        if let (true, Some(document)) = (json, &self.document) {
            // There is no better place to report a failure of standard output.
            let _ = write_document(document);
        }
        Console::plain().line(&progress::error(&self.message, &self.hint));
    }
}

impl From<TransferError> for AgentError {
    fn from(error: TransferError) -> Self {
        Self::new(ExitCode::of_kind(error.kind), error.message).with_hint(error.hint)
    }
}

/// Writes a document of the API to standard output.
pub(crate) fn write_document(document: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(printable_json(&String::from_utf8_lossy(document)).as_bytes())?;
    out.flush()
}

/// Advice if nothing listens at the socket.
const IS_IT_RUNNING: &str = "is fairbat-agent running? systemctl status fairbat-agent";

/// A client of the agent at one socket.
#[derive(Debug)]
pub(crate) struct AgentClient {
    socket: PathBuf,
    client: Client,
}

impl AgentClient {
    /// A client of the agent at this socket. It does not connect yet.
    pub(crate) fn at(socket: &Path) -> Result<Self, AgentError> {
        // reqwest needs a provider even without TLS. The empty list keeps it from reading
        // the certificate authorities.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .unix_socket(socket)
            .tls_certs_only([])
            .http1_only()
            .no_proxy()
            .build()
            .map_err(|error| {
                AgentError::new(ExitCode::Other, format!("cannot set up a client: {error}"))
            })?;
        Ok(Self {
            socket: socket.to_owned(),
            client,
        })
    }

    /// The answer to GET.
    pub(crate) async fn get(&self, path: &str) -> Result<Vec<u8>, AgentError> {
        self.in_time(async {
            let response = self.send(self.client.get(url(path))).await?;
            self.whole(response).await
        })
        .await
    }

    /// The answer to POST with this body.
    pub(crate) async fn post(&self, path: &str, request: &Value) -> Result<Vec<u8>, AgentError> {
        let body = request.to_string();
        self.in_time(async {
            let response = self.send(self.client.post(url(path)).body(body)).await?;
            self.whole(response).await
        })
        .await
    }

    /// The lines of the answer to GET, as they arrive.
    pub(crate) async fn lines(&self, path: &str) -> Result<AnswerLines<'_>, AgentError> {
        let response = self.in_time(self.send(self.client.get(url(path)))).await?;
        Ok(AnswerLines {
            agent: self,
            response,
            buffer: Vec::new(),
        })
    }

    async fn in_time<T>(
        &self,
        answer: impl Future<Output = Result<T, AgentError>>,
    ) -> Result<T, AgentError> {
        match tokio::time::timeout(ANSWER_TIMEOUT, answer).await {
            Ok(answer) => answer,
            Err(_) => {
                let message = format!("the agent at {} does not answer", self.socket.display());
                let hint = "see what it is doing: systemctl status fairbat-agent";
                Err(AgentError::new(ExitCode::Temporary, message).with_hint(hint))
            }
        }
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<Response, AgentError> {
        let response = request.send().await.map_err(|error| self.error(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let document = self.whole(response).await?;
        let refusal: RefusedRequest = serde_json::from_slice(&document).unwrap_or_default();
        let message = match refusal.error.as_str() {
            "" => format!("the agent answers {status}"),
            _ => refusal.error,
        };
        let code = match status {
            StatusCode::SERVICE_UNAVAILABLE => ExitCode::Temporary,
            _ => ExitCode::Other,
        };
        Err(AgentError {
            document: Some(document),
            ..AgentError::new(code, message).with_hint(refusal.hint.unwrap_or_default())
        })
    }

    async fn whole(&self, response: Response) -> Result<Vec<u8>, AgentError> {
        let body = response.bytes().await;
        body.map(Into::into).map_err(|error| self.error(&error))
    }

    fn error(&self, error: &reqwest::Error) -> AgentError {
        let socket = self.socket.display();
        let Some(cause) = cause(error) else {
            let message = format!("the agent at {socket} sent an invalid answer: {error}");
            return AgentError::new(ExitCode::Temporary, message);
        };
        match cause.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                let message = format!("no agent listens at {socket}: {cause}");
                AgentError::new(ExitCode::Temporary, message).with_hint(IS_IT_RUNNING)
            }
            io::ErrorKind::PermissionDenied => {
                let message = format!("no permission to use the agent's socket {socket}: {cause}");
                AgentError::new(ExitCode::Other, message).with_hint(permission_hint(&self.socket))
            }
            io::ErrorKind::InvalidInput => {
                let message = format!("{socket} is not a valid socket path: {cause}");
                AgentError::new(ExitCode::Other, message)
            }
            _ => {
                let message = format!("the connection to the agent at {socket} broke: {cause}");
                AgentError::new(ExitCode::Temporary, message).with_hint(IS_IT_RUNNING)
            }
        }
    }
}

/// The URL of a path. The host does not matter on a Unix socket.
fn url(path: &str) -> String {
    format!("http://agent{path}")
}

/// The error of the system behind another error.
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

/// Advice about the permission: the group of the socket, or of its nearest parent directory
/// that can be inspected.
fn permission_hint(socket: &Path) -> String {
    let group = socket
        .ancestors()
        .find_map(|path| path.metadata().ok())
        .map(|found| Gid::from_raw(found.gid()))
        .filter(|group| group.as_raw() != 0);
    let Some(group) = group else {
        return "only root has permission: use sudo".to_owned();
    };
    match Group::from_gid(group) {
        Ok(Some(Group { name, .. })) => format!(
            "members of the group {name} have permission: run sudo usermod -aG {name} \"$USER\" and \
             log in again; or use sudo"
        ),
        Ok(None) | Err(_) => {
            format!("only root and members of the group {group} have permission: use sudo")
        }
    }
}

/// The lines of an answer.
#[derive(Debug)]
pub(crate) struct AnswerLines<'a> {
    agent: &'a AgentClient,
    response: Response,
    /// The start of the next lines.
    buffer: Vec<u8>,
}

impl AnswerLines<'_> {
    /// The next line with its line break; `None` at the end of the answer.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, AgentError> {
        loop {
            if let Some(end) = self.buffer.iter().position(|&byte| byte == b'\n') {
                let rest = self.buffer.split_off(end + 1);
                return Ok(Some(std::mem::replace(&mut self.buffer, rest)));
            }
            let piece = self.response.chunk().await;
            match piece.map_err(|error| self.agent.error(&error))? {
                Some(piece) => self.buffer.extend_from_slice(&piece),
                None => return Ok(None),
            }
        }
    }
}

/// Parses an answer of the agent.
pub(crate) fn read<T: DeserializeOwned>(document: &[u8]) -> Result<T, AgentError> {
    serde_json::from_slice(document).map_err(|error| {
        let message = format!("the agent's answer cannot be read: {error}");
        AgentError::new(ExitCode::Other, message)
            .with_hint("install the same version of fairbat and fairbat-agent")
    })
}
