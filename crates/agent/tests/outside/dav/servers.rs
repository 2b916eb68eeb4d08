//! Real servers of a test's own, each with a directory, a port and a process; and a
//! relay that breaks a connection off.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fairbat_agent::config::credentials::{Origin, SecretText, Spec, StoreCredentials, Wanted};
use fairbat_agent::config::{Http, StoreConfig};
use fairbat_tests::netns::skipped;
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::poll::wait_until;
use fairbat_tests::secret::write_secret;
use tempfile::TempDir;

/// What the servers let in that ask.
pub(crate) const USER: &str = "me";
pub(crate) const SECRET: &str = "pass-4711:word";

/// A store, and the credentials for it.
pub(crate) type StoreAccess = (StoreConfig, StoreCredentials);

/// A server; ended when dropped.
pub(crate) struct Server {
    address: SocketAddr,
    credentials: StoreCredentials,
    store: fn(Http) -> StoreConfig,
    files: PathBuf,
    _process: Process,
}

enum Process {
    Own(
        Child,
        #[expect(dead_code, reason = "removed with it")] TempDir,
    ),
    Nginx(#[expect(dead_code, reason = "ended with it")] Box<Nginx>),
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Self::Own(child, _) = self {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Server {
    /// `rclone serve webdav`, with a password. Where there is none, says so.
    pub(crate) fn rclone() -> Option<Self> {
        Self::rclone_in(None)
    }

    /// The same with this directory.
    pub(crate) fn rclone_in(files: Option<&Path>) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let files = files.unwrap_or(directory.path()).to_owned();
        let address = free();
        let mut command = Command::new("rclone");
        command
            .args(["serve", "webdav", "--addr", &address.to_string()])
            .args(["--user", USER, "--pass", SECRET])
            // What a test does behind its back is to be seen at once.
            .args(["--dir-cache-time", "0s"])
            .args(["--config", "/dev/null"])
            .arg(&files);
        let credentials = StoreCredentials::Password {
            user: USER.to_owned(),
            password: SecretText::new(SECRET.to_owned()),
        };
        Self::start(
            command,
            address,
            credentials,
            StoreConfig::Webdav,
            files,
            directory,
        )
    }

    /// `fairbat serve --writable`, with a token. Where it has not been built, says
    /// so.
    pub(crate) fn fairbat() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let files = directory.path().join("files");
        std::fs::create_dir(&files).unwrap();
        let token = directory.path().join("token");
        write_secret(&token, "token-4711");
        let address = free();
        let binary = Path::new(env!("CARGO_BIN_EXE_fairbat-agent")).with_file_name("fairbat");
        let mut command = Command::new(binary);
        command
            .arg("serve")
            .arg(&files)
            .args(["--writable", "--listen", &address.to_string()])
            .arg("--token-file")
            .arg(&token);
        let credentials = StoreCredentials::Token(SecretText::new("token-4711".to_owned()));
        Self::start(
            command,
            address,
            credentials,
            StoreConfig::Fairbat,
            files,
            directory,
        )
    }

    /// nginx with its own module for WebDAV, which knows no PROPFIND.
    pub(crate) fn nginx() -> Option<Self> {
        if !Path::new("/usr/sbin/nginx").exists() {
            skipped("nginx is not installed");
            return None;
        }
        let nginx = Nginx::start(&Config {
            directives: "client_max_body_size 0; dav_methods PUT DELETE MKCOL MOVE;".to_owned(),
            ..Config::default()
        });
        let url: url::Url = nginx.url("").parse().unwrap();
        Some(Self {
            address: url.socket_addrs(|| None).unwrap()[0],
            credentials: StoreCredentials::Anonymous,
            store: StoreConfig::Webdav,
            files: nginx.path(""),
            _process: Process::Nginx(Box::new(nginx)),
        })
    }

    fn start(
        mut command: Command,
        address: SocketAddr,
        credentials: StoreCredentials,
        store: fn(Http) -> StoreConfig,
        files: PathBuf,
        directory: TempDir,
    ) -> Option<Self> {
        command.stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let program = command.get_program().to_owned();
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                skipped(&format!("{}: {error}", program.display()));
                return None;
            }
        };
        wait_until("the server to listen", Duration::from_secs(20), || {
            let ended = child.try_wait().unwrap();
            assert_eq!(ended, None, "{}", program.display());
            TcpStream::connect(address).is_ok()
        });
        Some(Self {
            address,
            credentials,
            store,
            files,
            _process: Process::Own(child, directory),
        })
    }

    /// Where its files are.
    pub(crate) fn files(&self) -> &Path {
        &self.files
    }

    pub(crate) fn settings(&self) -> StoreAccess {
        self.settings_at(self.address, self.credentials.clone())
    }

    /// The way to it through a relay.
    pub(crate) fn settings_by(&self, relay: &Relay) -> StoreAccess {
        self.settings_at(relay.address, self.credentials.clone())
    }

    pub(crate) fn settings_as(&self, credentials: StoreCredentials) -> StoreAccess {
        self.settings_at(self.address, credentials)
    }

    fn settings_at(&self, address: SocketAddr, credentials: StoreCredentials) -> StoreAccess {
        let http = Http {
            url: format!("http://{address}").parse().unwrap(),
            credentials: Spec {
                wanted: Wanted::Login,
                origin: Origin::Environment,
            },
            cacert: None,
        };
        ((self.store)(http), credentials)
    }

    /// Files that it has aside.
    pub(crate) fn unfinished(&self) -> usize {
        let directory = match self.settings().0 {
            StoreConfig::Fairbat(_) => ".fairbat-upload",
            _ => ".fairbat/unfinished",
        };
        std::fs::read_dir(self.files.join(directory)).map_or(0, Iterator::count)
    }
}

fn free() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

/// Passes connections on to a server, but the first one that sends more than so
/// many bytes it breaks off there.
pub(crate) struct Relay {
    address: SocketAddr,
    has_cut: Arc<AtomicBool>,
}

impl Relay {
    pub(crate) fn cutting(server: &Server, after: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (to, has_cut) = (server.address, Arc::new(AtomicBool::new(false)));
        let cut = Arc::clone(&has_cut);
        // It lives as long as the test: nothing else ends it.
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), TcpStream::connect(to).unwrap());
                let back = (server.try_clone().unwrap(), client.try_clone().unwrap());
                std::thread::spawn(move || pass(back.0, back.1, u64::MAX, None));
                let cut = Arc::clone(&cut);
                std::thread::spawn(move || pass(client, server, after, Some(&cut)));
            }
        });
        Self { address, has_cut }
    }

    pub(crate) fn has_cut(&self) -> bool {
        self.has_cut.load(Ordering::SeqCst)
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, most: u64, cut: Option<&AtomicBool>) {
    let (mut buffer, mut passed) = (vec![0; 64 * 1024], 0);
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
        passed += read as u64;
        if passed > most && cut.is_some_and(|cut| !cut.swap(true, Ordering::SeqCst)) {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
