//! Connections to servers. All of them are held.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd as _;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use dalbe::process::own_number;
use dalbe::receive_window::LeverKind;
use dalbe::sender::SenderLeverKind;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional_with_sizes};
use tokio::net::{TcpSocket, TcpStream, lookup_host};
use tokio::time::timeout;

use super::access::is_private_to_machine;
use crate::error::{ErrorKind, TransferError};
use crate::hold::{HoldSettings, Holder, Scope};

/// What a relay reads at once, bytes.
const BUFFER: usize = 64 * 1024;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
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
    connects: mpsc::Sender<i32>,
    connect_timeout: Duration,
    levers: (LeverKind, SenderLeverKind),
}

impl Upstream {
    /// Starts the thread.
    ///
    /// # Errors
    /// The settings allow nothing, or there is no thread.
    pub(crate) fn start(
        settings: HoldSettings,
        connect_timeout: Duration,
    ) -> Result<Self, TransferError> {
        let other =
            |error: &dyn std::fmt::Display| TransferError::new(ErrorKind::Other, error.to_string());
        let mut holder = Holder::new(Scope::Told, settings).map_err(|error| other(&error))?;
        holder.expect_notices();
        let levers = holder.levers();
        let (connects, told) = mpsc::channel();
        let thread = thread::Builder::new().name("hold".to_owned());
        thread
            .spawn(move || hold(holder, &told))
            .map_err(|error| other(&error))?;
        Ok(Self {
            connects,
            connect_timeout,
            levers,
        })
    }

    pub(crate) fn levers(&self) -> (LeverKind, SenderLeverKind) {
        self.levers
    }

    /// Connects to this host, for a client of this address. Its addresses are tried one after
    /// the other.
    pub(crate) async fn dial(
        &self,
        host: &str,
        port: u16,
        client: IpAddr,
    ) -> Result<TcpStream, DialError> {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let unknown = |error| DialError::Unknown(host.to_owned(), error);
        let addresses = lookup_host((host, port)).await.map_err(unknown)?;
        let none = io::Error::new(io::ErrorKind::NotFound, "it has no address");
        let mut failed = unknown(none);
        for address in addresses {
            let is_private = is_private_to_machine(address.ip());
            if is_private && !client.to_canonical().is_loopback() {
                failed = DialError::Private(address.ip());
                continue;
            }
            match timeout(self.connect_timeout, self.connect(address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => failed = DialError::Refused(address, error),
                Err(_) => failed = DialError::Silent(address),
            }
        }
        Err(failed)
    }

    async fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // The thread lives as long as this.
        let _ = self.connects.send(socket.as_raw_fd());
        let stream = socket.connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// Holds what is told until nothing more can be.
fn hold(mut holder: Holder, told: &mpsc::Receiver<i32>) {
    loop {
        let next = holder.step();
        holder.events().clear();
        match told.recv_timeout(next) {
            Ok(descriptor) => holder.connects(own_number(), descriptor),
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
