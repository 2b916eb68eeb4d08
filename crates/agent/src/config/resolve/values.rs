//! Checks of values that have the same meaning in several tables. A wrong value becomes a
//! problem, and the method returns `None`.

use std::path::PathBuf;
use std::time::Duration;

use dalbe::weight::MIN_WEIGHT;
use fairbat::units::{parse_duration, parse_size};
use toml::{Spanned, Value};
use url::Url;

use crate::config::problem::{Checker, suggestion};
use crate::config::raw::TableHeader;

/// Longest name of a store or a job, bytes: that of a host-name label (RFC 1035, section
/// 2.3.4). Such names also fit file names, metrics and variables.
const MAX_NAME_LENGTH: usize = 63;

/// Advice for a name that [`is_name`] refuses.
pub(crate) const NAME_ADVICE: &str =
    "use a to z, 0 to 9 and -, at most 63, and begin with a letter or a digit";

/// Whether the text is a valid name of a store or a job.
pub(crate) fn is_name(text: &str) -> bool {
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=MAX_NAME_LENGTH).contains(&text.len())
        && text.as_bytes().first().is_some_and(plain)
        && text.bytes().all(|byte| plain(&byte) || byte == b'-')
}

/// Checks a path within a store: names joined by `/`, without `.` and `..`.
///
/// # Errors
/// What is wrong, with advice.
pub(crate) fn path_in_store(text: &str) -> Result<String, &'static str> {
    let text = text.strip_suffix('/').unwrap_or(text);
    if text.is_empty() {
        return Ok(String::new());
    }
    for name in text.split('/') {
        match name {
            "" => return Err("begins with / or contains //; write NAME/NAME"),
            "." | ".." => return Err("contains . or ..; write the path without them"),
            _ if name.contains(char::is_control) => {
                return Err("contains a control character; use another name");
            }
            _ => {}
        }
    }
    Ok(text.to_owned())
}

impl Checker<'_> {
    /// A value that a table must have. If part of the table was not understood, a missing
    /// value is no problem of its own: it may be there under a misspelled key.
    pub(crate) fn required<'a, T>(
        &mut self,
        header: &TableHeader,
        key: &str,
        given: Option<&'a T>,
        advice: &str,
    ) -> Option<&'a T> {
        if given.is_none() && header.is_complete {
            let what = format!("{} has no `{key}`", header.title);
            self.add(header.at.clone(), what, advice);
        }
        given
    }

    /// One word of a closed set. The first word is the default.
    pub(crate) fn choice<T: Copy, const N: usize>(
        &mut self,
        key: &str,
        given: Option<&Spanned<String>>,
        among: &[(&str, T); N],
    ) -> Option<T> {
        let Some(given) = given else {
            return among.first().map(|&(_, default)| default);
        };
        let found = among.iter().find(|(word, _)| word == given.get_ref());
        if found.is_none() {
            let words = among.each_ref().map(|(word, _)| *word);
            let what = format!("`{key}` cannot be {:?}", given.get_ref());
            self.add(given.span(), what, suggestion(given.get_ref(), &words));
        }
        found.map(|&(_, value)| value)
    }

    /// An absolute path without `..`.
    pub(crate) fn absolute_path(&mut self, key: &str, given: &Spanned<String>) -> Option<PathBuf> {
        let text = given.get_ref();
        let (what, advice) = if !text.starts_with('/') {
            ("is not absolute", "write a path that begins with /")
        } else if text.split('/').any(|name| name == "..") {
            ("contains ..", "write the path without it")
        } else if text.contains('\0') {
            ("contains a NUL", "no file has such a name")
        } else {
            // The components leave out double and trailing slashes.
            return Some(PathBuf::from(text).components().collect());
        };
        self.add(given.span(), format!("`{key}` {what}"), advice);
        None
    }

    /// A weight, [`MIN_WEIGHT`] to 1.
    pub(crate) fn weight(&mut self, given: Option<&Spanned<f64>>, default: f64) -> Option<f64> {
        let Some(given) = given else {
            return Some(default);
        };
        let weight = *given.get_ref();
        if (MIN_WEIGHT..=1.0).contains(&weight) {
            return Some(weight);
        }
        let advice = "write a number from 0.02 (yields to all) to 1 (never yields)";
        self.add(given.span(), format!("`min_weight` is {weight}"), advice);
        None
    }

    /// A rate in byte/s: `"2M"`, or a number. `Some(None)` if none is given.
    pub(crate) fn rate(&mut self, given: Option<&Spanned<Value>>) -> Option<Option<u64>> {
        const KEY: &str = "`limit_rate`";
        let Some(given) = given else {
            return Some(None);
        };
        match given.get_ref() {
            Value::String(text) => self.value(given.span(), KEY, parse_size(text)).map(Some),
            &Value::Integer(rate) if rate > 0 => Some(Some(rate.unsigned_abs())),
            _ => {
                let advice = "write bytes per second, such as \"500K\" or \"2M\"";
                self.add(given.span(), format!("{KEY} is not a rate"), advice);
                None
            }
        }
    }

    /// A duration of at least `min`.
    pub(crate) fn duration(
        &mut self,
        key: &str,
        given: &Spanned<String>,
        min: Duration,
    ) -> Option<Duration> {
        let parsed = parse_duration(given.get_ref());
        let duration = self.value(given.span(), &format!("`{key}`"), parsed)?;
        if duration >= min {
            return Some(duration);
        }
        let advice = format!("write {}s or more", min.as_secs());
        self.add(given.span(), format!("`{key}` is too short"), advice);
        None
    }

    /// An `http` or `https` URL without secrets. Problems never show it, because it may
    /// contain one.
    pub(crate) fn url(&mut self, key: &str, given: &Spanned<String>) -> Option<Url> {
        let parsed = Url::parse(given.get_ref()).ok();
        let of_web = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
        let (what, advice) = match parsed.filter(of_web) {
            None => (
                "is not an http or https URL",
                "write for example https://host.example/path/",
            ),
            Some(url) if !url.username().is_empty() || url.password().is_some() => (
                "contains a user name or a password",
                "take them out, and name a file with them in `credentials`",
            ),
            Some(url) if url.query().is_some() || url.fragment().is_some() => (
                "contains ? or #",
                "take it out; keys and tokens belong in `credentials`",
            ),
            Some(url) => return Some(url),
        };
        self.add(given.span(), format!("`{key}` {what}"), advice);
        None
    }
}
