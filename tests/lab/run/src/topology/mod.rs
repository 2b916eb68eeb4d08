//! Hosts and links of a scenario, with the routes between them: links in a row, or paths side by
//! side between two hosts.

mod paths;

use std::io;
use std::time::Duration;

use crate::host::{Class, Host};
use crate::link::bottleneck::{Limit, Settings};
use crate::link::{Link, MTU, bytes_per_s};
use crate::machine::Clock;
use crate::samples::LinkRecord;
use crate::scenario::{DirectionSpec, QueueSpec, Scenario};
use crate::topology::paths::{Departing, Paths};

/// The network of a run.
#[derive(Debug)]
pub struct Topology {
    hosts: Vec<Host>,
    links: Vec<Link>,
    /// Of paths side by side: those that go away.
    departing: Option<Departing>,
    /// Which links are paths that go away.
    departs: Vec<bool>,
}

/// The hosts of a scenario, not joined yet: one more than it has links in a row, or two.
///
/// # Errors
/// Without the right to make them (root).
pub fn hosts(scenario: &Scenario) -> io::Result<Vec<Host>> {
    let indices = (0..scenario.hosts()).map(|index| index as u8);
    indices.map(Host::new).collect()
}

impl Topology {
    /// Joins the hosts as the scenario says. Seeds of losses are made from
    /// `seed`.
    ///
    /// # Errors
    /// When a device or a route cannot be made; an unknown congestion control
    /// is found here.
    pub fn join(
        scenario: &Scenario,
        hosts: Vec<Host>,
        seed: u64,
        sampling: Duration,
        clock: Clock,
    ) -> io::Result<Self> {
        let is_parallel = scenario.is_parallel();
        let paths = match &hosts[..] {
            [server, client] if is_parallel => Some(Paths::new(scenario, server, client)?),
            _ => None,
        };
        let mut links = Vec::new();
        for (index, spec) in scenario.link.iter().enumerate() {
            let rtt = scenario.rtt_over(spec);
            let is_last = index + 1 == scenario.link.len();
            let between = if is_parallel { 0 } else { index };
            let settings = |spec: &DirectionSpec, direction: u64| Settings {
                spec: spec.clone(),
                limit: limit(spec, rtt),
                away: match direction {
                    0 if is_last => scenario.background.away(scenario.duration_s, seed),
                    _ => Vec::new(),
                },
                seed: seed ^ ((index as u64 * 2 + direction + 1) << 32),
                sampling,
            };
            links.push(Link::start(
                &hosts[between],
                &hosts[between + 1],
                &spec.path.clone().unwrap_or_else(|| device(index)),
                &settings(&spec.forward(), 0),
                &settings(&spec.backward(), 1),
                clock,
                Duration::from_secs_f64(scenario.duration_s),
            )?);
        }
        let departs = scenario.link.iter();
        let departs = departs.map(|link| link.departures.is_some());
        let topology = Self {
            hosts,
            links,
            departing: None,
            departs: departs.collect(),
        };
        let marks = scenario.link.iter();
        let marks = marks.flat_map(|link| [link.ecn, link.backward().ecn]);
        topology.prepare_hosts(marks.into_iter().any(|ecn| ecn))?;
        let Some(paths) = paths else {
            let background = &scenario.background;
            topology.add_routes(&background.congestion_control, background.quick_acks)?;
            return Ok(topology);
        };
        paths.lay()?;
        let away = scenario.departures(seed);
        Ok(Self {
            departing: Some(Departing::start(&paths, away, clock)),
            ..topology
        })
    }

    /// The hosts, in the direction of the data.
    #[must_use]
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// Takes the links down and returns what they saw.
    ///
    /// # Errors
    /// When one of them had failed, or a path did not come back.
    pub fn finish(self) -> io::Result<Vec<LinkRecord>> {
        let departs = self.departs;
        self.departing.map_or(Ok(()), Departing::finish)?;
        let links = self.links.into_iter().zip(departs);
        let records = links.map(|(link, departs)| {
            let mut record = link.finish()?;
            if departs {
                // A device that goes down drops what it has. The link is not to blame.
                let counters = &mut record.backward.counters;
                counters.lost += std::mem::take(&mut counters.overrun);
            }
            Ok(record)
        });
        records.collect()
    }

    /// With links that mark packets, connections ask for ECN.
    fn prepare_hosts(&self, marks: bool) -> io::Result<()> {
        for (index, host) in self.hosts.iter().enumerate() {
            // Each connection shall learn the path by itself, as if it were
            // the first.
            host.sysctl("ipv4/tcp_no_metrics_save", "1")?;
            if marks {
                host.sysctl("ipv4/tcp_ecn", "1")?;
            }
            if index > 0 && index + 1 < self.hosts.len() {
                host.sysctl("ipv4/ip_forward", "1")?;
                host.sysctl("ipv6/conf/all/forwarding", "1")?;
            }
        }
        Ok(())
    }

    /// Every address of every host is reached with one's own address of the
    /// same class. The background's sender gets its congestion control by the
    /// route, so that it holds for any program, and no setting of the machine
    /// has to be changed for it. With `quick_acks`, its receiver acknowledges each packet.
    fn add_routes(&self, congestion_control: &str, quick_acks: bool) -> io::Result<()> {
        for (here, host) in self.hosts.iter().enumerate() {
            for (there, other) in self.hosts.iter().enumerate() {
                if here == there {
                    continue;
                }
                let device = device(if there > here { here } else { here - 1 });
                for (to, from) in other.addresses().into_iter().zip(host.addresses()) {
                    let control = match Class::of(to) {
                        Some(Class::Background) => {
                            let quick = if quick_acks { " quickack 1" } else { "" };
                            format!(" congctl {congestion_control}{quick}")
                        }
                        _ => String::new(),
                    };
                    host.ip(&format!("route add {to} dev {device} src {from}{control}"))?;
                }
            }
        }
        Ok(())
    }
}

fn device(link: usize) -> String {
    format!("link{}", link + 1)
}

/// Packets that a queue sized in bandwidth-delay products holds at least. In slow
/// start an acknowledgement of two packets releases four at once (RFC 3465, with a
/// limit of 2): a shorter queue drops some of them however little the link is used.
const MIN_QUEUE: usize = 4;

/// What the queue of this direction holds on a path of this round-trip time.
pub fn limit(spec: &DirectionSpec, rtt: Duration) -> Limit {
    match spec.queue {
        QueueSpec::Packets(packets) => Limit::Packets(packets as usize),
        QueueSpec::Bytes(bytes) => Limit::Bytes(bytes as usize),
        QueueSpec::Bdp(times) => {
            let bytes = times * bytes_per_s(spec.rate_mbit) * rtt.as_secs_f64();
            let packets = bytes / f64::from(MTU);
            Limit::Packets((packets.round() as usize).max(MIN_QUEUE))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use socket2::SockRef;

    use super::*;
    use crate::scenario::LinkSpec;

    const SCENARIO: &str = r#"
description = "two links"
duration_s = 5
measure_from_s = 0

[[link]]
rate_mbit = 10
delay_ms = 1
queue = { packets = 10 }

[[link]]
rate_mbit = 10
delay_ms = 2
queue = { bdp = 1.0 }
"#;

    #[test]
    fn a_queue_of_a_share_of_the_bdp_holds_four_packets_at_least() {
        let packets = |queue| {
            let spec = LinkSpec::plain(10.0, 10.0, queue).forward();
            limit(&spec, Duration::from_millis(20))
        };
        // 25,000 bytes: 16.7 packets.
        assert_eq!(packets(QueueSpec::Bdp(1.0)), Limit::Packets(17));
        assert_eq!(packets(QueueSpec::Bdp(0.3)), Limit::Packets(5));
        assert_eq!(packets(QueueSpec::Bdp(0.1)), Limit::Packets(4));
        // Others are as they are given.
        assert_eq!(packets(QueueSpec::Packets(2)), Limit::Packets(2));
        assert_eq!(packets(QueueSpec::Bytes(3000)), Limit::Bytes(3000));
    }

    #[test]
    fn a_connection_keeps_its_class_and_the_background_its_congestion_control() {
        if Host::for_test(0).is_none() {
            return;
        }
        let mut scenario: Scenario = toml::from_str(SCENARIO).unwrap();
        // Hardly any machine's default.
        scenario.background.congestion_control = "reno".to_owned();
        let clock = Clock::start();
        let (hosts, sampling) = (hosts(&scenario).unwrap(), Duration::from_millis(10));
        let topology = Topology::join(&scenario, hosts, 1, sampling, clock).unwrap();
        let [server, _, client] = topology.hosts() else {
            panic!("two links join three hosts");
        };
        for (address, own) in server.addresses().into_iter().zip(client.addresses()) {
            let listener = server.within(move || TcpListener::bind((address, 0)).unwrap());
            let to = listener.local_addr().unwrap();
            let _client = client.within(move || TcpStream::connect(to).unwrap());
            let (accepted, from) = listener.accept().unwrap();
            assert_eq!(from.ip(), own);
            let name = SockRef::from(&accepted).tcp_congestion().unwrap();
            let name = String::from_utf8_lossy(&name);
            let is_reno = name.trim_end_matches('\0') == "reno";
            let is_background = Class::of(own) == Some(Class::Background);
            assert_eq!(is_reno, is_background, "{own}: {name}");
        }
        let links = topology.finish().unwrap();
        assert!(links.iter().all(|link| link.forward.counters.delivered > 0));
    }

    #[test]
    fn an_unknown_congestion_control_is_a_clear_error() {
        if Host::for_test(0).is_none() {
            return;
        }
        let mut scenario: Scenario = toml::from_str(SCENARIO).unwrap();
        scenario.background.congestion_control = "none-such".to_owned();
        let hosts = hosts(&scenario).unwrap();
        let sampling = Duration::from_millis(10);
        let error = Topology::join(&scenario, hosts, 1, sampling, Clock::start()).unwrap_err();
        assert!(error.to_string().contains("none-such"), "{error}");
    }
}
