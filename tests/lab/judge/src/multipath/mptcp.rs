//! Multipath TCP of the kernel (RFC 8684): a small server and client with sockets of it, and the
//! endpoints that its path manager opens subflows from (ip-mptcp(8)).
//!
//! The server sends a file over one connection, as HTTP does. The client connects over its first
//! path. Its path manager opens a subflow from each of its other addresses once the server has
//! answered, to the one address that the server has. The kernel's scheduler is the default one:
//! it takes the subflow that should be done with its own data first.

use std::fs;
use std::io;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::{Domain, Protocol, Socket, Type};

use crate::multipath::fetch::Source;
use lab_run::host::{Class, Host};
use lab_run::machine::Context as _;
use lab_run::scenario::MAX_PATHS;

/// How soon the server notices that it shall end, ms.
const LOOK_MS: u8 = 50;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 16;

/// What the server sends at once, bytes.
const PIECE: usize = 256 << 10;

/// A server of the files in a directory; ends when it is dropped.
#[derive(Debug)]
pub(crate) struct MptcpServer {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl MptcpServer {
    /// Starts it at the address that this host has for the background.
    ///
    /// # Errors
    /// When the kernel has no Multipath TCP.
    pub(crate) fn start(host: &Host, directory: PathBuf) -> io::Result<Self> {
        allow(host)?;
        let address = SocketAddr::from((host.address(Class::Background), 0));
        let listener = host.within(move || {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP))?;
            socket.bind(&address.into())?;
            socket.listen(BACKLOG)?;
            Ok::<_, io::Error>(socket)
        });
        let listener = listener.doing("listen for Multipath TCP (CONFIG_MPTCP)")?;
        let address = listener.local_addr()?.as_socket().expect("it is of IPv4");
        let over = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&over);
        let thread = host.run(move || serve(&listener, &directory, &stop));
        Ok(Self {
            address,
            over,
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MptcpServer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(listener: &Socket, directory: &Path, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        let mut polled = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
        if poll(&mut polled, PollTimeout::from(LOOK_MS)) != Ok(1) {
            continue;
        }
        if let Ok((socket, _)) = listener.accept() {
            let directory = directory.to_owned();
            // Its failure is the client's, which gets less than it asked for.
            std::thread::spawn(move || send(socket.into(), &directory));
        }
    }
}

/// Answers one request.
fn send(mut stream: TcpStream, directory: &Path) -> io::Result<()> {
    let mut request = BufReader::new(stream.try_clone()?);
    let mut first = String::new();
    request.read_line(&mut first)?;
    let mut line = String::new();
    while request.read_line(&mut line)? > 2 {
        line.clear();
    }
    let name = first.split(' ').nth(1).unwrap_or_default();
    let mut file = fs::File::open(directory.join(name.trim_start_matches('/')))?;
    let length = file.metadata()?.len();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    let mut buffer = vec![0; PIECE];
    let mut filled = head.len();
    buffer[..filled].copy_from_slice(head.as_bytes());
    loop {
        let read = file.read(&mut buffer[filled..])?;
        filled += read;
        if filled == 0 {
            return Ok(());
        }
        stream.write_all(&buffer[..filled])?;
        filled = 0;
    }
}

/// Has the client's kernel open a subflow from its address at each path but the first.
///
/// # Errors
/// When the kernel or ip(8) knows no Multipath TCP.
pub(crate) fn prepare_client(client: &Host, devices: &[String]) -> io::Result<()> {
    allow(client)?;
    for (path, device) in devices.iter().enumerate().skip(1) {
        let address = client.at_path(path).address(Class::Background);
        client.ip(&format!(
            "mptcp endpoint add {address} dev {device} subflow"
        ))?;
    }
    Ok(())
}

/// Allows as many subflows as there may be paths.
fn allow(host: &Host) -> io::Result<()> {
    host.sysctl("mptcp/enabled", "1")?;
    host.ip(&format!(
        "mptcp limits set subflows {MAX_PATHS} add_addr_accepted 0"
    ))?;
    Ok(())
}

/// Fetches a file. Nothing may stand still for longer than `patience`.
///
/// # Errors
/// When the connection fails, or ends before its time.
pub(crate) fn fetch(client: &Host, source: &Source, patience: Duration) -> io::Result<Vec<u8>> {
    let Source {
        server,
        path,
        length,
    } = source.clone();
    client.within(move || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP))?;
        socket.set_read_timeout(Some(patience))?;
        socket.connect_timeout(&server.into(), patience)?;
        let mut stream = TcpStream::from(socket);
        let request = format!("GET {path} HTTP/1.1\r\nHost: {server}\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        let mut reader = BufReader::with_capacity(PIECE, stream);
        let mut line = String::new();
        while reader.read_line(&mut line)? > 2 {
            line.clear();
        }
        let mut bytes = vec![0; length as usize];
        reader.read_exact(&mut bytes)?;
        Ok(bytes)
    })
}
