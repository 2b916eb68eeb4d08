//! Refused requests: the status code, and the document that explains it.

use http::{Method, StatusCode};
use serde::Serialize;

use crate::daemon::handle::CommandError;
use crate::fleet::NoAnswer;

/// Upper limit of the body of a request, bytes.
pub(crate) const MAX_BODY: usize = 64 * 1024;

/// A refused request. As JSON it is the body of the answer, which is an interface: see
/// `docs/agent-api.md`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ApiRefusal {
    #[serde(skip)]
    pub(crate) status: StatusCode,
    /// The one method that the path takes; only with 405.
    #[serde(skip)]
    pub(crate) allow: Option<Method>,
    /// The problem, in one sentence.
    pub(crate) error: String,
    /// What to do about it.
    pub(crate) hint: Option<String>,
}

impl ApiRefusal {
    fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self {
            status,
            allow: None,
            error: error.into(),
            hint: None,
        }
    }

    /// Adds a hint.
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The request makes no sense.
    pub(crate) fn malformed(error: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    /// The API has no such path.
    pub(crate) fn no_such_path() -> Self {
        Self::new(StatusCode::NOT_FOUND, "there is nothing at this path").with_hint(
            "the paths are /v1/status, /v1/history/push, /v1/history/pull, /v1/run, \
                /v1/check, /v1/pause, /v1/resume, /v1/cancel, /v1/add, /v1/restore, /v1/fleet, \
                /v1/fleet/hold and /v1/fleet/release",
        )
    }

    /// The agent takes part in no site.
    pub(crate) fn no_site() -> Self {
        Self::new(StatusCode::CONFLICT, "this agent takes part in no site").with_hint(
            "add [fleet] to its configuration and start it again; docs/fleet.md in the source \
                tells how",
        )
    }

    /// Only members of another group may restore.
    pub(crate) fn denied(group: &str) -> Self {
        let error = format!("only members of the group {group} may restore");
        Self::new(StatusCode::FORBIDDEN, error)
            .with_hint("ask one of them, or root; the group is restore_group in [agent]")
    }

    /// Only root and the agent's user may let a restore set the bits of other users.
    pub(crate) fn no_setuid() -> Self {
        let error = "only root and the agent's user may restore set-user-ID and set-group-ID bits";
        Self::new(StatusCode::FORBIDDEN, error)
            .with_hint("restore without --setuid, or ask root to run the same command")
    }

    /// The path takes another method.
    pub(crate) fn method(allow: Method) -> Self {
        let error = format!("this path takes {allow} only");
        Self {
            allow: Some(allow),
            ..Self::new(StatusCode::METHOD_NOT_ALLOWED, error)
        }
    }

    /// The body is too long.
    pub(crate) fn too_large() -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the body has more than {MAX_BODY} bytes"),
        )
    }

    /// Too many connections are open.
    pub(crate) fn too_many() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many connections to the agent are open, of your user or of all",
        )
        .with_hint("close some, such as those that watch the status, and try again")
    }
}

impl From<NoAnswer> for ApiRefusal {
    fn from(none: NoAnswer) -> Self {
        let error = none.to_string();
        match none {
            NoAnswer::Away(_) => Self::new(StatusCode::SERVICE_UNAVAILABLE, error)
                .with_hint("until then this agent goes on alone; try again"),
            NoAnswer::Refused(_) => Self::new(StatusCode::CONFLICT, error),
        }
    }
}

impl From<CommandError> for ApiRefusal {
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
