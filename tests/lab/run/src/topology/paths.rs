//! Addresses and routes of paths side by side, and what becomes of them when a path goes away.
//!
//! The server is reached under one address, over each of the paths. The client has an address
//! for each class at each path, on the device of the path, and a default route over each of
//! them: the first path has the least metric, so that it is the one of whoever does not choose.
//! A socket of the client that is bound to an address, or to a device (`SO_BINDTODEVICE`), looks
//! into the table of that path (ip-rule(8)), which has no way over another one. The server
//! answers to the address that it was asked from, which is reached over its path only.
//!
//! When a device goes down the kernel drops the routes over it in all tables. They are made again
//! when it is up, as a network manager does it. Meanwhile what is bound to the path has no route,
//! and nothing goes out over another path with an address that is not of it.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::host::{Class, Host};
use crate::machine::Clock;
use crate::scenario::{Background, Interval, Scenario};

/// Tables of the paths, and what their rules are ranked by, begin here: before the main table,
/// which is ranked 32766.
const FIRST_TABLE: usize = 101;

/// From the metric of a path to that of the next one.
const METRIC: usize = 100;

/// The metric of what has no route in the table of a path whose device is down: worse than any.
const NO_ROUTE: u32 = 4_000_000_000;

/// The order of the addresses of a device: the background's is the first, as who asks a device
/// for its address takes that one.
const ORDER: [Class; 3] = [Class::Background, Class::Foreground, Class::Probe];

/// How often it is looked whether the run is over.
const LOOK: Duration = Duration::from_millis(50);

/// A path between two hosts.
#[derive(Debug, Clone)]
struct Path {
    number: usize,
    device: String,
}

impl Path {
    fn table(&self) -> usize {
        FIRST_TABLE + self.number
    }

    /// The server's end, which is the client's way out.
    fn gateway(&self) -> String {
        format!("10.79.{}.1", self.number)
    }
}

/// Both hosts and the paths between them.
#[derive(Debug, Clone)]
pub(super) struct Paths {
    server: Host,
    client: Host,
    all: Vec<Path>,
    /// The congestion control of the server that sends, and whether its receiver acknowledges
    /// each packet, as words of a route.
    control: String,
}

impl Paths {
    /// Between these hosts, which are not joined yet.
    ///
    /// # Errors
    /// When a setting of the kernel is not there.
    pub(super) fn new(scenario: &Scenario, server: &Host, client: &Host) -> io::Result<Self> {
        for host in [server, client] {
            // A path back that is not the one of the main table is no forgery here.
            for setting in ["ipv4/conf/all/rp_filter", "ipv4/conf/default/rp_filter"] {
                host.sysctl(setting, "0")?;
            }
        }
        let names = scenario.paths().map(|(name, _)| name.to_owned());
        let all = names.enumerate();
        let Background {
            congestion_control,
            quick_acks,
            ..
        } = &scenario.background;
        let quick = if *quick_acks { " quickack 1" } else { "" };
        Ok(Self {
            server: server.clone(),
            client: client.clone(),
            all: all
                .map(|(number, device)| Path { number, device })
                .collect(),
            control: format!(" congctl {congestion_control}{quick}"),
        })
    }

    /// Gives both ends of each path, whose devices are there, their addresses and routes.
    ///
    /// # Errors
    /// When one of them cannot be made; an unknown congestion control is found here.
    pub(super) fn lay(&self) -> io::Result<()> {
        // They are those of the first path, and go when it goes.
        for address in self.client.addresses() {
            self.client.ip(&format!("address del {address} dev lo"))?;
        }
        for path in &self.all {
            let Path { number, device } = path;
            let here = self.client.at_path(*number);
            self.server
                .ip(&format!("address add {}/32 dev {device}", path.gateway()))?;
            for class in ORDER {
                let address = here.address(class);
                self.client
                    .ip(&format!("address add {address}/32 dev {device}"))?;
                let from = self.server.address(class);
                let control = self.control_of(class);
                self.server.ip(&format!(
                    "route add {address} dev {device} src {from}{control}"
                ))?;
                let table = path.table();
                self.client.ip(&format!(
                    "rule add from {address} lookup {table} pref {table}"
                ))?;
            }
            let table = path.table();
            let after = table + self.all.len();
            self.client.ip(&format!(
                "rule add oif {device} lookup {table} pref {after}"
            ))?;
            self.client.ip(&format!(
                "route add unreachable default metric {NO_ROUTE} table {table}"
            ))?;
            self.route(path)?;
        }
        Ok(())
    }

    /// Makes the routes of the client over a path whose device is up.
    fn route(&self, path: &Path) -> io::Result<()> {
        let Path { number, device } = path;
        let from = self.client.at_path(*number).address(Class::Background);
        let over = format!("via {} dev {device} onlink src {from}", path.gateway());
        let server = self.server.address(Class::Background);
        let control = &self.control;
        let metric = (number + 1) * METRIC;
        for table in ["main".to_owned(), path.table().to_string()] {
            for to in [format!("{server}{control}"), "default".to_owned()] {
                let (to, control) = to.split_once(' ').unwrap_or((&to, ""));
                let words =
                    format!("route replace {to} {over} metric {metric} table {table} {control}");
                self.client.ip(words.trim_end())?;
            }
        }
        Ok(())
    }

    fn control_of(&self, class: Class) -> &str {
        match class {
            Class::Background => &self.control,
            Class::Foreground | Class::Probe => "",
        }
    }

    /// The device of the client goes down.
    fn leave(&self, path: &Path) -> io::Result<()> {
        self.client
            .ip(&format!("link set dev {} down", path.device))?;
        Ok(())
    }

    /// It is up again, with all that it had.
    fn come_back(&self, path: &Path) -> io::Result<()> {
        self.client
            .ip(&format!("link set dev {} up", path.device))?;
        self.route(path)
    }
}

/// Paths that go away and come back while this is there.
#[derive(Debug)]
pub(super) struct Departing {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    failure: Arc<Mutex<Option<io::Error>>>,
}

impl Departing {
    /// Each path is away at these times of this clock.
    pub(super) fn start(paths: &Paths, away: Vec<Vec<Interval>>, clock: Clock) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let failure = Arc::new(Mutex::new(None));
        let each = paths.all.iter().cloned().zip(away);
        let threads = each
            .filter(|(_, away)| !away.is_empty())
            .map(|(path, away)| {
                let (paths, over, failure) =
                    (paths.clone(), Arc::clone(&over), Arc::clone(&failure));
                std::thread::spawn(move || {
                    if let Err(error) = depart(&paths, &path, &away, clock, &over) {
                        *failure.lock().expect("nobody panics with it") = Some(error);
                    }
                })
            });
        Self {
            threads: threads.collect(),
            over,
            failure,
        }
    }

    /// Ends it, with all paths there.
    ///
    /// # Errors
    /// When a path could not be taken away, or did not come back.
    ///
    /// # Panics
    /// When one of its threads did.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().expect("what takes paths away does not panic");
        }
        let failure = self.failure.lock().expect("nobody panics with it").take();
        failure.map_or(Ok(()), Err)
    }
}

impl Drop for Departing {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

fn depart(
    paths: &Paths,
    path: &Path,
    away: &[Interval],
    clock: Clock,
    over: &AtomicBool,
) -> io::Result<()> {
    for interval in away {
        let (from, until) = interval.moments();
        if !waited(clock, from, over) {
            return Ok(());
        }
        paths.leave(path)?;
        waited(clock, until, over);
        paths.come_back(path)?;
    }
    Ok(())
}

/// Waits until a moment; false if the run was over before.
fn waited(clock: Clock, moment: Duration, over: &AtomicBool) -> bool {
    while !over.load(Ordering::Relaxed) {
        let left = moment.saturating_sub(clock.now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(LOOK));
    }
    false
}

#[cfg(test)]
mod tests;
