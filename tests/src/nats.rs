//! A real NATS server of the test's own, with JetStream: its own directory, port and process.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::poll::wait_until;

/// How long it may take to start.
const START: Duration = Duration::from_secs(20);

/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(2);

/// A running server; killed when dropped.
pub struct Nats {
    directory: TempDir,
    address: SocketAddr,
    /// What it is told besides.
    arguments: Vec<String>,
    child: Child,
}

impl Nats {
    /// Starts it; panics, saying what to install, when there is none.
    #[must_use]
    pub fn start() -> Self {
        Self::start_at(Ipv4Addr::LOCALHOST.into(), Vec::new())
    }

    /// The same at this address, with these arguments besides.
    #[must_use]
    pub fn start_at(address: IpAddr, arguments: Vec<String>) -> Self {
        let directory = tempfile::tempdir().expect("a temp dir");
        let address = free_at(address);
        let child = spawn(directory.path(), address, &arguments);
        let mut server = Self {
            directory,
            address,
            arguments,
            child,
        };
        server.await_start();
        server
    }

    /// Ends it at once, with all its connections.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again where it was before [`Self::kill`], with what it has stored.
    pub fn start_again(&mut self) {
        self.child = spawn(self.directory.path(), self.address, &self.arguments);
        self.await_start();
    }

    fn await_start(&mut self) {
        wait_until("the NATS server", START, || {
            let ended = self.child.try_wait().expect("wait for the NATS server");
            assert!(ended.is_none(), "the NATS server has ended");
            self.connect().is_some()
        });
    }

    /// Its URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    fn connect(&self) -> Option<BufReader<TcpStream>> {
        let stream = TcpStream::connect(self.address).ok()?;
        stream.set_read_timeout(Some(ANSWER)).ok()?;
        let mut stream = BufReader::new(stream);
        let mut info = String::new();
        stream.read_line(&mut info).ok()?;
        info.contains("\"jetstream\":true").then_some(stream)
    }

    /// Publishes a message.
    pub fn publish(&self, subject: &str, message: &[u8]) {
        let mut stream = self.connect().expect("the NATS server");
        let head = format!(
            "CONNECT {{\"verbose\":false}}\r\nPUB {subject} {}\r\n",
            message.len()
        );
        let text = [head.as_bytes(), message, b"\r\nPING\r\n"].concat();
        stream.get_mut().write_all(&text).expect("publish");
        let mut answer = String::new();
        stream.read_line(&mut answer).expect("an answer");
        assert_eq!(answer, "PONG\r\n");
    }

    /// The first answer to an empty request, if there is one.
    #[must_use]
    pub fn request(&self, subject: &str) -> Option<String> {
        let mut stream = self.connect()?;
        let text = format!(
            "CONNECT {{\"verbose\":false}}\r\nSUB inbox.test 1\r\n\
             PUB {subject} inbox.test 0\r\n\r\n"
        );
        stream.get_mut().write_all(text.as_bytes()).ok()?;
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).ok()? == 0 {
                return None;
            }
            // MSG SUBJECT ID LENGTH
            if line.starts_with("MSG ") {
                let length = line.split_whitespace().last()?.parse().ok()?;
                let mut answer = vec![0; length];
                stream.read_exact(&mut answer).ok()?;
                return String::from_utf8(answer).ok();
            }
        }
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.kill();
    }
}

/// An address with a port that is free now.
fn free_at(address: IpAddr) -> SocketAddr {
    let free = TcpListener::bind((address, 0)).expect("a free port");
    free.local_addr().expect("an address")
}

/// What to start it by. Debian keeps it in /usr/sbin, which is not in every user's PATH.
#[must_use]
pub fn program() -> &'static str {
    ["/usr/sbin/nats-server", "/usr/local/sbin/nats-server"]
        .into_iter()
        .find(|path| Path::new(path).exists())
        .unwrap_or("nats-server")
}

fn spawn(directory: &Path, address: SocketAddr, arguments: &[String]) -> Child {
    Command::new(program())
        .args(["--addr", &address.ip().to_string()])
        .args(["--port", &address.port().to_string()])
        .args(["--jetstream", "--store_dir"])
        .arg(directory)
        .arg("--log")
        .arg(directory.join("log"))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("start nats-server: install the package nats-server, see .ci/deps")
}
