//! `fairbat serve`: what it gives to whom, and what it never gives.

mod changes;
mod clients;
mod crashes;
mod crowd;
mod edits;
mod listings;
mod names;
mod parts;
mod process;
mod upload_trouble;
mod uploads;
mod yields;

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fairbat_tests::bin::{Fairbat, Running};
use fairbat_tests::content::Content;
use fairbat_tests::outcome::Outcome;
use fairbat_tests::poll::{wait_for, wait_until};
use fairbat_tests::workdir::Workdir;
use socket2::{Domain, Socket, Type};

const FILE: Content = Content::new(400, 300_000);

/// How long anything here may take.
const SOON: Duration = Duration::from_secs(30);

/// A running server of a directory of its own.
struct Serving {
    directory: Workdir,
    running: Running,
    url: String,
    address: SocketAddr,
}

impl Serving {
    /// On a free port, with these flags.
    fn start(flags: &[&str]) -> Self {
        Self::run(|run| run.args(flags))
    }

    /// On a free port, as `change` has it.
    fn run(change: impl FnOnce(Fairbat) -> Fairbat) -> Self {
        Self::of(Path::new("."), change)
    }

    /// The same, of another directory.
    fn of(served: &Path, change: impl FnOnce(Fairbat) -> Fairbat) -> Self {
        let directory = Workdir::new();
        let run = Fairbat::new(directory.path())
            .args(["serve", "--json", "--listen", "127.0.0.1:0"])
            .arg(served)
            .timeout(Duration::from_secs(120));
        let running = change(run).spawn();
        let listening = wait_for("the server to listen", SOON, || {
            running.events().into_iter().next()
        });
        let text = |name: &str| listening[name].as_str().expect("a text").to_owned();
        assert_eq!(text("event"), "listening");
        Self {
            url: text("url"),
            address: text("address").parse().expect("an address"),
            directory,
            running,
        }
    }

    /// SIGKILL. The listening socket may outlive its connections by a moment, so this
    /// waits until the process has ended: only then is its port free again.
    fn kill(&mut self) {
        self.running.signal("KILL");
        wait_until("it to end", SOON, || !self.running.is_running());
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn url(&self, name: &str) -> String {
        format!("{}{name}", self.url)
    }

    /// Serves this content, and waits until it is old enough for an ETag.
    fn put(&self, name: &str, content: &Content) {
        self.put_fresh(name, content);
        wait_until("the file to settle", SOON, || {
            self.headers(&[&self.url(name)]).contains("\netag: ")
        });
    }

    /// Serves this content as of now.
    fn put_fresh(&self, name: &str, content: &Content) {
        content.write_to(&self.path(name)).expect("a file to serve");
    }

    /// The answer to a HEAD request, in lower case.
    fn headers(&self, args: &[&str]) -> String {
        let output = curl([&["-k", "-I"], args].concat());
        String::from_utf8_lossy(&output.stdout).to_lowercase()
    }

    /// The status of an answer.
    fn status(&self, args: &[&str]) -> u16 {
        let output = curl([&["-k", "-o", "/dev/null", "-w", "%{http_code}"], args].concat());
        let code = String::from_utf8_lossy(&output.stdout);
        code.parse().expect("a status")
    }

    /// What comes back for these very bytes, until the server closes.
    fn raw(&self, request: impl AsRef<[u8]>) -> String {
        let mut stream = self.connect();
        stream.write_all(request.as_ref()).expect("sent");
        let mut answer = Vec::new();
        // It may be reset behind the answer.
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn connect(&self) -> TcpStream {
        self.connect_as(Ipv4Addr::LOCALHOST)
    }

    /// As the peer with this address.
    fn connect_as(&self, peer: Ipv4Addr) -> TcpStream {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        // A bound port is missing to the servers of other tests.
        if peer != Ipv4Addr::LOCALHOST {
            let own = SocketAddr::from((peer, 0));
            socket.bind(&own.into()).expect("an own address");
        }
        socket.connect(&self.address.into()).expect("it listens");
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(SOON)).expect("a time");
        stream
    }

    /// Ends it as service managers do; what it said.
    fn end(mut self) -> Outcome {
        self.running.signal("TERM");
        let outcome = self.running.wait();
        outcome.expect_code(0);
        outcome
    }
}

/// An address that no other process listens on, so a server that is killed gets its
/// port again.
fn own_address() -> String {
    let [.., third, fourth] = std::process::id().to_be_bytes();
    format!("127.19.{third}.{fourth}:0")
}

fn curl<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Output {
    Command::new("curl")
        .args(["-sS", "--path-as-is", "--max-time", "60"])
        .args(args)
        .env_remove("http_proxy")
        .env_remove("https_proxy")
        .output()
        .expect("start curl: is the package `curl` installed?")
}

/// Sets this when it is dropped, also by a failure: who waits for it goes on.
struct OnDrop<'a>(&'a AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The value of a header in a block of them.
fn value<'a>(headers: &'a str, name: &str) -> &'a str {
    let start = format!("{name}: ");
    headers
        .lines()
        .find_map(|line| line.strip_prefix(&start))
        .unwrap_or_else(|| panic!("no {name} in {headers}"))
        .trim()
}
