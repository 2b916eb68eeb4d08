//! Reads the tables of the file, one key after another. A wrong value becomes a problem and
//! counts as missing, so that one pass finds all problems.

use std::fmt::Display;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use dalbe::weight::MIN_WEIGHT;
use fairbat::units::{parse_duration, parse_size};
use serde::Deserialize;
use toml::de::{DeTable, DeValue, ValueDeserializer};
use toml::{Spanned, Value};
use url::Url;

use super::problem::{Checker, suggestion};

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

/// A table of the file.
pub(crate) struct Table<'a, 't> {
    /// The name of the table in messages.
    pub(crate) title: String,
    /// The position of the table.
    pub(crate) at: Range<usize>,
    /// Whether every key was understood so far. If not, a value that seems to be missing
    /// may be there under a misspelled key.
    pub(crate) is_complete: bool,
    pub(crate) check: &'a mut Checker<'t>,
    values: DeTable<'t>,
}

impl<'a, 't> Table<'a, 't> {
    /// The table of this value. Reports all keys that are not among the `known`.
    pub(crate) fn new(
        value: Spanned<DeValue<'t>>,
        title: String,
        known: &[&str],
        check: &'a mut Checker<'t>,
    ) -> Self {
        let at = value.span();
        let mut is_complete = true;
        let values = match value.into_inner() {
            DeValue::Table(values) => values,
            _ => {
                let advice = "write lines KEY = VALUE below its heading";
                check.add(at.clone(), format!("{title} is not a table"), advice);
                is_complete = false;
                DeTable::new()
            }
        };
        let keys = values.iter().map(|(key, _)| key);
        for key in keys.filter(|key| !known.contains(&key.get_ref().as_ref())) {
            let (name, advice) = (key.get_ref(), suggestion(key.get_ref(), known));
            check.add(
                key.span(),
                format!("unknown key `{name}` in {title}"),
                advice,
            );
            is_complete = false;
        }
        Self {
            title,
            at,
            is_complete,
            check,
            values,
        }
    }

    /// The position of a value, or else of the table.
    pub(crate) fn position(&self, key: &str) -> Range<usize> {
        self.values.get(key).map_or(self.at.clone(), Spanned::span)
    }

    /// Whether the table has a value.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    /// Reports a problem at a value.
    pub(crate) fn report(&mut self, key: &str, what: impl Display, advice: impl Display) {
        self.check.add(self.position(key), what, advice);
    }

    /// Reports what is wrong with a value. The message begins with its key.
    pub(crate) fn wrong(&mut self, key: &str, what: &str, advice: &str) {
        self.report(key, format!("`{key}` {what}"), advice);
    }

    /// A value. Reports a value of a wrong type.
    pub(crate) fn get<T: Deserialize<'t>>(&mut self, key: &str) -> Option<T> {
        let value = self.values.get(key)?.clone();
        let at = value.span();
        match T::deserialize(ValueDeserializer::from(value)) {
            Ok(value) => Some(value),
            Err(error) => {
                let what = format!("`{key}`: {}", error.message());
                self.check.add_error(error.span().unwrap_or(at), what);
                self.is_complete = false;
                None
            }
        }
    }

    /// A text that the table must have.
    pub(crate) fn required(&mut self, key: &str, advice: &str) -> Option<String> {
        let given = self.get(key);
        if given.is_none() && self.is_complete {
            let what = format!("{} has no `{key}`", self.title);
            self.check.add(self.at.clone(), what, advice);
        }
        given
    }

    /// One word of a closed set. The first word is the default.
    pub(crate) fn choice<T: Copy, const N: usize>(
        &mut self,
        key: &str,
        among: &[(&str, T); N],
    ) -> Option<T> {
        if !self.has(key) {
            return among.first().map(|&(_, default)| default);
        }
        let given: String = self.get(key)?;
        let found = among.iter().find(|(word, _)| *word == given);
        if found.is_none() {
            let words = among.each_ref().map(|(word, _)| *word);
            let what = format!("cannot be {given:?}");
            self.wrong(key, &what, &suggestion(&given, &words));
        }
        found.map(|&(_, value)| value)
    }

    /// An absolute path without `..`.
    pub(crate) fn path(&mut self, key: &str) -> Option<PathBuf> {
        let text: String = self.get(key)?;
        self.absolute_path(key, &text)
    }

    /// Checks that a value is an absolute path without `..`.
    pub(crate) fn absolute_path(&mut self, key: &str, text: &str) -> Option<PathBuf> {
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
        self.wrong(key, what, advice);
        None
    }

    /// The lowest weight of a connection, [`MIN_WEIGHT`] to 1.
    pub(crate) fn min_weight(&mut self) -> Option<f64> {
        let weight = self.get("min_weight")?;
        if !(MIN_WEIGHT..=1.0).contains(&weight) {
            let advice = "write a number from 0.02 (yields to all) to 1 (never yields)";
            self.wrong("min_weight", &format!("is {weight}"), advice);
        }
        Some(weight)
    }

    /// A limit on the rate in byte/s: `"2M"`, or a number.
    pub(crate) fn limit_rate(&mut self) -> Option<u64> {
        let advice = "write bytes per second, such as \"500K\" or \"2M\"";
        self.bytes("limit_rate", "is not a rate", advice)
    }

    /// Bytes that a check reads for a day: `"2G"`, or a number.
    pub(crate) fn check_bytes(&mut self) -> Option<u64> {
        let advice = "write bytes, such as \"500M\" or \"10G\"";
        self.bytes("check_bytes_per_day", "is not a number of bytes", advice)
    }

    /// A number of bytes: `"2G"`, or a number.
    pub(crate) fn bytes(&mut self, key: &str, what: &str, advice: &str) -> Option<u64> {
        match self.get(key)? {
            Value::String(text) => self.parsed(key, parse_size(&text)),
            Value::Integer(bytes) if bytes > 0 => Some(bytes.unsigned_abs()),
            _ => {
                self.wrong(key, what, advice);
                None
            }
        }
    }

    /// A duration of at least `min`.
    pub(crate) fn duration(&mut self, key: &str, min: Duration) -> Option<Duration> {
        let text: String = self.get(key)?;
        let duration = self.parsed(key, parse_duration(&text))?;
        if duration < min {
            let advice = format!("write {}s or more", min.as_secs());
            self.wrong(key, "is too short", &advice);
        }
        Some(duration)
    }

    /// Reports the later of two keys if both are there.
    pub(crate) fn exclude_each_other(&mut self, one: &str, other: &str) -> bool {
        let both = self.has(one) && self.has(other);
        if both {
            let what = format!("`{one}` and `{other}` exclude each other");
            self.report(other, what, "keep one of them");
        }
        both
    }

    /// One text, or a list of some.
    pub(crate) fn texts(&mut self, key: &str) -> Option<Vec<String>> {
        match self.get(key)? {
            Value::String(text) => Some(vec![text]),
            Value::Array(list) if !list.is_empty() => list
                .into_iter()
                .map(|it| it.as_str().map(str::to_owned))
                .collect(),
            _ => None,
        }
    }

    /// Reads an `http` or `https` URL, and refuses one with a secret. Problems never show
    /// the URL.
    pub(crate) fn url(&mut self, key: &str, text: &str) -> Option<Url> {
        let parsed = Url::parse(text).ok();
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
        self.wrong(key, what, advice);
        None
    }

    /// Unwraps what was parsed from a value, or reports the error, which has its own
    /// advice.
    pub(crate) fn parsed<T, E: Display>(&mut self, key: &str, result: Result<T, E>) -> Option<T> {
        let at = self.position(key);
        let report = |error| self.check.add_error(at, format!("`{key}`: {error}"));
        result.map_err(report).ok()
    }
}
