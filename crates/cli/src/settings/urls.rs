//! The URLs of a run: from the command line and from `--input-file`, where a
//! URL may have attributes of its own.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use url::Url;

use super::attributes::Attributes;
use super::{Surroundings, UsageError};

/// What the library takes for slashes.
const SLASHES: [char; 2] = ['/', '\\'];

/// A URL and what was said of it alone.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) url: Url,
    pub(super) attributes: Attributes,
}

/// All URLs, those of the command line first.
pub(super) fn all(
    given: &[String],
    input_file: Option<&Path>,
    around: &mut Surroundings<'_>,
) -> Result<Vec<Named>, UsageError> {
    let mut urls = given
        .iter()
        .map(|text| {
            Ok(Named {
                url: one(text)?,
                attributes: Attributes::default(),
            })
        })
        .collect::<Result<Vec<_>, _>>()?;
    if let Some(path) = input_file {
        let (name, listed) = if path.as_os_str() == "-" {
            let name = "standard input".to_owned();
            let listed = list(&name, around.stdin, around.now)?;
            (name, listed)
        } else {
            let name = path.display().to_string();
            let file = File::open(path).map_err(|error| unreadable(&name, &error))?;
            let listed = list(&name, &mut BufReader::new(file), around.now)?;
            (name, listed)
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

/// A URL of the command line.
pub(super) fn one(text: &str) -> Result<Url, UsageError> {
    parse(text.trim()).map_err(UsageError::new)
}

fn unreadable(name: &str, error: &io::Error) -> UsageError {
    UsageError(format!("--input-file: cannot read {name}: {error}"))
}

/// Reads a list: one URL per line with its attributes, without empty lines
/// and comments.
fn list(name: &str, lines: &mut dyn BufRead, now: &jiff::Zoned) -> Result<Vec<Named>, UsageError> {
    let mut urls = Vec::new();
    for (i, line) in lines.lines().enumerate() {
        let line = line.map_err(|error| unreadable(name, &error))?;
        let mut words = line.split_whitespace();
        let Some(first) = words.next().filter(|first| !first.starts_with('#')) else {
            continue;
        };
        let named = parse(first).and_then(|url| {
            let attributes = Attributes::parse(words, now)?;
            Ok(Named { url, attributes })
        });
        urls.push(named.map_err(|error| UsageError(format!("{name}, line {}: {error}", i + 1)))?);
    }
    Ok(urls)
}

/// Parses one URL of a scheme that can be fetched; the complaint shows it
/// without its credentials.
fn parse(text: &str) -> Result<Url, String> {
    let shown = without_credentials(text);
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => match misread(text) {
            None => Ok(url),
            Some(why) => Err(format!("{shown}: not a URL: {why}")),
        },
        // `example.org:8080/x` parses, with `example.org` as its scheme.
        Ok(_) | Err(url::ParseError::RelativeUrlWithoutBase) if !text.contains("://") => Err(
            format!("{shown}: not a URL, the scheme is missing; did you mean https://{shown} ?"),
        ),
        Ok(url) => Err(format!(
            "{shown}: the scheme {} is not supported; fairbat speaks http and https",
            url.scheme()
        )),
        Err(error) => Err(format!("{shown}: not a URL: {error}")),
    }
}

/// Why an http or https URL means another host than it says: browsers, and the
/// library with them, skip any slashes after the scheme, so that `http:///x`
/// and `http:x` would be asked of a host `x`.
fn misread(text: &str) -> Option<&'static str> {
    let (_, rest) = text.split_once(':')?;
    match rest.strip_prefix("//") {
        None => Some("two slashes belong after the scheme; write http://HOST/PATH"),
        Some(rest) if rest.starts_with(SLASHES) => Some("empty host"),
        Some(_) => None,
    }
}

/// The text without what stands before an `@` in its authority, wherever the
/// slashes are.
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
