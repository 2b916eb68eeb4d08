//! The network of hosts behind one uplink: each is joined by a wire of its own to the host at the
//! near end of the link, which forwards for them.
//!
//! What they push goes between addresses of the background. To that host itself, where the NATS
//! servers are, they go between addresses of the foreground, which does not pass the link.

use std::io;
use std::time::Duration;

use crate::contender::site::Site;
use crate::host::{Class, Host};

/// The first of them. Those of the scenario count from 0.
const FIRST: usize = 100;

/// How long wires may take to carry, and how often it is looked.
const GRACE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(20);

/// Hosts behind an uplink.
#[derive(Debug)]
pub(crate) struct Uplink {
    server: Host,
    /// Each with its name, which is also that of its wire.
    hosts: Vec<(Host, String)>,
}

impl Uplink {
    /// As many hosts as there are transfers.
    ///
    /// # Errors
    /// One of them, or a wire or a route, cannot be made.
    pub(crate) fn new(site: &Site) -> io::Result<Self> {
        let server = &site.server;
        server.sysctl("ipv4/ip_forward", "1")?;
        let mut hosts = Vec::new();
        for number in 1..=site.served.len() {
            let index = u8::try_from(FIRST + number - 1);
            let host = Host::new(index.map_err(|_| io::Error::other("too many hosts"))?)?;
            // As with the hosts of the scenario.
            host.sysctl("ipv4/tcp_no_metrics_save", "1")?;
            let name = format!("host-{number}");
            server.join(&host, &name)?;
            hosts.push((host, name));
        }
        let uplink = Self {
            server: server.clone(),
            hosts,
        };
        uplink.await_wires()?;
        for (host, wire) in &uplink.hosts {
            uplink.add_routes(site, host, wire)?;
        }
        Ok(uplink)
    }

    /// Each with its name.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = (&Host, &str)> {
        self.hosts.iter().map(|(host, name)| (host, name.as_str()))
    }

    /// Cuts these off from the NATS servers, in both directions, or puts them back. Their way over
    /// the link stays.
    ///
    /// # Errors
    /// A route cannot be changed.
    pub(crate) fn set_cut_off(&self, numbers: &[usize], is_cut: bool) -> io::Result<()> {
        let server = self.server.address(Class::Foreground);
        for (host, wire) in numbers.iter().filter_map(|number| self.hosts.get(*number)) {
            let own = host.address(Class::Foreground);
            let route = |to, from| match is_cut {
                true => format!("route replace blackhole {to}"),
                false => format!("route replace {to} dev {wire} src {from}"),
            };
            host.ip(&route(server, own))?;
            self.server.ip(&route(own, server))?;
        }
        Ok(())
    }

    fn await_wires(&self) -> io::Result<()> {
        let mut waited = Duration::ZERO;
        for (host, wire) in &self.hosts {
            while !(host.is_up(wire)? && self.server.is_up(wire)?) {
                if waited > GRACE {
                    let said = format!("the wire of {wire} does not come up");
                    return Err(io::Error::other(said));
                }
                std::thread::sleep(LOOK);
                waited += LOOK;
            }
        }
        Ok(())
    }

    fn add_routes(&self, site: &Site, host: &Host, wire: &str) -> io::Result<()> {
        let (server, client) = (&self.server, &site.client);
        for class in [Class::Foreground, Class::Background] {
            let (own, near) = (host.address(class), server.address(class));
            server.ip(&format!("route add {own} dev {wire} src {near}"))?;
            host.ip(&format!("route add {near} dev {wire} src {own}"))?;
        }
        let [own, near, far] = [host, server, client].map(|one| one.address(Class::Background));
        let control = &site.background.congestion_control;
        // What sends has the congestion control of the background, as elsewhere by its route.
        host.ip(&format!(
            "route add {far} via {near} dev {wire} src {own} congctl {control}"
        ))?;
        client.ip(&format!("route add {own} via {near} src {far}"))?;
        Ok(())
    }
}
