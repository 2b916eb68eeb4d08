//! From the body of a request to a command for the daemon. Pure.
//!
//! An error names the members of the body but never their values, because a URL may
//! contain a password.

use std::path::PathBuf;

use fairbat::checksum::ChecksumError;
use fairbat::http::without_credentials;
use fairbat::settings::Checksum;
use jiff::Timestamp;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use url::Url;

use super::refusal::ApiRefusal;
use crate::config::fleet::is_name;
use crate::daemon::handle::{CommandError, TaskCommand};

/// Makes a command of the members of a body.
pub(crate) type CommandReader = fn(&mut Members) -> Result<TaskCommand, ApiRefusal>;

/// The reader for the commands of this path.
pub(crate) fn reader(path: &str) -> Option<CommandReader> {
    let reader: CommandReader = match path {
        "/v1/run" => |members| {
            Ok(TaskCommand::Run {
                job: members.text("job")?,
                accept_unmounted: members.paths("accept_unmounted")?,
            })
        },
        "/v1/check" => |members| {
            let job = members.text("job")?;
            Ok(TaskCommand::Check { job })
        },
        "/v1/pause" => |members| {
            let id = members.text("id")?;
            Ok(TaskCommand::Pause { id })
        },
        "/v1/resume" => |members| {
            let id = members.text("id")?;
            Ok(TaskCommand::Resume { id })
        },
        "/v1/cancel" => |members| {
            let id = members.text("id")?;
            Ok(TaskCommand::Cancel { id })
        },
        "/v1/add" => |members| {
            Ok(TaskCommand::Add {
                url: members.url("url")?,
                mirrors: members.urls("mirrors")?,
                checksum: members.checksum("checksum")?,
                to: members.path("to")?,
                deadline: members.moment("deadline")?,
            })
        },
        "/v1/restore" => |members| {
            Ok(TaskCommand::Restore {
                job: members.text("job")?,
                to: members.path("to")?,
                setuid: members.flag("setuid")?,
                deadline: members.moment("deadline")?,
            })
        },
        _ => return None,
    };
    Some(reader)
}

/// Reads a command from the body of a request.
///
/// # Errors
/// The first thing that is wrong with the body.
pub(crate) fn read_command(read: CommandReader, body: &[u8]) -> Result<TaskCommand, ApiRefusal> {
    let mut members = Members::of(body)?;
    let command = read(&mut members)?;
    members.finish()?;
    Ok(command)
}

/// Reads the name of a host from the body of a request.
///
/// # Errors
/// The first thing that is wrong with the body.
pub(crate) fn read_host(body: &[u8]) -> Result<String, ApiRefusal> {
    let mut members = Members::of(body)?;
    let host = members.text("host")?;
    members.finish()?;
    if !is_name(&host) {
        let error = format!("{host:?} is no name of a host");
        let hint = "fairbat fleet status lists the hosts of the site";
        return Err(ApiRefusal::malformed(error).with_hint(hint));
    }
    Ok(host)
}

/// The members of a JSON object that were not read yet, and the names of those that
/// were looked for.
pub(crate) struct Members {
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
            Ok(_) => Err(ApiRefusal::malformed("the body is not a JSON object").with_hint(form)),
            // The error names the place, but not the text at it.
            Err(error) => {
                Err(ApiRefusal::malformed(format!("the body is not JSON: {error}")).with_hint(form))
            }
        }
    }

    /// A string; `None` if the member is missing or null.
    fn optional_text(&mut self, name: &'static str) -> Result<Option<String>, ApiRefusal> {
        self.known.push(name);
        match self.left.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(ApiRefusal::malformed(format!("`{name}` is not a string"))),
        }
    }

    fn text(&mut self, name: &'static str) -> Result<String, ApiRefusal> {
        let text = self.optional_text(name)?;
        text.filter(|text| !text.is_empty())
            .ok_or_else(|| ApiRefusal::malformed(format!("`{name}` is missing")))
    }

    fn url(&mut self, name: &'static str) -> Result<Url, ApiRefusal> {
        let text = self.text(name)?;
        Self::parse_url(name, &text)
    }

    /// URLs; none if the member is missing or null.
    fn urls(&mut self, name: &'static str) -> Result<Vec<Url>, ApiRefusal> {
        self.known.push(name);
        let given = self.left.remove(name).unwrap_or_default();
        let texts = serde_json::from_value::<Option<Vec<String>>>(given);
        let texts = texts
            .map_err(|_| ApiRefusal::malformed(format!("`{name}` is not an array of strings")))?;
        let texts = texts.unwrap_or_default();
        texts
            .iter()
            .map(|text| Self::parse_url(name, text))
            .collect()
    }

    /// The digest that a file must have, if the member is there.
    fn checksum(&mut self, name: &'static str) -> Result<Option<Checksum>, ApiRefusal> {
        let Some(text) = self.optional_text(name)? else {
            return Ok(None);
        };
        let parsed = text.parse();
        parsed.map(Some).map_err(|error: ChecksumError| {
            ApiRefusal::malformed(format!("`{name}` is not a digest: {error}"))
        })
    }

    fn parse_url(name: &'static str, text: &str) -> Result<Url, ApiRefusal> {
        let wrong = |why: &str| {
            ApiRefusal::malformed(format!("`{name}` cannot be downloaded: {why}"))
                .with_hint("write http://HOST/PATH or https://HOST/PATH")
        };
        let url = Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
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
                ApiRefusal::malformed(format!("`{name}` is not an absolute path"))
                    .with_hint("write the path in full, from /"),
            )
        }
    }

    /// Paths that need not be absolute; none if the member is missing or null.
    fn paths(&mut self, name: &'static str) -> Result<Vec<PathBuf>, ApiRefusal> {
        self.known.push(name);
        let given = self.left.remove(name).unwrap_or_default();
        let paths = serde_json::from_value::<Option<Vec<PathBuf>>>(given);
        let paths = paths
            .map_err(|_| ApiRefusal::malformed(format!("`{name}` is not an array of strings")))?;
        Ok(paths.unwrap_or_default())
    }

    /// Whether something is wanted; not, if the member is missing or null.
    fn flag(&mut self, name: &'static str) -> Result<bool, ApiRefusal> {
        self.known.push(name);
        match self.left.remove(name) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(_) => Err(ApiRefusal::malformed(format!(
                "`{name}` is neither true nor false"
            ))),
        }
    }

    fn moment(&mut self, name: &'static str) -> Result<Option<Timestamp>, ApiRefusal> {
        let Some(text) = self.optional_text(name)? else {
            return Ok(None);
        };
        let moment = text.parse().map_err(|_| {
            ApiRefusal::malformed(format!("`{name}` is not a moment"))
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
pub(crate) struct HiddenCredentials(Vec<Url>);

impl HiddenCredentials {
    /// The credentials in this command.
    pub(crate) fn of(command: &TaskCommand) -> Self {
        match command {
            TaskCommand::Add { url, mirrors, .. } => {
                let urls = std::iter::once(url).chain(mirrors);
                let secret = urls.filter(|it| !it.username().is_empty() || it.password().is_some());
                Self(secret.cloned().collect())
            }
            TaskCommand::Run { .. }
            | TaskCommand::Pause { .. }
            | TaskCommand::Resume { .. }
            | TaskCommand::Cancel { .. }
            | TaskCommand::Restore { .. }
            | TaskCommand::Check { .. } => Self(Vec::new()),
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

    fn remove_from_text(&self, mut text: String) -> String {
        for url in &self.0 {
            text = text.replace(url.as_str(), without_credentials(url).as_str());
            let secret = url.password().unwrap_or(url.username());
            let decoded = percent_decode_str(secret).decode_utf8_lossy();
            if text.contains(secret) || text.contains(&*decoded) {
                return "the download cannot be added".to_owned();
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str, body: &[u8]) -> Result<TaskCommand, ApiRefusal> {
        read_command(reader(path).unwrap(), body)
    }

    fn refused(path: &str, body: &str) -> String {
        match read(path, body.as_bytes()) {
            Ok(command) => panic!("{body} was taken: {command:?}"),
            Err(refusal) => {
                assert_eq!(refusal.status.as_u16(), 400, "{body}");
                format!("{refusal:?}")
            }
        }
    }

    #[test]
    fn each_command_has_its_members() {
        let id = || "home".to_owned();
        let named = br#"{"id":"home"}"#;
        for (path, expected) in [
            ("/v1/pause", TaskCommand::Pause { id: id() }),
            ("/v1/resume", TaskCommand::Resume { id: id() }),
            ("/v1/cancel", TaskCommand::Cancel { id: id() }),
        ] {
            assert_eq!(read(path, named), Ok(expected));
        }
        let run = read("/v1/run", br#" {"job": "home"} "#);
        let expected = |paths: &[&str]| TaskCommand::Run {
            job: id(),
            accept_unmounted: paths.iter().map(PathBuf::from).collect(),
        };
        assert_eq!(run, Ok(expected(&[])));
        let run = read(
            "/v1/run",
            br#"{"job":"home","accept_unmounted":["/a","b"]}"#,
        );
        assert_eq!(run, Ok(expected(&["/a", "b"])));
        let digest = format!("sha-256={}", "0".repeat(64));
        let body = format!(
            r#"{{"url":"http://h/f","mirrors":["http://i/f"],"checksum":"{digest}","to":"/srv/f"}}"#
        );
        let expected_add = TaskCommand::Add {
            url: "http://h/f".parse().unwrap(),
            mirrors: vec!["http://i/f".parse().unwrap()],
            checksum: Some(Checksum::Sha256([0; 32])),
            to: "/srv/f".into(),
            deadline: None,
        };
        assert_eq!(read("/v1/add", body.as_bytes()), Ok(expected_add));
        let add = read(
            "/v1/add",
            br#"{"url":"https://me:pw@h/f","to":"/srv/","deadline":"2026-05-01T06:00:00+02:00"}"#,
        );
        let expected = TaskCommand::Add {
            url: "https://me:pw@h/f".parse().unwrap(),
            mirrors: Vec::new(),
            checksum: None,
            to: "/srv/".into(),
            deadline: Some("2026-05-01T04:00:00Z".parse().unwrap()),
        };
        assert_eq!(add, Ok(expected));
        for (body, setuid) in [
            (r#"{"job":"home","to":"/r"}"#, false),
            (
                r#"{"job":"home","to":"/r","deadline":null,"setuid":null}"#,
                false,
            ),
            (r#"{"job":"home","to":"/r","setuid":true}"#, true),
        ] {
            let expected = TaskCommand::Restore {
                job: id(),
                to: "/r".into(),
                setuid,
                deadline: None,
            };
            assert_eq!(read("/v1/restore", body.as_bytes()), Ok(expected));
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (path, body, expected) in [
            ("/v1/run", "", "not JSON"),
            ("/v1/run", "{", "not JSON"),
            ("/v1/run", "[]", "not a JSON object"),
            ("/v1/run", r#"{"job":"a"} x"#, "not JSON"),
            ("/v1/run", "{}", "`job` is missing"),
            ("/v1/run", r#"{"job":""}"#, "`job` is missing"),
            ("/v1/run", r#"{"job":1}"#, "`job` is not a string"),
            (
                "/v1/run",
                r#"{"job":"a","force":true}"#,
                "no member `force`",
            ),
            (
                "/v1/run",
                r#"{"job":"a","accept_unmounted":"/d"}"#,
                "`accept_unmounted` is not an array of strings",
            ),
            (
                "/v1/restore",
                r#"{"job":"a","to":"/r","setuid":"yes"}"#,
                "`setuid` is neither true nor false",
            ),
            ("/v1/pause", r#"{"job":"a"}"#, "`id` is missing"),
            ("/v1/add", r#"{"url":"h/f","to":"/"}"#, "`url`"),
            ("/v1/add", r#"{"url":"ftp://h/f","to":"/"}"#, "scheme"),
            ("/v1/add", r#"{"url":"http://h/f"}"#, "`to` is missing"),
            (
                "/v1/add",
                r#"{"url":"http://h/f","to":"srv"}"#,
                "`to` is not an absolute path",
            ),
            (
                "/v1/add",
                r#"{"url":"http://h/f","to":"/a\u0000b"}"#,
                "`to` is not an absolute path",
            ),
            (
                "/v1/restore",
                r#"{"job":"a","to":"/r","deadline":"06:00"}"#,
                "`deadline` is not a moment",
            ),
        ] {
            let said = refused(path, body);
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
            let said = refused("/v1/add", body);
            assert!(!said.contains("hunter2"), "{body}: {said}");
        }
    }

    fn said(url: &str, why: &str) -> String {
        let command = TaskCommand::Add {
            url: url.parse().unwrap(),
            mirrors: Vec::new(),
            checksum: None,
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
