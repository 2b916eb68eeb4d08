//! From the body of a request to what the daemon is told. Pure.
//!
//! What is wrong is told by the names of members, never by their values: a URL may
//! have a password in it.

use std::path::PathBuf;

use jiff::Timestamp;
use serde_json::{Map, Value};
use url::Url;

use super::refusal::Refusal;
use super::route::Order;
use crate::daemon::handle::TaskCommand;

/// What this body orders.
///
/// # Errors
/// The first thing that is wrong with it.
pub(super) fn command(order: Order, body: &[u8]) -> Result<TaskCommand, Refusal> {
    let mut members = Members::of(body)?;
    let command = match order {
        Order::Run => TaskCommand::Run {
            job: members.text("job")?,
        },
        Order::Pause => TaskCommand::Pause {
            id: members.text("id")?,
        },
        Order::Resume => TaskCommand::Resume {
            id: members.text("id")?,
        },
        Order::Cancel => TaskCommand::Cancel {
            id: members.text("id")?,
        },
        Order::Add => TaskCommand::Add {
            url: members.url("url")?,
            to: members.path("to")?,
            deadline: members.moment("deadline")?,
        },
        Order::Restore => TaskCommand::Restore {
            job: members.text("job")?,
            to: members.path("to")?,
            deadline: members.moment("deadline")?,
        },
    };
    members.finish()?;
    Ok(command)
}

/// What is left of an object, and what was looked for in it.
struct Members {
    left: Map<String, Value>,
    known: Vec<&'static str>,
}

impl Members {
    fn of(body: &[u8]) -> Result<Self, Refusal> {
        let form = "the body is an object, such as {\"id\":\"home\"}";
        match serde_json::from_slice(body) {
            Ok(Value::Object(left)) => Ok(Self {
                left,
                known: Vec::new(),
            }),
            Ok(_) => Err(Refusal::malformed("the body is no JSON object").with_hint(form)),
            // Says where, and nothing of what stands there.
            Err(error) => {
                Err(Refusal::malformed(format!("the body is no JSON: {error}")).with_hint(form))
            }
        }
    }

    /// `None` for a member that is not there, or null.
    fn optional_text(&mut self, name: &'static str) -> Result<Option<String>, Refusal> {
        self.known.push(name);
        match self.left.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Refusal::malformed(format!("`{name}` is no string"))),
        }
    }

    fn text(&mut self, name: &'static str) -> Result<String, Refusal> {
        let text = self.optional_text(name)?;
        text.filter(|text| !text.is_empty())
            .ok_or_else(|| Refusal::malformed(format!("`{name}` is missing")))
    }

    fn url(&mut self, name: &'static str) -> Result<Url, Refusal> {
        let text = self.text(name)?;
        let wrong = |why: &str| {
            Refusal::malformed(format!("`{name}` is no URL that can be downloaded: {why}"))
                .with_hint("write http://HOST/PATH or https://HOST/PATH")
        };
        let url = Url::parse(&text).map_err(|error| wrong(&error.to_string()))?;
        match url.scheme() {
            "http" | "https" => Ok(url),
            _ => Err(wrong("its scheme is neither http nor https")),
        }
    }

    fn path(&mut self, name: &'static str) -> Result<PathBuf, Refusal> {
        let path = PathBuf::from(self.text(name)?);
        let is_path = path.is_absolute() && !path.as_os_str().as_encoded_bytes().contains(&0);
        if is_path {
            Ok(path)
        } else {
            Err(Refusal::malformed(format!("`{name}` is no absolute path"))
                .with_hint("write the path in full, from /"))
        }
    }

    fn moment(&mut self, name: &'static str) -> Result<Option<Timestamp>, Refusal> {
        let Some(text) = self.optional_text(name)? else {
            return Ok(None);
        };
        let moment = text.parse().map_err(|_| {
            Refusal::malformed(format!("`{name}` is no moment"))
                .with_hint("write it as in RFC 3339: 2026-05-01T06:00:00Z")
        })?;
        Ok(Some(moment))
    }

    fn finish(self) -> Result<(), Refusal> {
        let Some(name) = self.left.keys().next() else {
            return Ok(());
        };
        let known: Vec<String> = self.known.iter().map(|name| format!("`{name}`")).collect();
        let error = format!("there is no member `{}` here", name.escape_debug());
        Err(Refusal::malformed(error).with_hint(format!("it takes {}", known.join(", "))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(order: Order, body: &str) -> String {
        match command(order, body.as_bytes()) {
            Ok(command) => panic!("{body} was taken: {command:?}"),
            Err(refusal) => {
                assert_eq!(refusal.status.as_u16(), 400, "{body}");
                format!("{:?}", refusal.document)
            }
        }
    }

    #[test]
    fn each_order_has_its_members() {
        let id = || "home".to_owned();
        let named = br#"{"id":"home"}"#;
        for (order, expected) in [
            (Order::Pause, TaskCommand::Pause { id: id() }),
            (Order::Resume, TaskCommand::Resume { id: id() }),
            (Order::Cancel, TaskCommand::Cancel { id: id() }),
        ] {
            assert_eq!(command(order, named), Ok(expected));
        }
        let run = command(Order::Run, br#" {"job": "home"} "#);
        assert_eq!(run, Ok(TaskCommand::Run { job: id() }));
        let add = command(
            Order::Add,
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
            assert_eq!(command(Order::Restore, body.as_bytes()), Ok(expected));
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (order, body, expected) in [
            (Order::Run, "", "no JSON"),
            (Order::Run, "{", "no JSON"),
            (Order::Run, "[]", "no JSON object"),
            (Order::Run, r#"{"job":"a"} x"#, "no JSON"),
            (Order::Run, "{}", "`job` is missing"),
            (Order::Run, r#"{"job":""}"#, "`job` is missing"),
            (Order::Run, r#"{"job":1}"#, "`job` is no string"),
            (
                Order::Run,
                r#"{"job":"a","force":true}"#,
                "no member `force`",
            ),
            (Order::Pause, r#"{"job":"a"}"#, "`id` is missing"),
            (Order::Add, r#"{"url":"h/f","to":"/"}"#, "`url`"),
            (Order::Add, r#"{"url":"ftp://h/f","to":"/"}"#, "scheme"),
            (Order::Add, r#"{"url":"http://h/f"}"#, "`to` is missing"),
            (
                Order::Add,
                r#"{"url":"http://h/f","to":"srv"}"#,
                "`to` is no absolute path",
            ),
            (
                Order::Add,
                r#"{"url":"http://h/f","to":"/a\u0000b"}"#,
                "`to` is no absolute path",
            ),
            (
                Order::Restore,
                r#"{"job":"a","to":"/r","deadline":"06:00"}"#,
                "`deadline` is no moment",
            ),
        ] {
            let said = refused(order, body);
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
            let said = refused(Order::Add, body);
            assert!(!said.contains("hunter2"), "{body}: {said}");
        }
    }
}
