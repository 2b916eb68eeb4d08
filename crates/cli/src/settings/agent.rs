//! From the arguments of `fairbat add` and `fairbat restore` to what the agent is
//! asked.

use std::path::{Path, PathBuf};

use jiff::{Timestamp, Zoned};
use serde::Serialize;

use super::{UsageError, deadline, optional, urls};
use crate::args::{AddArgs, RestoreArgs};

/// A download: the body of `POST /v1/add`.
#[derive(Debug, Serialize)]
pub(crate) struct Addition {
    /// With its user name and password, if it has them.
    url: String,
    /// An absolute path; that of a directory ends with a slash.
    to: String,
    deadline: Option<Timestamp>,
}

/// A restore: the body of `POST /v1/restore`.
#[derive(Debug, Serialize)]
pub(crate) struct Restoration {
    job: String,
    /// An absolute path.
    to: String,
    deadline: Option<Timestamp>,
}

/// Turns the arguments of `fairbat add`, given at `now` in this directory, into what
/// the agent is asked.
///
/// # Errors
/// The first thing that is wrong with them.
pub(crate) fn addition(args: &AddArgs, now: &Zoned, here: &Path) -> Result<Addition, UsageError> {
    let url = urls::one(&args.url)?;
    let directory = args.directory.as_deref().unwrap_or(Path::new(""));
    let to = match &args.output {
        Some(file) if file.as_os_str().as_encoded_bytes().ends_with(b"/") => {
            let what = format!("--output: {} names no file", file.display());
            return Err(UsageError(format!("{what}; for a directory there is -d")));
        }
        Some(file) => absolute("--output", &here.join(directory).join(file))?,
        None => {
            let directory = absolute("--directory", &here.join(directory))?;
            format!("{}/", directory.trim_end_matches('/'))
        }
    };
    Ok(Addition {
        url: url.into(),
        to,
        deadline: when(args.deadline.as_ref(), now)?,
    })
}

/// Turns the arguments of `fairbat restore`, given at `now` in this directory, into
/// what the agent is asked.
///
/// # Errors
/// The first thing that is wrong with them.
pub(crate) fn restoration(
    args: &RestoreArgs,
    now: &Zoned,
    here: &Path,
) -> Result<Restoration, UsageError> {
    Ok(Restoration {
        job: args.job.clone(),
        to: absolute("--to", &here.join(&args.to))?,
        deadline: when(args.deadline.as_ref(), now)?,
    })
}

fn when(text: Option<&String>, now: &Zoned) -> Result<Option<Timestamp>, UsageError> {
    optional("--deadline", &text.cloned(), |text| deadline(text, now))
}

/// As the agent needs it, which runs in another directory. `..` stays: only who
/// follows symbolic links knows where it leads.
fn absolute(flag: &str, path: &Path) -> Result<String, UsageError> {
    let path: PathBuf = path.components().collect();
    path.into_os_string().into_string().map_err(|path| {
        UsageError(format!(
            "{flag}: {} is not UTF-8, and the agent cannot be told of it; choose another name",
            path.display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;
    use crate::args::tests::{add_from, restore_from};

    const NOW: &str = "2026-03-01T14:00:00+01:00[+01:00]";

    fn added(words: &[&str]) -> Result<(String, String), String> {
        let now = NOW.parse().expect("a moment");
        let addition = addition(&add_from(words), &now, Path::new("/home/me"));
        let addition = addition.map_err(|error| error.to_string())?;
        let deadline = addition.deadline.map(|moment| moment.to_string());
        Ok((addition.to, deadline.unwrap_or_default()))
    }

    #[test]
    fn paths_are_absolute_and_directories_end_with_a_slash() {
        for (flags, expected) in [
            (&[][..], "/home/me/"),
            (&["-d", "."], "/home/me/"),
            (&["-d", "iso/"], "/home/me/iso/"),
            (&["-d", "/"], "/"),
            (&["-d", "../you"], "/home/me/../you/"),
            (&["-o", "f"], "/home/me/f"),
            (&["-o", "/srv/f"], "/srv/f"),
            (&["-d", "iso", "-o", "f"], "/home/me/iso/f"),
        ] {
            let words = [flags, &["http://h/f"]].concat();
            assert_eq!(
                added(&words),
                Ok((expected.to_owned(), String::new())),
                "{flags:?}"
            );
        }
    }

    #[test]
    fn deadlines_are_those_of_get() {
        for (text, expected) in [
            ("06:00", "2026-03-02T05:00:00Z"),
            ("4h", "2026-03-01T17:00:00Z"),
            ("2026-03-01T06:00:00Z", "2026-03-01T06:00:00Z"),
        ] {
            let (_, deadline) = added(&["--deadline", text, "http://h/f"]).expect("it is right");
            assert_eq!(deadline, expected);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (words, expected) in [
            (&["h/f"][..], "https://h/f ?"),
            (&["http:///f"], "empty host"),
            (&["--deadline", "soon", "http://h/f"], "--deadline"),
            (&["-o", "iso/", "http://h/f"], "--output"),
        ] {
            let error = added(words).expect_err(expected);
            assert!(error.contains(expected), "{words:?}: {error}");
        }
        let odd = Path::new(OsStr::from_bytes(b"/srv/\xff"));
        let error = absolute("--to", odd).expect_err("no UTF-8").to_string();
        assert!(error.contains("--to") && error.contains("UTF-8"), "{error}");
    }

    #[test]
    fn a_restore_has_a_job_and_a_directory() {
        let now = NOW.parse().expect("a moment");
        let args = restore_from(&["home", "--to", "back"]);
        let asked = restoration(&args, &now, Path::new("/home/me")).expect("it is right");
        let asked = serde_json::to_string(&asked).expect("texts only");
        assert_eq!(
            asked,
            r#"{"job":"home","to":"/home/me/back","deadline":null}"#
        );
    }
}
