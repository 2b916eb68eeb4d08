//! The URLs of a run: from the command line and from `--input-file`.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use url::Url;

use super::UsageError;

/// All URLs, those of the command line first.
pub(super) fn all(
    given: &[String],
    input_file: Option<&Path>,
    stdin: &mut dyn BufRead,
) -> Result<Vec<Url>, UsageError> {
    let mut urls = given
        .iter()
        .map(|text| parse(text.trim()).map_err(UsageError::new))
        .collect::<Result<Vec<_>, _>>()?;
    if let Some(path) = input_file {
        let (name, listed) = if path.as_os_str() == "-" {
            let name = "standard input".to_owned();
            let listed = list(&name, stdin)?;
            (name, listed)
        } else {
            let name = path.display().to_string();
            let file = File::open(path).map_err(|error| unreadable(&name, &error))?;
            let listed = list(&name, &mut BufReader::new(file))?;
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

fn unreadable(name: &str, error: &io::Error) -> UsageError {
    UsageError(format!("--input-file: cannot read {name}: {error}"))
}

/// Reads a list: one URL per line, without empty lines and comments.
fn list(name: &str, lines: &mut dyn BufRead) -> Result<Vec<Url>, UsageError> {
    let mut urls = Vec::new();
    for (i, line) in lines.lines().enumerate() {
        let line = line.map_err(|error| unreadable(name, &error))?;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let url =
            parse(line).map_err(|error| UsageError(format!("{name}, line {}: {error}", i + 1)))?;
        urls.push(url);
    }
    Ok(urls)
}

/// Parses one URL of a scheme that can be fetched; the complaint shows it
/// without its credentials.
fn parse(text: &str) -> Result<Url, String> {
    let shown = without_credentials(text);
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(url),
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

/// The text without what stands before an `@` in its authority.
fn without_credentials(text: &str) -> String {
    let start = text.find("://").map_or(0, |scheme| scheme + 3);
    let rest = &text[start..];
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    match authority.rfind('@') {
        Some(at) => format!("{}{}", &text[..start], &rest[at + 1..]),
        None => text.to_owned(),
    }
}
