//! HTTPS records: where the DNS says that a host speaks HTTP/3 (RFC 9460), so that even the first
//! request goes there.
//!
//! Records that name another host for all of its services (the alias form) are left alone: then the
//! first answer tells by its `Alt-Svc`.

use std::str::FromStr as _;
use std::time::Duration;

use bytes::Bytes;
use domain::base::iana::{Class, SvcParamKey};
use domain::base::{Name, ParsedName, Rtype};
use domain::rdata::svcb::Https as HttpsRecord;
use domain::rdata::svcb::value::{Alpn, Mandatory, Port};
use domain::resolv::StubResolver;
use url::{Host, Url};

use crate::http::alternative::Alternative;

type Https = HttpsRecord<Bytes, ParsedName<Bytes>>;

/// Parameters that a record may insist on, as it does by default on those that say where to connect
/// (section 8). The addresses are looked up as those of any host.
const UNDERSTOOD: [SvcParamKey; 5] = [
    SvcParamKey::ALPN,
    SvcParamKey::NO_DEFAULT_ALPN,
    SvcParamKey::PORT,
    SvcParamKey::IPV4HINT,
    SvcParamKey::IPV6HINT,
];

/// What was looked up holds for this long, even if it may not be kept: it is for the requests of
/// this run.
const MIN_AGE: Duration = Duration::from_secs(60);

/// Where HTTP/3 is spoken for this https URL, as the resolver of the machine says. None if it does
/// not say so, or cannot be asked.
pub(super) async fn look_up(url: &Url) -> Option<Alternative> {
    let name = Name::<Vec<u8>>::from_str(&name_of(url)?).ok()?;
    let answer = StubResolver::new()
        .query((name, Rtype::HTTPS, Class::IN))
        .await
        .ok()?;
    let records = answer.answer().ok()?.limit_to_in::<Https>();
    let services = records
        .flatten()
        .filter(|record| record.data().is_service() && speaks_http3(record.data()));
    let first = services.min_by_key(|record| record.data().priority())?;
    let target = match first.data().target() {
        root if root.is_root() => first.owner(),
        target => target,
    };
    let port = first.data().params().first::<Port>();
    Some(Alternative {
        host: Some(target.to_string()),
        port: port.map_or(url.port_or_known_default()?, Port::port),
        age: Duration::from_secs(first.ttl().as_secs().into()).max(MIN_AGE),
    })
}

/// The name that the records of this URL have (section 9.1). None for addresses, and for names of
/// this machine or this network, which are not in the DNS.
fn name_of(url: &Url) -> Option<String> {
    let Host::Domain(host) = url.host()? else {
        return None;
    };
    if !host.trim_end_matches('.').contains('.') {
        return None;
    }
    Some(match url.port() {
        None => host.to_owned(),
        Some(port) => format!("_{port}._https.{host}"),
    })
}

fn speaks_http3(record: &Https) -> bool {
    let params = record.params();
    let alpn = params.first::<Alpn<Bytes>>();
    let offers = alpn.is_some_and(|it| it.iter().any(|protocol| protocol.as_ref() == b"h3"));
    let mandatory = params.first::<Mandatory<Bytes>>();
    offers && mandatory.is_none_or(|keys| keys.iter().all(|key| UNDERSTOOD.contains(&key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_asked_for_by_the_names_of_the_standard() {
        let name = |url| name_of(&Url::parse(url).unwrap());
        assert_eq!(
            name("https://example.com/a").as_deref(),
            Some("example.com")
        );
        assert_eq!(
            name("https://example.com:443/").as_deref(),
            Some("example.com")
        );
        assert_eq!(
            name("https://example.com:8443/").as_deref(),
            Some("_8443._https.example.com")
        );
        for without in [
            "https://localhost/",
            "https://192.0.2.1/",
            "https://[2001:db8::1]/",
        ] {
            assert_eq!(name(without), None);
        }
    }
}
