//! Connections: the sender listens, the receiver connects, and what it gets is
//! counted. Knows nothing of what is sent when.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout_at};

use crate::host::{Class, Host};
use crate::machine::{Clock, Context as _};
use crate::traffic::stage::{instant, panicked};
use crate::traffic::{Meter, Span};

/// What is sent, as far as anybody looks at it.
pub(crate) static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// Connections that wait to be accepted. More than a burst of fetches ever
/// makes; the kernel allows 4096 (`net.core.somaxconn`).
const BACKLOG: i32 = 4096;

/// How much of a read comes with one call at most.
const READ: usize = 256 * 1024;

thread_local! {
    /// No test looks at the bytes that are read, so all connections of a thread can
    /// read into the same.
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; READ]);
}

/// How the sender's end of connections is set up.
#[derive(Debug, Clone)]
pub(crate) struct SenderOptions {
    /// `TCP_CONGESTION`.
    pub(crate) congestion_control: String,
    /// `TCP_NOTSENT_LOWAT`, bytes: more than this is not taken from the
    /// sender before it can be sent. The kernel's default is no limit.
    pub(crate) unsent: Option<u32>,
}

/// Listens on the host's foreground address, on a port of the kernel's choice.
/// Accepted connections inherit the options.
///
/// # Errors
/// When there is no such congestion control.
pub(crate) fn listen(
    host: &Host,
    options: SenderOptions,
) -> io::Result<(std::net::TcpListener, SocketAddr)> {
    let address = SocketAddr::from((host.address(Class::Foreground), 0));
    host.within(move || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        let name = &options.congestion_control;
        socket
            .set_tcp_congestion(name.as_bytes())
            .doing(format_args!("congestion control {name:?} is not available"))?;
        if let Some(unsent) = options.unsent {
            socket.set_tcp_notsent_lowat(unsent)?;
        }
        socket.set_tcp_nodelay(true)?;
        socket.set_nonblocking(true)?;
        socket
            .bind(&address.into())
            .doing(format_args!("bind to {address}"))?;
        socket.listen(BACKLOG)?;
        let listener = std::net::TcpListener::from(socket);
        let address = listener.local_addr()?;
        Ok((listener, address))
    })
}

/// Accepts connections until `span` is over and has each one answered. Later
/// ones are refused. Over when all answers are.
///
/// # Errors
/// Those of the socket, and when an answer panicked.
pub(crate) async fn serve<F>(
    listener: std::net::TcpListener,
    span: Span,
    clock: Clock,
    answer: impl Fn(TcpStream) -> F,
) -> io::Result<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::from_std(listener)?;
    let stop = instant(clock, span.stop);
    let mut answers = JoinSet::new();
    loop {
        tokio::select! {
            accepted = timeout_at(stop, listener.accept()) => {
                let Ok(accepted) = accepted else { break };
                let (stream, _) = accepted.doing("accept")?;
                answers.spawn(answer(stream));
            }
            Some(over) = answers.join_next() => over.map_err(|error| panicked(&error))?,
        }
    }
    drop(listener);
    while let Some(over) = answers.join_next().await {
        over.map_err(|error| panicked(&error))?;
    }
    Ok(())
}

/// Connects from this address.
///
/// # Errors
/// When nobody answers.
pub(crate) async fn connect(from: Ipv4Addr, to: SocketAddr) -> io::Result<TcpStream> {
    let connected = async {
        let socket = TcpSocket::new_v4()?;
        socket.bind((from, 0).into())?;
        socket.connect(to).await
    };
    connected
        .await
        .doing(format_args!("connect from {from} to {to}"))
}

/// Counts what is there to be read, once something is. 0 at the end.
pub(crate) async fn read(stream: &TcpStream, meter: &Meter) -> io::Result<usize> {
    loop {
        stream.readable().await?;
        match BUFFER.with_borrow_mut(|buffer| stream.try_read(buffer)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
            Ok(bytes) => {
                meter.count(bytes);
                return Ok(bytes);
            }
        }
    }
}

/// Connects at the start of `span` and counts what comes, until the sender
/// breaks off.
///
/// # Errors
/// When the connection fails before its time.
pub(crate) async fn receive(
    local: Ipv4Addr,
    server: SocketAddr,
    span: Span,
    clock: Clock,
    meter: Meter,
) -> io::Result<()> {
    sleep_until(instant(clock, span.start)).await;
    let receiving = async {
        let stream = connect(local, server).await?;
        while read(&stream, &meter).await? > 0 {}
        Err(io::Error::other(format!("{server} ended its connection")))
    };
    match receiving.await {
        // The sender stops by breaking off.
        Err(_) if clock.now() >= span.stop => Ok(()),
        other => other,
    }
}
