//! `Alt-Svc` (RFC 7838): where else a server answers, and how.

use std::time::Duration;

use http::HeaderMap;
use http::header::ALT_SVC;

/// How long an alternative holds if its server does not say (RFC 7838, section 3.1).
const DEFAULT_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// No alternative holds for longer.
const MAX_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The protocol's name (RFC 9114, section 3.1).
const HTTP3: &str = "h3";

/// Where a server answers in HTTP/3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Alternative {
    /// The host; `None` if it is that of the origin.
    pub(crate) host: Option<String>,
    pub(crate) port: u16,
    /// For how long this holds.
    pub(crate) age: Duration,
}

/// What a response says of HTTP/3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Offer {
    /// It is spoken there.
    At(Alternative),
    /// What was said before does not hold any more.
    Withdrawn,
}

impl Offer {
    /// What these fields of a response offer; `None` if they do not speak of alternatives, or only
    /// of what cannot be read. The first alternative is the one that the server prefers.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut fields = headers
            .get_all(ALT_SVC)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .peekable();
        fields.peek()?;
        let mut alternatives = fields.flat_map(|field| split(field, ','));
        let found = alternatives.find_map(|entry| {
            let entry = entry.trim();
            // Case matters (RFC 7838, section 3).
            (entry == "clear")
                .then_some(Self::Withdrawn)
                .or_else(|| alternative(entry).map(Self::At))
        });
        found.or(Some(Self::Withdrawn))
    }
}

/// The parts of a text between marks that are not within quotes.
fn split(text: &str, mark: char) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(move |char| {
        if std::mem::take(&mut is_escaped) {
            return false;
        }
        match char {
            '\\' => is_escaped = is_quoted,
            '"' => is_quoted = !is_quoted,
            _ => {}
        }
        char == mark && !is_quoted
    })
}

/// `h3="HOST:PORT"; ma=SECONDS`.
fn alternative(entry: &str) -> Option<Alternative> {
    let mut parts = split(entry, ';').map(str::trim);
    let (protocol, authority) = parts.next()?.split_once('=')?;
    if protocol.trim() != HTTP3 {
        return None;
    }
    let authority = authority.trim().strip_prefix('"')?.strip_suffix('"')?;
    let (host, port) = authority.rsplit_once(':')?;
    let is_host = |char: char| char.is_ascii_alphanumeric() || "-._:[]".contains(char);
    if !host.chars().all(is_host) {
        return None;
    }
    let port = Some(port).filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()))?;
    let ages = parts.filter_map(|part| part.split_once('='));
    let mut ages = ages.filter(|(name, _)| name.trim().eq_ignore_ascii_case("ma"));
    let age = match ages.next() {
        Some((_, seconds)) => Duration::from_secs(seconds.trim().trim_matches('"').parse().ok()?),
        None => DEFAULT_AGE,
    };
    Some(Alternative {
        host: (!host.is_empty()).then(|| host.to_owned()),
        port: port.parse().ok().filter(|&port| port > 0)?,
        age: age.min(MAX_AGE),
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn offer(values: &[&str]) -> Option<Offer> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(ALT_SVC, HeaderValue::from_str(value).unwrap());
        }
        Offer::of(&headers)
    }

    fn at(host: Option<&str>, port: u16, age: u64) -> Option<Offer> {
        Some(Offer::At(Alternative {
            host: host.map(str::to_owned),
            port,
            age: Duration::from_secs(age),
        }))
    }

    #[test]
    fn the_first_offer_of_http3_counts() {
        let day = 86_400;
        assert_eq!(offer(&[r#"h3=":443""#]), at(None, 443, day));
        assert_eq!(
            offer(&[r#"h3=":443"; ma=2592000"#]),
            at(None, 443, 30 * day)
        );
        assert_eq!(
            offer(&[r#"h2="alt.example.com:8000", h3="alt.example.com:8443"; persist=1; ma=60"#]),
            at(Some("alt.example.com"), 8443, 60)
        );
        assert_eq!(
            offer(&[r#"h3-29=":1"; ma=5"#, r#"h3=":2"; ma="7", h3=":3""#]),
            at(None, 2, 7)
        );
        assert_eq!(offer(&[r#"h3="[::1]:9""#]), at(Some("[::1]"), 9, day));
        assert_eq!(
            offer(&[r#"w="a\",h3=:5;", h3=":6"; ma=99999999999"#]),
            at(None, 6, 30 * day)
        );
    }

    #[test]
    fn what_was_offered_ends() {
        assert_eq!(offer(&[]), None);
        for other in [
            "clear",
            "h2=\":443\"",
            "h3=443",
            "h3=\":0\"",
            "h3=\":443\"; ma=x",
            "",
        ] {
            assert_eq!(offer(&[other]), Some(Offer::Withdrawn), "{other}");
        }
    }

    proptest! {
        #[test]
        fn any_text_can_be_read(text in "[h32=\":;, a-z0-9\\\\\\[\\]]{0,40}") {
            let _ = offer(&[&text]);
        }
    }
}
