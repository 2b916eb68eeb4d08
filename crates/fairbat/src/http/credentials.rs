//! Credentials in URLs, the hosts that may see credentials, and advice when a server
//! refuses them.

use std::path::PathBuf;

use percent_encoding::percent_decode_str;
use url::Url;

use crate::settings::Credentials;

/// Whether a link leads from https to plain http, where everybody on the way can read along, and
/// change what comes.
pub(crate) fn is_downgrade(from: &Url, to: &Url) -> bool {
    from.scheme() == "https" && to.scheme() == "http"
}

/// The URL without user name, password and fragment.
#[must_use]
pub fn without_credentials(url: &Url) -> Url {
    let mut url = url.clone();
    // Both fail only for URLs without a host, and http URLs have one.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_fragment(None);
    url
}

/// The user name and password in a URL, percent-decoded; `None` without either.
pub(crate) fn credentials_in(url: &Url) -> Option<Credentials> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    Some(Credentials {
        user: decode(url.username()),
        password: decode(url.password().unwrap_or_default()),
    })
}

/// Whether `url` may see the credentials for `named`: it has the same scheme,
/// host and port, or the same host moved from http to https on the standard
/// ports.
pub(crate) fn is_same_host(named: &Url, url: &Url) -> bool {
    let is_upgrade = named.scheme() == "http"
        && url.scheme() == "https"
        && named.port().is_none()
        && url.port().is_none()
        && named.host() == url.host();
    is_upgrade || named.origin() == url.origin()
}

/// Advice on how to show a token.
const TOKEN_HINT: &str = "this server wants a token: -H 'Authorization: Bearer TOKEN', or, because \
     other users can see command lines, the same header in the variable FAIRBAT_HEADER";

/// Where the credentials of a request come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum CredentialSource {
    /// There are none.
    #[default]
    Nothing,
    /// A header `Authorization` of the user's.
    Header,
    /// [`HttpSettings::user`](crate::settings::HttpSettings::user).
    User,
    /// The URL.
    Url,
    /// This netrc file.
    Netrc(PathBuf),
    /// There are none, because the netrc file has none for the host; `why` says it.
    NotInNetrc { path: PathBuf, why: String },
    /// There are none, because they are for `named` only, which redirected to `server`.
    Redirected { named: String, server: String },
}

/// What a server that refuses a request knows of its user.
#[derive(Debug, Clone, Default)]
pub(crate) struct Identification {
    pub(crate) source: CredentialSource,
    /// Whether the user has flags for credentials.
    pub(crate) has_flags: bool,
}

impl Identification {
    /// The server, as the subject of a sentence.
    pub(crate) fn server(&self) -> &str {
        match &self.source {
            CredentialSource::Redirected { server, .. } => server,
            _ => "the server",
        }
    }

    /// Advice after 401 (RFC 9110, section 15.5.2). `wants_token` says whether the server
    /// takes a bearer token in place of user name and password.
    pub(crate) fn advice_at_401(&self, wants_token: bool) -> String {
        let way = match (wants_token, self.has_flags) {
            (true, true) => TOKEN_HINT,
            (true, false) => {
                "this server wants a token: fetch with `fairbat get`, which can send one"
            }
            (false, true) => "give a user name and password with -u, or -n for netrc",
            (false, false) => "put a user name and password into the URL: //USER:PASSWORD@HOST/",
        };
        match (self.reason_for_none(), self.sent()) {
            (Some(reason), _) => reason,
            (None, None) => way.to_owned(),
            (None, Some(sent)) if wants_token && self.source != CredentialSource::Header => {
                format!("the server refused {sent}; {way}")
            }
            (None, Some(sent)) => format!("the server refused {sent}: check what is there"),
        }
    }

    /// Advice after 403; `unknown` is that without credentials.
    pub(crate) fn advice_at_403(&self, unknown: &str) -> String {
        let flags = match self.has_flags {
            true => "credentials go with -u, -n or -H",
            false => "a user name and password go into the URL: //USER:PASSWORD@HOST/",
        };
        match (self.reason_for_none(), self.sent()) {
            (Some(reason), _) => reason,
            (None, None) => format!("{unknown}; {flags}"),
            (None, Some(sent)) => format!("{unknown}, and {sent} did not give it"),
        }
    }

    /// What was sent, and where the user gave it.
    fn sent(&self) -> Option<String> {
        const LOGIN: &str = "the user name and password";
        match &self.source {
            CredentialSource::Header => {
                Some("the header Authorization of -H or FAIRBAT_HEADER".to_owned())
            }
            CredentialSource::User => Some(format!("{LOGIN} of -u or FAIRBAT_USER")),
            CredentialSource::Url => Some(format!("{LOGIN} in the URL")),
            CredentialSource::Netrc(path) => Some(format!("{LOGIN} in {}", path.display())),
            CredentialSource::Nothing
            | CredentialSource::NotInNetrc { .. }
            | CredentialSource::Redirected { .. } => None,
        }
    }

    /// Why nothing was sent although the user may have given something.
    fn reason_for_none(&self) -> Option<String> {
        match &self.source {
            CredentialSource::NotInNetrc { path, why } => Some(format!(
                "{} {why}: correct that, or give a user name and password with -u",
                path.display()
            )),
            CredentialSource::Redirected { named, server } => Some(format!(
                "{named} redirected to {server}, and credentials are sent to {named} only; if \
                 {server} may have them, give its URL"
            )),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn credentials_stay_with_the_named_host() {
        let named = url("http://example.org/a");
        for same in [
            "http://example.org/b",
            "https://example.org/b",
            "http://example.org:80/",
        ] {
            assert!(is_same_host(&named, &url(same)), "{same}");
        }
        for other in [
            "http://example.org:8080/a",
            "https://example.org:8443/a",
            "http://www.example.org/a",
            "http://example.com/a",
        ] {
            assert!(!is_same_host(&named, &url(other)), "{other}");
        }
        // The way back down is never the same host, whatever the redirect
        // rules say.
        assert!(!is_same_host(
            &url("https://example.org/"),
            &url("http://example.org/")
        ));
    }
}
