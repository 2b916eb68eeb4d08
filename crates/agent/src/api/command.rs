//! From the body of a request to a command for the daemon. Pure.
//!
//! An error names the members of the body but never their values, because a URL may
//! contain a password.

use std::path::PathBuf;

use fairbat::http::without_credentials;
use jiff::Timestamp;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use url::Url;

use super::refusal::ApiRefusal;
use crate::daemon::handle::{CommandError, TaskCommand};

/// The kinds of commands, one per path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandKind {
    Run,
    Pause,
    Resume,
    Cancel,
    Add,
    Restore,
}

/// Reads the command of this kind from the body of a request.
///
/// # Errors
/// The first thing that is wrong with the body.
pub(crate) fn read_command(kind: CommandKind, body: &[u8]) -> Result<TaskCommand, ApiRefusal> {
    let mut members = Members::of(body)?;
    let command = match kind {
        CommandKind::Run => TaskCommand::Run {
            job: members.text("job")?,
        },
        CommandKind::Pause => TaskCommand::Pause {
            id: members.text("id")?,
        },
        CommandKind::Resume => TaskCommand::Resume {
            id: members.text("id")?,
        },
        CommandKind::Cancel => TaskCommand::Cancel {
            id: members.text("id")?,
        },
        CommandKind::Add => TaskCommand::Add {
            url: members.url("url")?,
            to: members.path("to")?,
            deadline: members.moment("deadline")?,
        },
        CommandKind::Restore => TaskCommand::Restore {
            job: members.text("job")?,
            to: members.path("to")?,
            deadline: members.moment("deadline")?,
        },
    };
    members.finish()?;
    Ok(command)
}

/// The members of a JSON object that were not read yet, and the names of those that
/// were looked for.
struct Members {
    left: Map<String, Value>,
    known: Vec<&'static str>,
}

impl Members {
    fn of(body: &[u8]) -> Result<Self, ApiRefusal> {
        let form = "the body is an object, such as {\"id\":\"home\"}";
        match serde_json::from_slice(body) {
            Ok(Value::Object(left)) => Ok(Self {
                left,
                known: Vec::new(),
            }),
            Ok(_) => Err(ApiRefusal::malformed("the body is no JSON object").with_hint(form)),
            // The error names the place, but not the text at it.
            Err(error) => {
                Err(ApiRefusal::malformed(format!("the body is no JSON: {error}")).with_hint(form))
            }
        }
    }

    /// A string; `None` if the member is missing or null.
    fn optional_text(&mut self, name: &'static str) -> Result<Option<String>, ApiRefusal> {
        self.known.push(name);
        match self.left.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(ApiRefusal::malformed(format!("`{name}` is no string"))),
        }
    }

    fn text(&mut self, name: &'static str) -> Result<String, ApiRefusal> {
        let text = self.optional_text(name)?;
        text.filter(|text| !text.is_empty())
            .ok_or_else(|| ApiRefusal::malformed(format!("`{name}` is missing")))
    }

    fn url(&mut self, name: &'static str) -> Result<Url, ApiRefusal> {
        let text = self.text(name)?;
        let wrong = |why: &str| {
            ApiRefusal::malformed(format!("`{name}` is no URL that can be downloaded: {why}"))
                .with_hint("write http://HOST/PATH or https://HOST/PATH")
        };
        let url = Url::parse(&text).map_err(|error| wrong(&error.to_string()))?;
        match url.scheme() {
            "http" | "https" => Ok(url),
            _ => Err(wrong("its scheme is neither http nor https")),
        }
    }

    fn path(&mut self, name: &'static str) -> Result<PathBuf, ApiRefusal> {
        let path = PathBuf::from(self.text(name)?);
        let is_path = path.is_absolute() && !path.as_os_str().as_encoded_bytes().contains(&0);
        if is_path {
            Ok(path)
        } else {
            Err(
                ApiRefusal::malformed(format!("`{name}` is no absolute path"))
                    .with_hint("write the path in full, from /"),
            )
        }
    }

    fn moment(&mut self, name: &'static str) -> Result<Option<Timestamp>, ApiRefusal> {
        let Some(text) = self.optional_text(name)? else {
            return Ok(None);
        };
        let moment = text.parse().map_err(|_| {
            ApiRefusal::malformed(format!("`{name}` is no moment"))
                .with_hint("write it as in RFC 3339: 2026-05-01T06:00:00Z")
        })?;
        Ok(Some(moment))
    }

    fn finish(self) -> Result<(), ApiRefusal> {
        let Some(name) = self.left.keys().next() else {
            return Ok(());
        };
        let known: Vec<String> = self.known.iter().map(|name| format!("`{name}`")).collect();
        let error = format!("there is no member `{}` here", name.escape_debug());
        Err(ApiRefusal::malformed(error).with_hint(format!("it takes {}", known.join(", "))))
    }
}

/// The URL of a command, if it has a user name or a password. They are removed from
/// all that is said about the command.
#[derive(Debug)]
pub(crate) struct HiddenCredentials(Option<Url>);

impl HiddenCredentials {
    /// The credentials in this command.
    pub(crate) fn of(command: &TaskCommand) -> Self {
        match command {
            TaskCommand::Add { url, .. }
                if !url.username().is_empty() || url.password().is_some() =>
            {
                Self(Some(url.clone()))
            }
            TaskCommand::Add { .. }
            | TaskCommand::Run { .. }
            | TaskCommand::Pause { .. }
            | TaskCommand::Resume { .. }
            | TaskCommand::Cancel { .. }
            | TaskCommand::Restore { .. } => Self(None),
        }
    }

    /// The same error without the credentials.
    pub(crate) fn remove_from(&self, error: CommandError) -> CommandError {
        match error {
            CommandError::NotNow(why) => CommandError::NotNow(self.remove_from_text(why)),
            CommandError::Impossible(why) => CommandError::Impossible(self.remove_from_text(why)),
            CommandError::UnknownTask { .. } | CommandError::Stopping => error,
        }
    }

    fn remove_from_text(&self, text: String) -> String {
        let Some(url) = &self.0 else { return text };
        let text = text.replace(url.as_str(), without_credentials(url).as_str());
        let secret = url.password().unwrap_or(url.username());
        let decoded = percent_decode_str(secret).decode_utf8_lossy();
        if text.contains(secret) || text.contains(&*decoded) {
            "the download cannot be added".to_owned()
        } else {
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(kind: CommandKind, body: &str) -> String {
        match read_command(kind, body.as_bytes()) {
            Ok(command) => panic!("{body} was taken: {command:?}"),
            Err(refusal) => {
                assert_eq!(refusal.status.as_u16(), 400, "{body}");
                format!("{:?}", refusal.document)
            }
        }
    }

    #[test]
    fn each_command_has_its_members() {
        let id = || "home".to_owned();
        let named = br#"{"id":"home"}"#;
        for (kind, expected) in [
            (CommandKind::Pause, TaskCommand::Pause { id: id() }),
            (CommandKind::Resume, TaskCommand::Resume { id: id() }),
            (CommandKind::Cancel, TaskCommand::Cancel { id: id() }),
        ] {
            assert_eq!(read_command(kind, named), Ok(expected));
        }
        let run = read_command(CommandKind::Run, br#" {"job": "home"} "#);
        assert_eq!(run, Ok(TaskCommand::Run { job: id() }));
        let add = read_command(
            CommandKind::Add,
            br#"{"url":"https://me:pw@h/f","to":"/srv/","deadline":"2026-05-01T06:00:00+02:00"}"#,
        );
        let expected = TaskCommand::Add {
            url: "https://me:pw@h/f".parse().unwrap(),
            to: "/srv/".into(),
            deadline: Some("2026-05-01T04:00:00Z".parse().unwrap()),
        };
        assert_eq!(add, Ok(expected));
        for body in [
            r#"{"job":"home","to":"/r"}"#,
            r#"{"job":"home","to":"/r","deadline":null}"#,
        ] {
            let expected = TaskCommand::Restore {
                job: id(),
                to: "/r".into(),
                deadline: None,
            };
            assert_eq!(
                read_command(CommandKind::Restore, body.as_bytes()),
                Ok(expected)
            );
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (kind, body, expected) in [
            (CommandKind::Run, "", "no JSON"),
            (CommandKind::Run, "{", "no JSON"),
            (CommandKind::Run, "[]", "no JSON object"),
            (CommandKind::Run, r#"{"job":"a"} x"#, "no JSON"),
            (CommandKind::Run, "{}", "`job` is missing"),
            (CommandKind::Run, r#"{"job":""}"#, "`job` is missing"),
            (CommandKind::Run, r#"{"job":1}"#, "`job` is no string"),
            (
                CommandKind::Run,
                r#"{"job":"a","force":true}"#,
                "no member `force`",
            ),
            (CommandKind::Pause, r#"{"job":"a"}"#, "`id` is missing"),
            (CommandKind::Add, r#"{"url":"h/f","to":"/"}"#, "`url`"),
            (
                CommandKind::Add,
                r#"{"url":"ftp://h/f","to":"/"}"#,
                "scheme",
            ),
            (
                CommandKind::Add,
                r#"{"url":"http://h/f"}"#,
                "`to` is missing",
            ),
            (
                CommandKind::Add,
                r#"{"url":"http://h/f","to":"srv"}"#,
                "`to` is no absolute path",
            ),
            (
                CommandKind::Add,
                r#"{"url":"http://h/f","to":"/a\u0000b"}"#,
                "`to` is no absolute path",
            ),
            (
                CommandKind::Restore,
                r#"{"job":"a","to":"/r","deadline":"06:00"}"#,
                "`deadline` is no moment",
            ),
        ] {
            let said = refused(kind, body);
            assert!(said.contains(expected), "{body}: {said}");
        }
    }

    #[test]
    fn no_value_is_repeated() {
        for body in [
            r#""https://me:hunter2@h/f""#,
            r#"{"url":"https://me:hunter2@h:99999/f","to":"/"}"#,
            r#"{"url":"ftp://me:hunter2@h/f","to":"/"}"#,
            r#"{"url":["https://me:hunter2@h/f"],"to":"/"}"#,
            r#"{"url":"https://me:hunter2@h/f","to":"https://me:hunter2@h/f"}"#,
            r#"{"url":"https://me:hunter2@h/f","to":"/","deadline":"hunter2"}"#,
            r#"{"url":"https://me:hunter2@h/f" x"#,
            r#"{"url":"https://me:hunter2@h/f","to":"/","x":"hunter2"}"#,
        ] {
            let said = refused(CommandKind::Add, body);
            assert!(!said.contains("hunter2"), "{body}: {said}");
        }
    }

    fn said(url: &str, why: &str) -> String {
        let command = TaskCommand::Add {
            url: url.parse().unwrap(),
            to: "/srv".into(),
            deadline: None,
        };
        let hidden = HiddenCredentials::of(&command);
        hidden
            .remove_from(CommandError::Impossible(why.to_owned()))
            .to_string()
    }

    #[test]
    fn a_password_is_taken_out_or_nothing_is_said() {
        let url = "https://me:p%40ss@h/f";
        assert_eq!(
            said(url, "https://me:p%40ss@h/f: no room"),
            "https://h/f: no room"
        );
        for why in ["p@ss is wrong", "me:p%40ss@h says no"] {
            assert_eq!(said(url, why), "the download cannot be added");
        }
        assert_eq!(
            said("https://token@h/f", "https://token@h/f"),
            "https://h/f"
        );
        assert_eq!(said("https://h/f", "no room"), "no room");
    }
}
