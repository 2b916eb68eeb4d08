//! Rules: what weighs more, and what is due, by host, port and client. Pure.

use std::net::IpAddr;

use jiff::Zoned;

use super::access::Network;
use crate::hold::{FLOOR, HoldPlan};
use crate::hours::{Hours, TimeOfDay, is_within};
use crate::http::host::HostPattern;

/// A rule of the proxy. The first one that matches a connection counts for it.
#[derive(Debug, Clone, PartialEq)]
pub struct ProxyRule {
    /// A unique name, for metrics.
    pub name: String,
    /// Hosts as clients name them; all if there are none.
    pub hosts: Vec<HostPattern>,
    /// Ports; all if there are none.
    pub ports: Vec<u16>,
    /// Networks of clients; all if there are none.
    pub clients: Vec<Network>,
    /// The rest counts in these hours only, in local time; always if there are none.
    pub hours: Vec<Hours>,
    /// w_min, 0.02 to 1; that of the proxy if it is larger.
    pub weight: Option<f64>,
    /// The time of day by which all is moved, as 06:00.
    pub deadline: Option<TimeOfDay>,
    /// What is moved from one deadline to the next, bytes; `None` if that is unknown.
    pub bytes: Option<u64>,
}

impl ProxyRule {
    /// Whether a connection of this client to that host is meant.
    pub(super) fn matches(&self, host: &str, port: u16, client: IpAddr) -> bool {
        let client = client.to_canonical();
        let any = |is_empty: bool, found: bool| is_empty || found;
        any(
            self.hosts.is_empty(),
            self.hosts.iter().any(|pattern| pattern.matches(host)),
        ) && any(self.ports.is_empty(), self.ports.contains(&port))
            && any(
                self.clients.is_empty(),
                self.clients.iter().any(|network| network.contains(client)),
            )
    }

    /// What its connections are to move at this moment, by when. Out of its hours it is as for all
    /// others.
    pub(super) fn plan(&self, now: &Zoned, others: HoldPlan) -> HoldPlan {
        if !is_within(&self.hours, now) {
            return others;
        }
        let weight = self
            .weight
            .map_or(others.weight, |it| it.max(others.weight));
        HoldPlan {
            weight,
            floor: weight.max(FLOOR),
            bytes: self.bytes,
            deadline: self.deadline.and_then(|it| it.next(now)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule() -> ProxyRule {
        ProxyRule {
            name: "debian".to_owned(),
            hosts: ["*.debian.org", "deb.example"]
                .map(|it| it.parse().unwrap())
                .to_vec(),
            ports: vec![443],
            clients: vec!["192.168.0.0/16".parse().unwrap()],
            hours: vec!["22:00-06:00".parse().unwrap()],
            weight: Some(0.3),
            deadline: Some("06:00".parse().unwrap()),
            bytes: Some(1000),
        }
    }

    const OTHERS: HoldPlan = HoldPlan {
        weight: 0.02,
        floor: 0.02,
        bytes: None,
        deadline: None,
    };

    #[test]
    fn host_port_and_client_have_to_match() {
        let client: IpAddr = "192.168.1.2".parse().unwrap();
        let matches = |host, port| rule().matches(host, port, client);
        assert!(matches("ftp.Debian.org", 443));
        assert!(matches("a.b.debian.org.", 443));
        assert!(matches("deb.example", 443));
        for other in [
            "debian.org",
            "xdebian.org",
            "x.deb.example",
            "debian.org.evil",
        ] {
            assert!(!matches(other, 443), "{other}");
        }
        assert!(!matches("ftp.debian.org", 80));
        let elsewhere = "10.0.0.1".parse().unwrap();
        assert!(!rule().matches("ftp.debian.org", 443, elsewhere));
        let mapped = "::ffff:192.168.1.2".parse().unwrap();
        assert!(rule().matches("ftp.debian.org", 443, mapped));
    }

    #[test]
    fn in_its_hours_it_has_a_plan_until_the_deadline_that_comes_next() {
        let at = |text: &str| text.parse::<Zoned>().unwrap();
        let night = rule().plan(&at("2026-03-02T23:00:00[UTC]"), OTHERS);
        assert_eq!(night.bytes, Some(1000));
        assert_eq!(
            night.deadline,
            Some("2026-03-03T06:00:00Z".parse().unwrap())
        );
        assert_eq!(night.weight, 0.3);
        assert_eq!(night, rule().plan(&at("2026-03-03T05:59:00[UTC]"), OTHERS));
        assert_eq!(rule().plan(&at("2026-03-03T06:00:00[UTC]"), OTHERS), OTHERS);
        let heavier = HoldPlan {
            weight: 0.5,
            ..OTHERS
        };
        assert_eq!(
            rule().plan(&at("2026-03-02T23:00:00[UTC]"), heavier).weight,
            0.5
        );
    }
}
