//! Values that mean the same wherever they stand. What is wrong is added to the
//! complaints, and then there is no value.

use std::path::PathBuf;
use std::time::Duration;

use dalbe::weight::MIN_WEIGHT;
use fairbat::units::parse_duration;
use fairbat::units::parse_size;
use toml::{Spanned, Value};
use url::Url;

use crate::config::keys;
use crate::config::problem::Complaints;

/// Names are host-name labels, which fit file names, metrics and variables.
pub(super) fn is_name(text: &str) -> bool {
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=63).contains(&text.len())
        && text.as_bytes().first().is_some_and(plain)
        && text.bytes().all(|byte| plain(&byte) || byte == b'-')
}

/// What to do about what [`is_name`] refuses.
pub(super) const NAME_HINT: &str =
    "take a to z, 0 to 9 and -, at most 63, the first of them a letter or a digit";

/// One of a closed set of words; the first is the default.
pub(super) fn choice<T: Copy, const N: usize>(
    key: &str,
    given: Option<&Spanned<String>>,
    among: &[(&str, T); N],
    complaints: &mut Complaints<'_>,
) -> Option<T> {
    let Some(given) = given else {
        return among.first().map(|&(_, default)| default);
    };
    let found = among.iter().find(|(word, _)| word == given.get_ref());
    if found.is_none() {
        let words = among.each_ref().map(|(word, _)| *word);
        let what = format!("`{key}` cannot be {:?}", given.get_ref());
        complaints.add(given.span(), what, keys::hint(given.get_ref(), &words));
    }
    found.map(|&(_, value)| value)
}

/// A path from the root, without `..`.
pub(super) fn absolute(
    key: &str,
    given: &Spanned<String>,
    complaints: &mut Complaints<'_>,
) -> Option<PathBuf> {
    let text = given.get_ref();
    let (what, hint) = if !text.starts_with('/') {
        ("is not absolute", "write a path that begins with /")
    } else if text.split('/').any(|name| name == "..") {
        ("has .. in it", "write the path that it comes to")
    } else if text.contains('\0') {
        ("has a NUL in it", "no file has such a name")
    } else {
        // Without the doubled and trailing slashes.
        return Some(PathBuf::from(text).components().collect());
    };
    complaints.add(given.span(), format!("`{key}` {what}"), hint);
    None
}

/// Names joined by `/`, none of which leads anywhere but down; `None` with what
/// is wrong.
pub(super) fn names(text: &str) -> Result<String, &'static str> {
    let text = text.strip_suffix('/').unwrap_or(text);
    if text.is_empty() {
        return Ok(String::new());
    }
    for name in text.split('/') {
        match name {
            "" => return Err("begins with / or has // in it; write NAME/NAME"),
            "." | ".." => return Err("has . or .. in it; write the path that it comes to"),
            _ if name.contains(char::is_control) => {
                return Err("has a control character in it; take another name");
            }
            _ => {}
        }
    }
    Ok(text.to_owned())
}

/// A weight, 0.02 to 1.
pub(super) fn weight(
    given: Option<&Spanned<f64>>,
    default: f64,
    complaints: &mut Complaints<'_>,
) -> Option<f64> {
    let Some(given) = given else {
        return Some(default);
    };
    let weight = *given.get_ref();
    if (MIN_WEIGHT..=1.0).contains(&weight) {
        return Some(weight);
    }
    let hint = "write 0.02 (yield to anybody) to 1 (never yield)";
    complaints.add(given.span(), format!("`min_weight` is {weight}"), hint);
    None
}

/// A rate in byte/s: `"2M"`, or a number. `Some(None)` without any.
pub(super) fn rate(
    given: Option<&Spanned<Value>>,
    complaints: &mut Complaints<'_>,
) -> Option<Option<u64>> {
    const KEY: &str = "`limit_rate`";
    let Some(given) = given else {
        return Some(None);
    };
    match given.get_ref() {
        Value::String(text) => complaints
            .take(given.span(), KEY, parse_size(text))
            .map(Some),
        &Value::Integer(rate) if rate > 0 => Some(Some(rate.unsigned_abs())),
        _ => {
            let hint = "write bytes per second, as in \"500K\" or \"2M\"";
            complaints.add(given.span(), format!("{KEY} is no rate"), hint);
            None
        }
    }
}

/// A duration of at least this.
pub(super) fn duration(
    key: &str,
    given: &Spanned<String>,
    least: Duration,
    complaints: &mut Complaints<'_>,
) -> Option<Duration> {
    let parsed = parse_duration(given.get_ref());
    let duration = complaints.take(given.span(), &format!("`{key}`"), parsed)?;
    if duration >= least {
        return Some(duration);
    }
    let hint = format!("write {}s or more", least.as_secs());
    complaints.add(given.span(), format!("`{key}` is too short"), hint);
    None
}

/// An `http` or `https` URL without secrets. It is never shown: there may be one
/// in it.
pub(super) fn url(
    key: &str,
    given: &Spanned<String>,
    complaints: &mut Complaints<'_>,
) -> Option<Url> {
    let parsed = Url::parse(given.get_ref()).ok();
    let of_web = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    let (what, hint) = match parsed.filter(of_web) {
        None => ("is no URL", "write for example https://host.example/path/"),
        Some(url) if !url.username().is_empty() || url.password().is_some() => (
            "has a user name or a password in it",
            "take them out, and name a file that has them by `credentials`",
        ),
        Some(url) if url.query().is_some() || url.fragment().is_some() => (
            "has ? or # in it",
            "write it without; keys and tokens belong in `credentials`",
        ),
        Some(url) => return Some(url),
    };
    complaints.add(given.span(), format!("`{key}` {what}"), hint);
    None
}
