//! The URLs of a run, from the command line and from `--input-file`. A line of that file
//! may give its URL a deadline of its own.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::str::SplitWhitespace;

use jiff::{Timestamp, Zoned};
use url::Url;

use super::{Environment, UsageError, deadline};

/// Characters that the `url` crate reads as slashes.
const SLASHES: [char; 2] = ['/', '\\'];

/// A URL and what its line says about it.
#[derive(Debug)]
pub(crate) struct ListedUrl {
    pub(crate) url: Url,
    /// Other URLs of the same file, in the order in which they are tried.
    pub(crate) mirrors: Vec<Url>,
    /// The URL's own deadline. It replaces `--deadline`.
    pub(crate) deadline: Option<Timestamp>,
}

/// All URLs of a run; those of the command line come first.
pub(crate) fn all(
    given: &[String],
    input_file: Option<&Path>,
    environment: &mut Environment<'_>,
) -> Result<Vec<ListedUrl>, UsageError> {
    let alone = |url| ListedUrl {
        url,
        mirrors: Vec::new(),
        deadline: None,
    };
    let mut urls: Vec<_> = self::given(given)?.into_iter().map(alone).collect();
    if let Some(path) = input_file {
        let name = name(path);
        let listed = if path.as_os_str() == "-" {
            list(&name, environment.stdin, environment.now)?
        } else {
            let file = File::open(path).map_err(|error| unreadable(&name, &error))?;
            list(&name, &mut BufReader::new(file), environment.now)?
        };
        if urls.is_empty() && listed.is_empty() {
            return Err(UsageError(format!(
                "--input-file: no URL in {name}; write one per line"
            )));
        }
        urls.extend(listed);
    }
    Ok(urls)
}

/// The URLs of the command line.
pub(crate) fn given(texts: &[String]) -> Result<Vec<Url>, UsageError> {
    texts.iter().map(|text| one(text)).collect()
}

/// The values of `--mirror`. FAIRBAT_MIRROR may be empty, or end with a line break.
pub(crate) fn mirrors(texts: &[String]) -> Result<Vec<Url>, UsageError> {
    let texts = texts.iter().filter(|text| !text.trim().is_empty());
    let wrong = |error| UsageError(format!("--mirror: {error}"));
    texts.map(|text| one(text).map_err(wrong)).collect()
}

/// Parses a URL of the command line.
pub(crate) fn one(text: &str) -> Result<Url, UsageError> {
    parse(text.trim()).map_err(UsageError::new)
}

fn unreadable(name: &str, error: &io::Error) -> UsageError {
    UsageError(format!("--input-file: cannot read {name}: {error}"))
}

/// Reads a list: one file per line. Skips empty lines and comments.
fn list(name: &str, lines: &mut dyn BufRead, now: &Zoned) -> Result<Vec<ListedUrl>, UsageError> {
    let mut urls = Vec::new();
    for (i, line) in lines.lines().enumerate() {
        let line = line.map_err(|error| unreadable(name, &error))?;
        let Some((first, words)) = words(&line) else {
            continue;
        };
        let listed = parse(first).and_then(|url| {
            let (mirrors, deadline) = rest(words, now)?;
            Ok(ListedUrl {
                url,
                mirrors,
                deadline,
            })
        });
        urls.push(listed.map_err(|error| UsageError(format!("{name}, line {}: {error}", i + 1)))?);
    }
    Ok(urls)
}

/// The URL of a line, and the words after it; `None` for an empty line or a comment.
fn words(line: &str) -> Option<(&str, SplitWhitespace<'_>)> {
    let mut words = line.split_whitespace();
    let first = words.next().filter(|first| !first.starts_with('#'))?;
    Some((first, words))
}

/// What an input file is called in messages.
pub(crate) fn name(input_file: &Path) -> String {
    if input_file.as_os_str() == "-" {
        "standard input".to_owned()
    } else {
        input_file.display().to_string()
    }
}

/// An input file that is there, if it has to be; it is not opened, since a named pipe waits
/// for its writer.
pub(crate) fn checked(input_file: &Path) -> Result<&Path, UsageError> {
    if input_file.as_os_str() != "-" {
        let found = std::fs::metadata(input_file);
        found.map_err(|error| unreadable(&name(input_file), &error))?;
    }
    Ok(input_file)
}

/// Reads a line of an input that is followed: a URL, which can have no deadline. `None` for
/// an empty line or a comment.
pub(crate) fn followed(line: &str) -> Result<Option<Url>, String> {
    let Some((first, mut words)) = words(line) else {
        return Ok(None);
    };
    match words.next() {
        None => parse(first).map(Some),
        Some(word) => Err(format!(
            "{:?} is one word too many; with --follow, a line has only a URL, and no deadline",
            without_credentials(word)
        )),
    }
}

/// Reads the words after a URL: its mirrors, and at most one `deadline=WHEN`.
fn rest<'a>(
    words: impl Iterator<Item = &'a str>,
    now: &Zoned,
) -> Result<(Vec<Url>, Option<Timestamp>), String> {
    let (mut mirrors, mut found) = (Vec::new(), None);
    for word in words {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        if name != "deadline" && word.contains("://") {
            mirrors.push(parse(word)?);
            continue;
        }
        if name != "deadline" {
            return Err(format!(
                "{word:?} is not the URL of a mirror, and not deadline=WHEN; nothing else may \
                 follow a URL (write %20 for a space within the URL)"
            ));
        }
        if value.is_empty() {
            let advice = "write deadline=06:00, deadline=4h or \
                deadline=2026-05-01T06:00:00+02:00, without spaces";
            return Err(format!("the deadline is missing; {advice}"));
        }
        let deadline = deadline(value, now).map_err(|error| error.to_string())?;
        if found.replace(deadline).is_some() {
            return Err("there are two deadlines; keep one".to_owned());
        }
    }
    Ok((mirrors, found))
}

/// Parses an http or https URL. The error shows the text without its credentials.
fn parse(text: &str) -> Result<Url, String> {
    let shown = without_credentials(text);
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => match misleading(text) {
            None => Ok(url),
            Some(why) => Err(format!("{shown}: not a URL: {why}")),
        },
        // `example.org:8080/x` parses, with `example.org` as its scheme.
        Ok(_) | Err(url::ParseError::RelativeUrlWithoutBase) if !text.contains("://") => Err(
            format!("{shown}: not a URL, the scheme is missing; did you mean https://{shown} ?"),
        ),
        Ok(url) => Err(format!(
            "{shown}: the scheme {} is not supported; fairbat supports http and https",
            url.scheme()
        )),
        Err(error) => Err(format!("{shown}: not a URL: {error}")),
    }
}

/// Why an http or https URL leads to a host that its text does not show. Browsers and
/// the `url` crate skip all slashes after the scheme, so `http:///x` and `http:x` mean
/// the host `x`.
fn misleading(text: &str) -> Option<&'static str> {
    let (_, rest) = text.split_once(':')?;
    match rest.strip_prefix("//") {
        None => Some("two slashes belong after the scheme; write http://HOST/PATH"),
        Some(rest) if rest.starts_with(SLASHES) => Some("empty host"),
        Some(_) => None,
    }
}

/// The text without everything before an `@` in its authority, however many slashes
/// there are.
fn without_credentials(text: &str) -> String {
    let is_of_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let start = match text.trim_start_matches(is_of_scheme).strip_prefix(':') {
        Some(rest) if rest.starts_with(SLASHES) => {
            text.len() - rest.trim_start_matches(SLASHES).len()
        }
        _ => 0,
    };
    let rest = &text[start..];
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    match authority.rfind('@') {
        Some(at) => format!("{}{}", &text[..start], &rest[at + 1..]),
        None => text.to_owned(),
    }
}
