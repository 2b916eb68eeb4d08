//! Connections to servers. All of them are held.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use dalbe::process::own_number;
use dalbe::receive_window::{LeverKind, WindowLever};
use dalbe::sender::SenderLeverKind;
use dalbe::socket::TcpSocket as HeldSocket;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional_with_sizes};
use tokio::net::{TcpSocket, TcpStream, lookup_host};
use tokio::time::timeout;

use super::access::is_private_to_machine;
use super::rule::ProxyRule;
use crate::clock::local_time;
use crate::error::{ErrorKind, TransferError};
use crate::hold::{GroupReport, HoldControl, HoldEvent, HoldPlan, HoldSettings, Holder, Scope};
use crate::http::host::without_brackets;

/// What a relay reads at once, bytes.
const BUFFER: usize = 64 * 1024;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpstreamError {
    /// The name has no address.
    #[error("{0} is not known: {1}")]
    Unknown(String, #[source] io::Error),
    /// The destination is for this machine only.
    #[error("{0} is an address of the proxy's own machine or link")]
    Private(IpAddr),
    /// It takes too long.
    #[error("{0} does not answer")]
    Silent(SocketAddr),
    /// It refuses, or there is no way to it.
    #[error("{0}: {1}")]
    Refused(SocketAddr, #[source] io::Error),
}

/// Makes connections, and holds them in a thread of its own until it is dropped.
#[derive(Debug)]
pub(crate) struct Upstream {
    /// A descriptor, and the number of its group.
    connects: mpsc::Sender<(i32, usize)>,
    connect_timeout: Duration,
    levers: (LeverKind, SenderLeverKind),
    rules: Arc<[ProxyRule]>,
    held: Arc<Mutex<HoldSnapshot>>,
}

/// What is held: first the connections that no rule is for, then those of each rule.
#[derive(Debug, Clone, Default)]
pub(crate) struct HoldSnapshot {
    pub(crate) groups: Vec<GroupReport>,
    pub(crate) plans: Vec<HoldPlan>,
    /// The last sample.
    pub(crate) control: Option<HoldControl>,
    /// Seconds in which connections yielded to other traffic.
    pub(crate) yielded_s: f64,
}

impl Upstream {
    /// Starts the thread.
    ///
    /// # Errors
    /// The settings allow nothing, or there is no thread.
    pub(crate) fn start(
        settings: HoldSettings,
        others: HoldPlan,
        rules: Vec<ProxyRule>,
        connect_timeout: Duration,
    ) -> Result<Self, TransferError> {
        let other =
            |error: &dyn std::fmt::Display| TransferError::new(ErrorKind::Other, error.to_string());
        let holder = Holder::new(Scope::Told, settings, others);
        let mut holder = holder.map_err(|error| other(&error))?;
        holder.expect_notices();
        let levers = holder.levers();
        let rules: Arc<[ProxyRule]> = rules.into();
        let held: Arc<Mutex<HoldSnapshot>> = Arc::default();
        let mut upkeep = Upkeep {
            others,
            rules: Arc::clone(&rules),
            held: Arc::clone(&held),
        };
        for _ in rules.iter() {
            holder.add_group(others);
        }
        upkeep.plan(&mut holder, None);
        let (connects, told) = mpsc::channel();
        let thread = thread::Builder::new().name("hold".to_owned());
        thread
            .spawn(move || hold(holder, &mut upkeep, &told))
            .map_err(|error| other(&error))?;
        Ok(Self {
            connects,
            connect_timeout,
            levers,
            rules,
            held,
        })
    }

    pub(crate) fn levers(&self) -> (LeverKind, SenderLeverKind) {
        self.levers
    }

    pub(crate) fn rules(&self) -> &[ProxyRule] {
        &self.rules
    }

    /// What is held, as of the last second.
    pub(crate) fn held(&self) -> HoldSnapshot {
        let held = self.held.lock();
        held.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Connects to this host, for a client of this address. Its addresses are tried one after
    /// the other.
    pub(crate) async fn dial(
        &self,
        host: &str,
        port: u16,
        client: IpAddr,
    ) -> Result<TcpStream, UpstreamError> {
        let host = without_brackets(host);
        let rule = self
            .rules
            .iter()
            .position(|it| it.matches(host, port, client));
        let group = rule.map_or(0, |rule| rule + 1);
        let unknown = |error| UpstreamError::Unknown(host.to_owned(), error);
        let addresses = lookup_host((host, port)).await.map_err(unknown)?;
        let none = io::Error::new(io::ErrorKind::NotFound, "it has no address");
        let mut failed = unknown(none);
        for address in addresses {
            let is_private = is_private_to_machine(address.ip());
            if is_private && !client.to_canonical().is_loopback() {
                failed = UpstreamError::Private(address.ip());
                continue;
            }
            match timeout(self.connect_timeout, self.connect(address, group)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => failed = UpstreamError::Refused(address, error),
                Err(_) => failed = UpstreamError::Silent(address),
            }
        }
        Err(failed)
    }

    async fn connect(&self, address: SocketAddr, group: usize) -> io::Result<TcpStream> {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // Without it, the connection is held less finely.
        if self.levers.0.holds_window()
            && let Ok(duplicate) = socket.as_fd().try_clone_to_owned()
            && let Err(error) = WindowLever::prepare(&HeldSocket::from_fd(duplicate))
        {
            tracing::debug!(%error, "the steps of the window are coarse");
        }
        // The thread lives as long as this.
        let _ = self.connects.send((socket.as_raw_fd(), group));
        let stream = socket.connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// What is done once a second.
struct Upkeep {
    others: HoldPlan,
    rules: Arc<[ProxyRule]>,
    held: Arc<Mutex<HoldSnapshot>>,
}

impl Upkeep {
    /// Brings the plans up to date, and tells what is held.
    fn plan(&mut self, holder: &mut Holder, control: Option<HoldControl>) {
        let now = local_time();
        let plans = self.rules.iter().map(|rule| rule.plan(&now, self.others));
        let plans: Vec<_> = std::iter::once(self.others).chain(plans).collect();
        for (group, plan) in plans.iter().enumerate() {
            holder.set_plan(group, *plan);
        }
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        *held = HoldSnapshot {
            groups: holder.groups().collect(),
            plans,
            control,
            yielded_s: holder.report().yielded_s,
        };
    }
}

/// Holds what is told until nothing more can be.
fn hold(mut holder: Holder, upkeep: &mut Upkeep, told: &mpsc::Receiver<(i32, usize)>) {
    loop {
        let next = holder.step();
        for event in holder.events() {
            match event.event {
                HoldEvent::Control(control) => upkeep.plan(&mut holder, Some(control)),
                HoldEvent::Forecast { late_s, zeta, rate } => tracing::warn!(
                    late_s,
                    zeta,
                    rate,
                    "what a rule says is due will probably be late"
                ),
                _ => {}
            }
        }
        match told.recv_timeout(next) {
            Ok((descriptor, group)) => holder.connects(own_number(), descriptor, group),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Passes on what comes from either end until both have ended.
pub(crate) async fn relay(
    client: &mut (impl AsyncRead + AsyncWrite + Unpin),
    server: &mut TcpStream,
) {
    if let Err(error) = copy_bidirectional_with_sizes(client, server, BUFFER, BUFFER).await {
        tracing::debug!(%error, "a connection broke");
    }
}
