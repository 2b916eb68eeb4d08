//! The hosts that a request may name.
//!
//! Another site can let its own name resolve to this machine (DNS rebinding). Its
//! page, open in a browser that reaches this machine, could then read a server
//! here under that name. So a server answers only under IP addresses and
//! `localhost`, which no browser looks up by DNS, and under the names that it is
//! told to trust.
//!
//! The machine's own names ([`own_names`]) are weaker. A DHCP server may have chosen
//! them, and anybody on the local network may answer for them (mDNS, LLMNR). A
//! server that only this machine reaches should not trust them.

use std::ffi::CStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use http::header::HOST;
use http::request::Parts;
use http::uri::Authority;
use http::{StatusCode, Version};
use rustix::system::uname;

/// The domain of the names that machines give themselves on a local network
/// (RFC 6762).
const LOCAL_DOMAIN: &str = "local";

/// Characters of a refused host that are shown.
const MAX_SHOWN: usize = 80;

/// Which hosts requests may name. IP addresses and `localhost` are always among
/// them; the default has no others.
#[derive(Debug, Clone, Default)]
pub struct HostRule {
    /// Whether requests of HTTP/1.0 may name no host. No browser sends such a request.
    pub without_host: bool,
    /// More names.
    pub allowed: Vec<HostPattern>,
}

/// Why the host of a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostRefusal {
    /// The request has no host, several, or one that cannot be parsed.
    Malformed,
    /// The host is a name that could lead to any address. Holds its beginning,
    /// printable, in double quotes.
    Foreign(String),
}

impl HostRefusal {
    /// The status of the answer.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Malformed => StatusCode::BAD_REQUEST,
            Self::Foreign(_) => StatusCode::MISDIRECTED_REQUEST,
        }
    }
}

impl HostRule {
    /// Checks the host in the `Host` field, and in the target if that is an absolute
    /// URL.
    ///
    /// # Errors
    /// The host is refused.
    pub fn check(&self, request: &Parts) -> Result<(), HostRefusal> {
        let mut hosts = request.headers.get_all(HOST).iter();
        let field = match (hosts.next(), hosts.next()) {
            (Some(host), None) => {
                let host = Authority::try_from(host.as_bytes());
                Some(host.map_err(|_| HostRefusal::Malformed)?)
            }
            (None, _) if self.without_host && request.version < Version::HTTP_11 => None,
            _ => return Err(HostRefusal::Malformed),
        };
        let mut named = [field.as_ref(), request.uri.authority()]
            .into_iter()
            .flatten();
        match named.find(|host| !self.allows(host)) {
            None => Ok(()),
            Some(host) => {
                let shown: String = host.as_str().chars().take(MAX_SHOWN).collect();
                Err(HostRefusal::Foreign(format!("{shown:?}")))
            }
        }
    }

    /// Whether the host can only be this machine. The port may differ, as in a tunnel.
    fn allows(&self, authority: &Authority) -> bool {
        let host = authority.host();
        if authority.as_str().contains('@') {
            return false;
        }
        let address = match host.strip_prefix('[') {
            Some(rest) => rest
                .strip_suffix(']')
                .and_then(|text| text.parse::<Ipv6Addr>().ok())
                .map(IpAddr::V6),
            None => host.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
        };
        address.is_some()
            || host.eq_ignore_ascii_case("localhost")
            || self.allowed.iter().any(|pattern| pattern.matches(host))
    }
}

/// A host of a URL as certificates and the resolver have it: an IPv6 address has no brackets there.
pub(crate) fn without_brackets(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

/// The names that the kernel has for this machine now: the host name, alone, with the
/// domain name, and with `.local`.
#[must_use]
pub fn own_names() -> Vec<HostPattern> {
    let known = uname();
    let text = |name: &CStr| name.to_str().unwrap_or_default().to_owned();
    names_of(&text(known.nodename()), &text(known.domainname()))
}

/// The names of a machine with this host name, which may be qualified, and this domain.
/// What is no name is left out: a host name that is empty, or the domain `(none)`, which
/// Linux reports if none is set.
fn names_of(node: &str, domain: &str) -> Vec<HostPattern> {
    let label = node.split('.').next().unwrap_or_default();
    let qualified = |domain: &str| format!("{label}.{domain}");
    [
        node.to_owned(),
        label.to_owned(),
        qualified(domain),
        qualified(LOCAL_DOMAIN),
    ]
    .iter()
    .filter_map(|name| name.parse().ok())
    .filter(|name: &HostPattern| !name.is_suffix)
    .collect()
}

/// A host name, as `backup.example.org`, or all names below one, as
/// `*.example.org`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern {
    /// In lower case.
    name: String,
    is_suffix: bool,
}

impl HostPattern {
    /// Whether it has this name, which may end in the dot of an absolute name (RFC
    /// 1034, section 3.1).
    pub(crate) fn matches(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        match host.strip_suffix(&self.name) {
            Some(rest) if self.is_suffix => rest.len() > 1 && rest.ends_with('.'),
            Some(rest) => rest.is_empty(),
            None => false,
        }
    }
}

impl FromStr for HostPattern {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, is_suffix) = match text.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (text, false),
        };
        let is_label = |label: &str| {
            let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            !label.is_empty() && label.bytes().all(is_allowed)
        };
        if !name.split('.').all(is_label) {
            return Err(
                "write a host name without a scheme and a port, as backup.example.org, or \
                 *.example.org for all names below example.org",
            );
        }
        Ok(Self {
            name: name.to_ascii_lowercase(),
            is_suffix,
        })
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn checked(rule: &HostRule, target: &str, hosts: &[&str]) -> Result<(), HostRefusal> {
        let mut request = Request::get(target);
        for host in hosts {
            request = request.header(HOST, *host);
        }
        rule.check(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn addresses_and_localhost_are_ours() {
        let rule = HostRule::default();
        for host in [
            "localhost",
            "LocalHost:9797",
            "127.0.0.1:9797",
            "192.0.2.7",
            "[::1]:80",
            "[2001:db8::1]",
        ] {
            assert_eq!(checked(&rule, "/", &[host]), Ok(()), "{host}");
        }
        assert_eq!(checked(&rule, "http://127.0.0.1/", &["127.0.0.1"]), Ok(()));
    }

    #[test]
    fn names_are_not() {
        let allowed = ["nas.example.org", "*.example.net"];
        let allowed = allowed.map(|name| name.parse().unwrap()).to_vec();
        let wide = HostRule {
            without_host: true,
            allowed,
        };
        for rule in [HostRule::default(), wide] {
            for host in [
                "evil.example",
                "evil.example:9797",
                "localhost.evil.example",
                "localhost.",
                "127.0.0.1.evil.example",
                "127.1",
                "2130706433",
                "0x7f.0.0.1",
                "user@127.0.0.1",
                "127.0.0.1@evil.example",
                "xnas.example.org",
                "a.nas.example.org",
                "nas.example.org.evil.example",
                "example.net",
                ".example.net",
                "evilexample.net",
                "",
            ] {
                let refused = checked(&rule, "http://127.0.0.1/", &[host]);
                assert!(refused.is_err(), "{host}");
            }
            let hidden = checked(&rule, "http://evil.example/", &["127.0.0.1"]);
            let foreign = HostRefusal::Foreign("\"evil.example\"".to_owned());
            assert_eq!(hidden, Err(foreign));
        }
    }

    #[test]
    fn allowed_names_are_accepted_and_others_are_misdirected() {
        let allowed = ["NAS.example.org", "*.example.net"];
        let rule = HostRule {
            allowed: allowed.map(|name| name.parse().unwrap()).to_vec(),
            ..HostRule::default()
        };
        for host in [
            "nas.example.org:8080",
            "nas.Example.org",
            "a.example.net",
            "a.b.example.net:1",
            "nas.example.org.:80",
            "a.example.net.",
        ] {
            assert_eq!(checked(&rule, "/", &[host]), Ok(()), "{host}");
        }
        for host in ["example.net", "example.net.", "nas.example.org..", "."] {
            let refused = checked(&rule, "/", &[host]).unwrap_err();
            assert_eq!(refused.status(), StatusCode::MISDIRECTED_REQUEST, "{host}");
        }
        let long = "a".repeat(200);
        let refused = checked(&rule, "/", &[&long]);
        let shown = format!("{:?}", &long[..MAX_SHOWN]);
        assert_eq!(refused, Err(HostRefusal::Foreign(shown)));
        for text in [
            "", "*", "*.", "a..b", ".a", "a.", "http://a", "a:80", "*.*.a",
        ] {
            assert!(text.parse::<HostPattern>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_machine_has_the_names_that_the_kernel_knows() {
        for (node, domain, names) in [
            ("nas", "(none)", &["nas", "NAS", "nas.local", "nas."][..]),
            ("nas", "example.org", &["nas.example.org", "nas"]),
            (
                "nas.example.org",
                "",
                &["nas.example.org", "nas", "nas.local"],
            ),
        ] {
            let known = names_of(node, domain);
            let is_known = |name| known.iter().any(|pattern| pattern.matches(name));
            for name in names {
                assert!(is_known(name), "{node} {domain} {name}");
            }
            for name in [
                "",
                ".",
                "nas..",
                "example.org",
                "nas.(none)",
                "nas.example.com",
            ] {
                assert!(!is_known(name), "{node} {domain} {name}");
            }
        }
        for node in ["", "*", "*.org", "a b"] {
            assert_eq!(names_of(node, "(none)"), [], "{node}");
        }
    }

    #[test]
    fn one_name_there_must_be() {
        for hosts in [
            &[][..],
            &["localhost", "localhost"],
            &[""],
            &["[::1"],
            &["a b"],
        ] {
            let refused = checked(&HostRule::default(), "/", hosts);
            assert_eq!(refused, Err(HostRefusal::Malformed), "{hosts:?}");
        }
        let old = Request::get("/").version(Version::HTTP_10).body(());
        let (old, ()) = old.unwrap().into_parts();
        let mut rule = HostRule::default();
        assert_eq!(rule.check(&old), Err(HostRefusal::Malformed));
        rule.without_host = true;
        assert_eq!(rule.check(&old), Ok(()));
    }
}
