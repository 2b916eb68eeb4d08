//! Real NATS servers of the test's own, with JetStream: each has its own directory, ports and
//! process. Some of them can be a cluster.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::poll::wait_until;
use crate::port::Port;

/// How long it may take to start.
const START: Duration = Duration::from_secs(20);

/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(2);

/// The file of what the flags do not say.
const CONFIGURATION: &str = "nats.conf";

/// A running server; killed when dropped.
pub struct Nats {
    directory: TempDir,
    port: Port,
    cluster: Option<Cluster>,
    /// What it is told, beside where it is.
    flags: Vec<String>,
    child: Child,
}

/// The other ports of one that is in a cluster.
struct Cluster {
    /// Where the others reach it.
    _route: Port,
    /// Where it tells of itself.
    monitor: Port,
}

impl Nats {
    /// Starts it; panics, saying what to install, when there is none.
    #[must_use]
    pub fn start() -> Self {
        Self::start_at(Ipv4Addr::LOCALHOST.into())
    }

    /// The same at this address.
    #[must_use]
    pub fn start_at(address: IpAddr) -> Self {
        let mut server = Self::spawn(address, None, Vec::new(), "");
        server.await_start();
        server
    }

    /// The same with this in its configuration.
    #[must_use]
    pub fn start_with(configuration: &str) -> Self {
        let address = Ipv4Addr::LOCALHOST.into();
        let mut server = Self::spawn(address, None, Vec::new(), configuration);
        server.await_start();
        server
    }

    /// The same for clients that may not publish what matches these subjects.
    #[must_use]
    pub fn start_without_rights(denied: &[&str]) -> Self {
        Self::start_with(&format!(
            "no_auth_user: anybody\n\
             authorization {{ users: [ {{ user: anybody, password: none, \
             permissions: {{ publish: {{ deny: {denied:?} }} }} }} ] }}\n"
        ))
    }

    /// Starts a cluster of so many at this address, and waits until JetStream has a leader there.
    #[must_use]
    pub fn start_cluster(address: IpAddr, size: usize) -> Vec<Self> {
        let routes: Vec<_> = (0..size).map(|_| Port::own(address)).collect();
        let url = |route: &Port| format!("nats://{}", route.address());
        let urls: Vec<_> = routes.iter().map(url).collect();
        let mut servers: Vec<_> = routes
            .into_iter()
            .enumerate()
            .map(|(index, route)| {
                let monitor = Port::own(address);
                let flags = [
                    ("--server_name", format!("n{index}")),
                    ("--cluster_name", "cluster".to_owned()),
                    ("--cluster", urls[index].clone()),
                    ("--routes", urls.join(",")),
                    ("--http_port", monitor.address().port().to_string()),
                ];
                let flags = flags.map(|(flag, value)| [flag.to_owned(), value]);
                let cluster = Cluster {
                    _route: route,
                    monitor,
                };
                Self::spawn(address, Some(cluster), flags.concat(), "")
            })
            .collect();
        for server in &mut servers {
            server.await_start();
            wait_until("JetStream to have a leader", START, || {
                let told = server.monitor("jsz");
                told.is_some_and(|told| told["meta_cluster"]["leader"].is_string())
            });
        }
        servers
    }

    fn spawn(
        address: IpAddr,
        cluster: Option<Cluster>,
        flags: Vec<String>,
        configuration: &str,
    ) -> Self {
        let directory = tempfile::tempdir().expect("a temp dir");
        fs::write(directory.path().join(CONFIGURATION), configuration).expect("a configuration");
        let port = Port::own(address);
        let child = spawn(directory.path(), port.address(), &flags);
        Self {
            directory,
            port,
            cluster,
            flags,
            child,
        }
    }

    /// Ends it at once, with all its connections.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again where it was before [`Self::kill`], with what it has stored.
    pub fn start_again(&mut self) {
        self.child = spawn(self.directory.path(), self.port.address(), &self.flags);
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
        format!("nats://{}", self.port.address())
    }

    /// The number of its process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What a server of a cluster tells of itself, for example under `connz`.
    #[must_use]
    pub fn monitor(&self, path: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(self.cluster.as_ref()?.monitor.address()).ok()?;
        stream.set_read_timeout(Some(ANSWER)).ok()?;
        let request = format!("GET /{path} HTTP/1.0\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (_, body) = answer.split_once("\r\n\r\n")?;
        serde_json::from_str(body).ok()
    }

    fn connect(&self) -> Option<BufReader<TcpStream>> {
        let stream = TcpStream::connect(self.port.address()).ok()?;
        stream.set_read_timeout(Some(ANSWER)).ok()?;
        let mut stream = BufReader::new(stream);
        let mut info = String::new();
        stream.read_line(&mut info).ok()?;
        info.contains("\"jetstream\":true").then_some(stream)
    }

    /// Publishes a message. An answer may be asked for: the subject and that of the answer, with
    /// a blank between.
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
            "CONNECT {{\"verbose\":false}}\r\nSUB _INBOX.test 1\r\n\
             PUB {subject} _INBOX.test 0\r\n\r\n"
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

/// The command that starts a server.
#[must_use]
pub fn program() -> &'static str {
    // Debian keeps it in /usr/sbin, which is not in every user's PATH.
    ["/usr/sbin/nats-server", "/usr/local/sbin/nats-server"]
        .into_iter()
        .find(|path| Path::new(path).exists())
        .unwrap_or("nats-server")
}

fn spawn(directory: &Path, address: SocketAddr, flags: &[String]) -> Child {
    Command::new(program())
        .args(["--addr", &address.ip().to_string()])
        .args(["--port", &address.port().to_string()])
        .arg("--config")
        .arg(directory.join(CONFIGURATION))
        .args(["--jetstream", "--store_dir"])
        .arg(directory)
        .arg("--log")
        .arg(directory.join("log"))
        .args(flags)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("start nats-server: install the package nats-server, see .ci/deps")
}
