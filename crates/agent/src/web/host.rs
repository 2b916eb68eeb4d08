//! The host names that a request may use.
//!
//! Another site can let its own name resolve to this machine (DNS rebinding). Its
//! script could then read this server under that name. So only IP addresses and
//! `localhost` are accepted: a browser resolves neither by DNS.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::StatusCode;
use http::header::HOST;
use http::request::Parts;
use http::uri::Authority;

/// Why the host of a request is refused: the status and the text of the answer.
type HostRefusal = (StatusCode, &'static str);

/// The request has no host, several, or one that cannot be parsed.
const MALFORMED: HostRefusal = (StatusCode::BAD_REQUEST, "One Host is needed.\n");

/// The host is a name that could resolve to any address.
const FOREIGN: HostRefusal = (
    StatusCode::MISDIRECTED_REQUEST,
    "Host names other than localhost are refused, because a page of another site could read \
     this. Use the address, or localhost.\n",
);

/// Checks the host in the `Host` field, and in the target if that is an absolute URL.
///
/// # Errors
/// The answer that refuses the request.
pub(crate) fn check(request: &Parts) -> Result<(), HostRefusal> {
    let mut hosts = request.headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return Err(MALFORMED);
    };
    let host = Authority::try_from(host.as_bytes()).map_err(|_| MALFORMED)?;
    let named = [Some(&host), request.uri.authority()];
    match named.into_iter().flatten().all(is_ours) {
        true => Ok(()),
        false => Err(FOREIGN),
    }
}

/// Whether the host can only be this machine. The port may differ, as in a tunnel.
fn is_ours(authority: &Authority) -> bool {
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
    address.is_some() || host.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn checked(target: &str, hosts: &[&str]) -> Result<(), HostRefusal> {
        let mut request = Request::get(target);
        for host in hosts {
            request = request.header(HOST, *host);
        }
        check(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn addresses_and_localhost_are_ours() {
        for host in [
            "localhost",
            "LocalHost:9797",
            "127.0.0.1:9797",
            "192.0.2.7",
            "[::1]:80",
            "[2001:db8::1]",
        ] {
            assert_eq!(checked("/", &[host]), Ok(()), "{host}");
        }
        assert_eq!(checked("http://127.0.0.1/", &["127.0.0.1"]), Ok(()));
    }

    #[test]
    fn names_are_not() {
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
        ] {
            assert_eq!(checked("/", &[host]), Err(FOREIGN), "{host}");
        }
        let hidden = checked("http://evil.example/", &["127.0.0.1"]);
        assert_eq!(hidden, Err(FOREIGN));
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
            assert_eq!(checked("/", hosts), Err(MALFORMED), "{hosts:?}");
        }
    }
}
