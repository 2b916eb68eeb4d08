//! An end of a link: a network namespace without a name.
//!
//! Nothing but this process holds it, and whatever was started in it, so it
//! is gone when they are, however they end. Knows nothing of links.

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::process::Command;
use std::sync::Arc;
use std::thread::JoinHandle;
#[cfg(test)]
use std::time::Duration;

#[cfg(test)]
use fairbat_tests::netns::skipped;
#[cfg(test)]
use fairbat_tests::poll::wait_until;
use nix::sched::{CloneFlags, setns, unshare};

use crate::machine::Context as _;

/// Whose traffic a packet is; the last octet of both its addresses tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// What the people at the link do.
    Foreground,
    /// The contender.
    Background,
    /// The prober of round-trip times.
    Probe,
}

impl Class {
    /// The last octet of this class's address on every host.
    #[must_use]
    pub fn octet(self) -> u8 {
        match self {
            Self::Foreground => 1,
            Self::Background => 2,
            Self::Probe => 3,
        }
    }

    /// Whose packets to this address are; the last octet tells.
    #[must_use]
    pub fn of(address: IpAddr) -> Option<Self> {
        let octet = match address {
            IpAddr::V4(address) => address.octets()[3],
            IpAddr::V6(address) => address.octets()[15],
        };
        Self::ALL.into_iter().find(|class| class.octet() == octet)
    }

    /// All of them.
    pub const ALL: [Self; 3] = [Self::Foreground, Self::Background, Self::Probe];
}

/// How far the numbers of a host's addresses at two paths lie apart: more than a lab has hosts.
const PATH_STEP: u8 = 16;

/// A network namespace. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Host {
    namespace: Arc<File>,
    index: u8,
}

impl Host {
    /// A new namespace with nothing in it but its loopback, up, with one
    /// address per [`Class`]. `index` tells the hosts of a lab apart.
    ///
    /// # Errors
    /// Without the right to make namespaces (root).
    pub fn new(index: u8) -> io::Result<Self> {
        let parent = Self::unshared(index)?;
        // The size of the table of connections in namespaces that are made from that one. The
        // machine's own has a quarter of a million entries, and ss(8) looks at each of them. It
        // is only faster, so a kernel older than 6.1, which has no such setting, does.
        let _ = parent.sysctl("ipv4/tcp_child_ehash_entries", "1024");
        let host = parent.within(move || Self::unshared(index))?;
        host.ip("link set lo up")?;
        for address in host.addresses() {
            // Without a look whether others have it, which is done later, it is of use at once.
            let nodad = if address.is_ipv6() { " nodad" } else { "" };
            host.ip(&format!("address add {address} dev lo{nodad}"))?;
        }
        Ok(host)
    }

    /// A new namespace as the kernel makes it.
    fn unshared(index: u8) -> io::Result<Self> {
        // A thread of its own: this one stays where it is.
        let made = std::thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET)
                .doing("make a network namespace (needs root and a kernel with namespaces)")?;
            let path = "/proc/thread-self/ns/net";
            File::open(path).doing(format_args!("open {path} (is /proc mounted?)"))
        });
        let namespace = made.join().expect("the thread does not panic")?;
        Ok(Self {
            namespace: Arc::new(namespace),
            index,
        })
    }

    /// The same host by its addresses at the path of this number, from 0 on, where paths are side
    /// by side. At the first it has those of the host itself.
    #[must_use]
    pub fn at_path(&self, path: usize) -> Self {
        Self {
            index: self.index + PATH_STEP * path as u8,
            ..self.clone()
        }
    }

    /// Where this host is reached: for each class, and by the background over IPv6.
    #[must_use]
    pub fn addresses(&self) -> [IpAddr; 4] {
        let [foreground, background, probe] = Class::ALL.map(|class| self.address(class).into());
        [foreground, background, probe, self.background_ipv6().into()]
    }

    /// Where this host is reached for the background's traffic over IPv6.
    #[must_use]
    pub fn background_ipv6(&self) -> Ipv6Addr {
        let (host, class) = (self.index.into(), Class::Background.octet().into());
        Ipv6Addr::new(0xfd78, 0, 0, 0, 0, 0, host, class)
    }

    /// Where this host is reached for traffic of this class.
    #[must_use]
    pub fn address(&self, class: Class) -> Ipv4Addr {
        Ipv4Addr::new(10, 78, self.index, class.octet())
    }

    /// Runs something in a thread inside. Sockets opened, processes started
    /// and threads begun by it are inside too.
    ///
    /// # Panics
    /// When there are no threads to be had, and in the thread when the
    /// namespace cannot be entered.
    pub fn run<T: Send + 'static>(
        &self,
        inside: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let namespace = Arc::clone(&self.namespace);
        std::thread::spawn(move || {
            setns(&*namespace, CloneFlags::CLONE_NEWNET).expect("enter a namespace of our own");
            inside()
        })
    }

    /// [`Self::run`], and waits for what it returns.
    ///
    /// # Panics
    /// When `inside` does.
    pub fn within<T: Send + 'static>(&self, inside: impl FnOnce() -> T + Send + 'static) -> T {
        self.run(inside)
            .join()
            .expect("what runs inside does not panic")
    }

    /// A socket for datagrams inside, with the address of this class and this
    /// port; 0 is one of the kernel's choice.
    ///
    /// # Errors
    /// When it cannot be bound.
    pub fn datagrams(&self, class: Class, port: u16) -> io::Result<UdpSocket> {
        let address = (self.address(class), port);
        self.within(move || UdpSocket::bind(address))
            .doing(format_args!("bind to {}", address.0))
    }

    /// Runs ip(8) inside, with these words, and returns what it printed.
    ///
    /// # Errors
    /// What it said when it failed.
    pub fn ip(&self, words: &str) -> io::Result<String> {
        let words = words.to_owned();
        self.within(move || {
            let output = Command::new("ip").args(words.split(' ')).output();
            let output = output.doing(format_args!(
                "start `ip {words}` (is the Debian package iproute2 installed?)"
            ))?;
            if output.status.success() {
                return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
            }
            let stderr = String::from_utf8_lossy(&output.stderr);
            Err(io::Error::other(format!("ip {words}: {}", stderr.trim())))
        })
    }

    /// Joins two hosts by a wire (veth) with a device of this name in each, both up. It carries
    /// once both [are up](Self::is_up).
    ///
    /// # Errors
    /// As [`Self::ip`].
    pub(crate) fn join(&self, other: &Self, device: &str) -> io::Result<()> {
        // ip(8) takes a path for the name of a namespace, and here it has no other one.
        let process = std::process::id();
        let namespace = other.namespace.as_raw_fd();
        self.ip(&format!(
            "link add {device} type veth peer name {device} netns /proc/{process}/fd/{namespace}"
        ))?;
        for host in [self, other] {
            host.ip(&format!("link set {device} up"))?;
        }
        Ok(())
    }

    /// Whether a device carries. The kernel tells devices about once a second, all of them
    /// together, and until then drops what they are to send.
    ///
    /// # Errors
    /// As [`Self::ip`].
    pub(crate) fn is_up(&self, device: &str) -> io::Result<bool> {
        let shown = self.ip(&format!("-o link show {device}"))?;
        Ok(shown.contains("state UP"))
    }

    /// Writes a setting below `/proc/sys/net` inside.
    ///
    /// # Errors
    /// When there is no such setting, or not such a value.
    pub fn sysctl(&self, name: &'static str, value: &str) -> io::Result<()> {
        let value = value.to_owned();
        self.within(move || {
            let path = format!("/proc/sys/net/{name}");
            let written = std::fs::write(&path, &value);
            written.doing(format_args!("write {value} to {path}"))
        })
    }
}

#[cfg(test)]
impl Host {
    /// A host for a test; `None` without the rights for it, said past the test
    /// runner's capture.
    pub(crate) fn for_test(index: u8) -> Option<Self> {
        match Self::new(index) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                skipped("needs root");
                None
            }
            made => Some(made.expect("a namespace")),
        }
    }

    /// [`Self::join`], and waits until it carries.
    pub(crate) fn wire(&self, other: &Self, device: &str) {
        self.join(other, device).expect("make a wire");
        wait_until("the wire to come up", Duration::from_secs(30), || {
            let is_up = |host: &Self| host.is_up(device).expect("the interface is there");
            is_up(self) && is_up(other)
        });
    }
}
