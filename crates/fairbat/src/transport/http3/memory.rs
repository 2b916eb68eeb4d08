//! What is remembered of HTTP/3 from one run to the next: the hosts that offer it, and those that
//! cannot be reached by it, in which network.
//!
//! A network is told by the address that this machine has in it and by the address of the router.
//! A run that cannot read or write the memory does without it.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fs, io};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use url::Origin;

use super::address::source;
use super::connection::ServerAddress;
use crate::file_version::wall_clock;
use crate::settings::LocalEnd;

/// In a network in which HTTP/3 has failed, TCP is used for so long.
const SHUNNED: Duration = Duration::from_secs(60 * 60);

/// An offer that holds longer by this time is worth writing.
const MIN_RENEWAL: SignedDuration = SignedDuration::from_mins(10);

/// The memory of a client. Clones are the same.
#[derive(Debug, Clone)]
pub(super) struct Memory {
    path: Option<PathBuf>,
    known: Arc<Mutex<KnownHosts>>,
}

/// The file: hosts by origin, as `https://example.com`.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct KnownHosts(BTreeMap<String, KnownHost>);

#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct KnownHost {
    /// Where it offers HTTP/3, and until when that holds.
    offer: Option<(ServerAddress, Timestamp)>,
    /// Until when it is not tried, by network.
    shunned: BTreeMap<String, Timestamp>,
}

impl KnownHosts {
    /// Forgets what does not hold any more.
    fn expire(&mut self, now: Timestamp) {
        for host in self.0.values_mut() {
            host.offer.take_if(|(_, until)| *until <= now);
            host.shunned.retain(|_, until| *until > now);
        }
        self.0.retain(|_, host| *host != KnownHost::default());
    }
}

impl Memory {
    /// What is in this file.
    pub(super) fn load(path: Option<PathBuf>) -> Self {
        let known = path.as_deref().and_then(read).unwrap_or_default();
        Self {
            path,
            known: Arc::new(Mutex::new(known)),
        }
    }

    /// Where this origin offers HTTP/3, unless that has failed in this network.
    pub(super) fn offer(
        &self,
        origin: &Origin,
        network: impl FnOnce() -> String,
    ) -> Option<ServerAddress> {
        let now = now();
        let known = self.known();
        let host = known.0.get(&origin.ascii_serialization())?;
        // To name the network takes some looks at the system.
        let shunned = (!host.shunned.is_empty()).then(|| host.shunned.get(&network()));
        let is_shunned = shunned.flatten().is_some_and(|until| *until > now);
        let (server, until) = host.offer.as_ref().filter(|_| !is_shunned)?;
        (*until > now).then(|| server.clone())
    }

    /// Whether this origin offers HTTP/3, or has failed to speak it in this network.
    pub(super) fn knows(&self, origin: &Origin, network: &str) -> bool {
        let now = now();
        let known = self.known();
        let host = known.0.get(&origin.ascii_serialization());
        host.is_some_and(|host| {
            let offered = host.offer.iter().map(|(_, until)| until);
            let mut known = offered.chain(host.shunned.get(network));
            known.any(|until| *until > now)
        })
    }

    /// This origin offers HTTP/3 there, for so long, or not any more.
    pub(super) fn note_offer(&self, origin: &Origin, offer: Option<(ServerAddress, Duration)>) {
        let now = now();
        let offer = offer.filter(|(_, age)| !age.is_zero());
        let offer = offer.and_then(|(server, age)| Some((server, now.checked_add(age).ok()?)));
        self.change(origin, |host| {
            // What is told again with each answer need not be written each time.
            let is_news = match (&host.offer, &offer) {
                (Some((known, until)), Some((server, later))) => {
                    known != server || later.duration_since(*until) > MIN_RENEWAL
                }
                (known, offer) => known != offer,
            };
            if is_news {
                host.offer.clone_from(&offer);
            }
            is_news
        });
    }

    /// HTTP/3 does not work with this origin in this network.
    pub(super) fn note_failure(&self, origin: &Origin, network: &str) {
        let until = now().checked_add(SHUNNED).ok();
        self.change(origin, |host| {
            let until = until.map(|until| host.shunned.insert(network.to_owned(), until));
            until.is_some()
        });
    }

    /// Changes what is known of an origin, and writes it if `change` says so. What other processes
    /// have written meanwhile is kept.
    fn change(&self, origin: &Origin, change: impl Fn(&mut KnownHost) -> bool) {
        let name = origin.ascii_serialization();
        let mut known = self.known();
        if !change(known.0.entry(name.clone()).or_default()) {
            return;
        }
        let Some(path) = &self.path else {
            return;
        };
        let mut written = read(path).unwrap_or_default();
        let host = written.0.entry(name.clone()).or_default();
        change(host);
        known.0.insert(name, host.clone());
        written.expire(now());
        if let Err(error) = write(path, &written) {
            tracing::debug!(%error, path = %path.display(), "cannot be remembered");
        }
    }

    fn known(&self) -> MutexGuard<'_, KnownHosts> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn now() -> Timestamp {
    Timestamp::try_from(wall_clock()).unwrap_or(Timestamp::UNIX_EPOCH)
}

fn read(path: &Path) -> Option<KnownHosts> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// How often this process has written: two paths may do it at the same time.
static WRITTEN: AtomicUsize = AtomicUsize::new(0);

/// Replaces the file in one step.
fn write(path: &Path, known: &KnownHosts) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let turn = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let new = path.with_extension(format!("{}-{turn}.new", std::process::id()));
    let text = serde_json::to_vec(known).map_err(io::Error::other)?;
    // It tells which servers were visited.
    let options = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new);
    options?.write_all(&text)?;
    fs::rename(&new, path)
}

/// The name of the network that connections from this end leave by.
pub(super) fn network(from: Option<&LocalEnd>) -> String {
    let end = from.map(LocalEnd::to_string).unwrap_or_default();
    let towards = |elsewhere: IpAddr| source((elsewhere, 9).into(), None);
    let address = towards(ELSEWHERE.into()).or_else(|| towards(ELSEWHERE_V6.into()));
    let address = address.map(|address| address.to_string());
    let router = router().unwrap_or_default();
    format!("{end} {} {router}", address.unwrap_or_default())
}

/// An address that no host has (RFC 5737).
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// The same (RFC 3849).
const ELSEWHERE_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);

/// The hardware address of the router, as the kernel knows it (proc_net(5)).
fn router() -> Option<String> {
    let routes = fs::read_to_string("/proc/net/route").ok()?;
    let mut routes = routes.lines().map(|line| line.split_whitespace());
    let gateway = routes.find_map(|mut fields| {
        let (destination, gateway) = (fields.nth(1)?, fields.next()?);
        (destination == "00000000").then(|| u32::from_str_radix(gateway, 16).ok())?
    })?;
    let gateway = Ipv4Addr::from(gateway.to_ne_bytes()).to_string();
    let neighbours = fs::read_to_string("/proc/net/arp").ok()?;
    let mut neighbours = neighbours.lines().map(str::split_whitespace);
    neighbours.find_map(|mut fields| {
        let is_router = fields.next() == Some(&gateway);
        is_router.then(|| fields.nth(2).map(str::to_owned))?
    })
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;

    #[test]
    fn what_was_noted_is_known_in_the_next_run() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cache/http3.json");
        let origin = Url::parse("https://example.com/a").unwrap().origin();
        let other = Url::parse("https://example.org").unwrap().origin();
        let server = ServerAddress {
            host: "example.com".to_owned(),
            port: 443,
        };
        let offer = |age| Some((server.clone(), Duration::from_secs(age)));
        let load = || Memory::load(Some(path.clone()));
        load().note_offer(&origin, offer(60));
        load().note_offer(&other, offer(60));
        let memory = load();
        assert_eq!(
            memory.offer(&origin, || "home".to_owned()),
            Some(server.clone())
        );
        let older = load();
        memory.note_failure(&origin, "home");
        // The failure is not lost with what another process notes.
        older.note_offer(&origin, offer(60 * 60));
        assert_eq!(load().offer(&origin, || "home".to_owned()), None);
        assert_eq!(
            load().offer(&origin, || "work".to_owned()),
            Some(server.clone())
        );
        load().note_offer(&origin, None);
        assert_eq!(load().offer(&origin, || "work".to_owned()), None);
        assert_eq!(
            load().offer(&other, || "home".to_owned()),
            Some(server.clone())
        );
        load().note_offer(&other, offer(0));
        assert_eq!(load().offer(&other, || "home".to_owned()), None);
    }

    #[test]
    fn a_damaged_file_is_a_new_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("http3.json");
        fs::write(&path, "{\"https://example.com\": 7").unwrap();
        let memory = Memory::load(Some(path));
        let origin = Url::parse("https://example.com").unwrap().origin();
        memory.note_failure(&origin, "home");
        assert_eq!(memory.offer(&origin, || "home".to_owned()), None);
    }
}
