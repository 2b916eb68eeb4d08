//! Who may use the proxy, and for which destinations. Pure.

use std::net::IpAddr;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::HeaderName;

use crate::serve::Token;

/// The addresses that begin with the same bits (CIDR, RFC 4632).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    /// How many.
    bits: u8,
}

/// What is no [`Network`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("write a network such as 192.168.0.0/16 or fd00::/8, or one address")]
pub struct NetworkError;

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| NetworkError)?;
        let all = width(address);
        let bits = bits.map_or(Ok(all), |bits| bits.parse().map_err(|_| NetworkError))?;
        (bits <= all)
            .then_some(Self { address, bits })
            .ok_or(NetworkError)
    }
}

/// How many bits an address of this kind has.
fn width(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

impl Network {
    pub(super) fn contains(self, address: IpAddr) -> bool {
        let prefix = |address: IpAddr| match address {
            IpAddr::V4(v4) => u128::from(v4.to_bits()).checked_shr(u32::from(32 - self.bits)),
            IpAddr::V6(v6) => v6.to_bits().checked_shr(u32::from(128 - self.bits)),
        };
        width(self.address) == width(address) && prefix(self.address) == prefix(address)
    }
}

/// Who may use the proxy.
#[derive(Debug)]
pub(crate) struct Access {
    pub(crate) token: Option<Token>,
    pub(crate) allowed: Vec<Network>,
}

/// Why a client may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Its address is not allowed.
    Network,
    /// It has not shown the token.
    Token,
}

impl Access {
    /// Whether a client of this address may use the proxy if it shows the token.
    pub(crate) fn knows(&self, client: IpAddr) -> bool {
        let client = client.to_canonical();
        // With a token, the address alone decides only if networks are named.
        client.is_loopback()
            || self.allowed.iter().any(|network| network.contains(client))
            || (self.token.is_some() && self.allowed.is_empty())
    }

    /// Whether a token has to be shown.
    pub(crate) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Whether this is the token, or none is needed.
    pub(crate) fn accepts(&self, shown: Option<&[u8]>) -> bool {
        match (&self.token, shown) {
            (None, _) => true,
            (Some(token), Some(shown)) => token.is(shown),
            (Some(_), None) => false,
        }
    }

    /// Whether a request of HTTP may use the proxy. The token is in this field.
    pub(crate) fn check(
        &self,
        client: IpAddr,
        headers: &HeaderMap,
        field: &HeaderName,
    ) -> Result<(), Refused> {
        if !self.knows(client) {
            return Err(Refused::Network);
        }
        let shown = headers.get(field);
        let shown = shown.and_then(|value| shown_token(value.as_bytes()));
        match self.accepts(shown.as_deref()) {
            true => Ok(()),
            false => Err(Refused::Token),
        }
    }
}

/// The token of a header: the password of Basic (RFC 7617), whatever the user is called, or a
/// bearer token (RFC 6750).
fn shown_token(header: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(header).ok()?;
    let (scheme, rest) = text.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(rest.trim().as_bytes().to_vec());
    }
    let is_basic = scheme.eq_ignore_ascii_case("basic");
    let pair = is_basic.then(|| STANDARD.decode(rest.trim()).ok())??;
    let colon = pair.iter().position(|&byte| byte == b':')?;
    Some(pair[colon + 1..].to_vec())
}

/// Whether a client beyond this machine may not be connected there: services of this machine and
/// of its link trust whoever reaches them (as the metadata of clouds, 169.254.169.254).
pub(crate) fn is_private_to_machine(destination: IpAddr) -> bool {
    match destination.to_canonical() {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_unspecified() || v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unspecified() || v6.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::PROXY_AUTHORIZATION;

    use super::*;

    fn network(text: &str) -> Network {
        text.parse().unwrap()
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_network_has_the_addresses_that_begin_alike() {
        for (network_of, has, has_not) in [
            ("10.0.0.0/8", "10.255.3.4", "11.0.0.1"),
            ("192.168.3.0/24", "192.168.3.255", "192.168.4.0"),
            ("192.168.3.7", "192.168.3.7", "192.168.3.8"),
            ("0.0.0.0/0", "203.0.113.9", "::1"),
            ("fd00::/8", "fd12::1", "fe80::1"),
            ("::/0", "2001:db8::1", "10.0.0.1"),
        ] {
            assert!(network(network_of).contains(ip(has)), "{network_of}");
            assert!(!network(network_of).contains(ip(has_not)), "{network_of}");
        }
        for wrong in [
            "",
            "10.0.0.0/33",
            "fd00::/129",
            "10.0/8",
            "host",
            "10.0.0.0/x",
        ] {
            assert_eq!(wrong.parse::<Network>(), Err(NetworkError), "{wrong}");
        }
    }

    fn access(token: Option<&[u8]>, allowed: &[&str]) -> Access {
        Access {
            token: token.map(Token::of),
            allowed: allowed.iter().map(|text| network(text)).collect(),
        }
    }

    #[test]
    fn beyond_this_machine_it_is_closed_unless_opened() {
        let nobody = HeaderMap::new();
        let check =
            |access: &Access, client| access.check(ip(client), &nobody, &PROXY_AUTHORIZATION);
        let closed = access(None, &[]);
        assert_eq!(check(&closed, "127.0.0.1"), Ok(()));
        assert_eq!(check(&closed, "::1"), Ok(()));
        assert_eq!(check(&closed, "::ffff:127.0.0.1"), Ok(()));
        assert_eq!(check(&closed, "192.168.1.2"), Err(Refused::Network));
        let home = access(None, &["192.168.0.0/16"]);
        assert_eq!(check(&home, "192.168.1.2"), Ok(()));
        assert_eq!(check(&home, "10.0.0.1"), Err(Refused::Network));
        let secret = access(Some(b"secret"), &[]);
        assert_eq!(check(&secret, "127.0.0.1"), Err(Refused::Token));
        assert_eq!(check(&secret, "10.0.0.1"), Err(Refused::Token));
    }

    #[test]
    fn the_token_is_the_password_of_any_user_or_a_bearers() {
        let access = access(Some(b"s3cret"), &[]);
        let check = |header: &'static str| {
            let headers = [(PROXY_AUTHORIZATION, HeaderValue::from_static(header))];
            access.check(
                ip("10.0.0.1"),
                &headers.into_iter().collect(),
                &PROXY_AUTHORIZATION,
            )
        };
        // me:s3cret, :s3cret, me:other
        assert_eq!(check("Basic bWU6czNjcmV0"), Ok(()));
        assert_eq!(check("basic OnMzY3JldA=="), Ok(()));
        assert_eq!(check("Bearer s3cret"), Ok(()));
        for wrong in [
            "Basic bWU6b3RoZXI=",
            "Basic ***",
            "Basic",
            "Digest s3cret",
            "s3cret",
        ] {
            assert_eq!(check(wrong), Err(Refused::Token), "{wrong}");
        }
    }

    #[test]
    fn this_machine_and_its_link_are_private() {
        for private in [
            "127.0.0.9",
            "0.0.0.0",
            "169.254.169.254",
            "::1",
            "::",
            "fe80::1",
            "::ffff:127.0.0.1",
        ] {
            assert!(is_private_to_machine(ip(private)), "{private}");
        }
        for public in [
            "10.0.0.1",
            "192.168.1.1",
            "203.0.113.1",
            "2001:db8::1",
            "fd00::1",
        ] {
            assert!(!is_private_to_machine(ip(public)), "{public}");
        }
    }
}
