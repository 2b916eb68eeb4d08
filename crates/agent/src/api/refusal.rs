//! Why a request is refused: the status, and the document that goes with it.

use http::{Method, StatusCode};
use serde::Serialize;

use crate::daemon::handle::CommandError;

/// Bytes of a request's body that are taken.
pub(super) const MOST: usize = 64 * 1024;

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    /// What kind of refusal.
    pub(super) status: StatusCode,
    /// The one method that would be taken, with 405.
    pub(super) allow: Option<Method>,
    /// What is told.
    pub(super) document: Document,
}

/// What is told of a refusal: an interface, `docs/agent-api.md`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Document {
    /// What was wrong, in one sentence.
    pub(super) error: String,
    /// What to do about it.
    pub(super) hint: Option<String>,
}

impl Refusal {
    fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self {
            status,
            allow: None,
            document: Document {
                error: error.into(),
                hint: None,
            },
        }
    }

    /// The same with a piece of advice.
    pub(super) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.document.hint = Some(hint.into());
        self
    }

    /// The request makes no sense.
    pub(super) fn malformed(error: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    /// There is no such path.
    pub(super) fn no_such_path() -> Self {
        Self::new(StatusCode::NOT_FOUND, "there is nothing at this path").with_hint(
            "the paths are /v1/status, /v1/history/push, /v1/history/pull, /v1/run, \
                /v1/pause, /v1/resume, /v1/cancel, /v1/add and /v1/restore",
        )
    }

    /// That is not how this path is asked.
    pub(super) fn method(allow: Method) -> Self {
        let error = format!("this path takes {allow} only");
        Self {
            allow: Some(allow),
            ..Self::new(StatusCode::METHOD_NOT_ALLOWED, error)
        }
    }

    /// There is too much of it.
    pub(super) fn too_large() -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the body has more than {MOST} bytes"),
        )
    }

    /// There are too many connections.
    pub(super) fn too_many() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many connections to the agent are open",
        )
        .with_hint("close some, such as those that watch the status, and try again")
    }
}

impl From<CommandError> for Refusal {
    fn from(refused: CommandError) -> Self {
        let error = refused.to_string();
        match refused {
            CommandError::UnknownTask { nearest, .. } => {
                let hint = match nearest {
                    Some(name) => format!("did you mean {name:?}?"),
                    None => "the status lists all tasks".to_owned(),
                };
                Self::new(StatusCode::NOT_FOUND, error).with_hint(hint)
            }
            CommandError::NotNow(_) => Self::new(StatusCode::CONFLICT, error),
            CommandError::Impossible(_) => Self::malformed(error),
            CommandError::Stopping => Self::new(StatusCode::SERVICE_UNAVAILABLE, error)
                .with_hint("try again when it has been started again"),
        }
    }
}
