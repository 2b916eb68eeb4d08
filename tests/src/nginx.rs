//! A real nginx of the test's own: its own directory, port and process.

use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use crate::content::Content;
use crate::front;
use crate::poll::wait_until;
use crate::port::Port;
use crate::tls::Identity;

/// 2020-01-01T00:00:00Z, the modification time of files unless a test says
/// otherwise: long ago, so that Last-Modified is a strong validator.
#[must_use]
pub fn long_ago() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_577_836_800)
}

/// How nginx is to behave; the default is its own default.
#[derive(Debug, Clone)]
pub struct Config {
    /// Rate of each response in byte/s.
    pub limit_rate: Option<u64>,
    /// Serve https with this certificate.
    pub tls: Option<Identity>,
    /// Compress whatever the client accepts compressed.
    pub gzip: bool,
    /// Send ETag.
    pub etag: bool,
    /// Send Last-Modified.
    pub last_modified: bool,
    /// Serve ranges.
    pub ranges: bool,
    /// Send chunked, without Content-Length, ETag and ranges.
    pub chunked: bool,
    /// Address to listen on.
    pub address: IpAddr,
    /// Network namespace to listen in.
    pub namespace: Option<String>,
    /// Take uploads (WebDAV's PUT) of at most so many bytes; 0 is no limit.
    pub upload_limit: Option<u64>,
    /// Further directives for the server.
    pub directives: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            limit_rate: None,
            tls: None,
            gzip: false,
            etag: true,
            last_modified: true,
            ranges: true,
            chunked: false,
            address: Ipv4Addr::LOCALHOST.into(),
            namespace: None,
            upload_limit: None,
            directives: String::new(),
        }
    }
}

impl Config {
    fn directives(&self) -> String {
        let mut text = String::new();
        let mut add = |condition: bool, line: &str| {
            if condition {
                text.push_str(line);
                text.push('\n');
            }
        };
        if let Some(rate) = self.limit_rate {
            // nginx keeps a rate by pausing after each piece it sends: small
            // pieces make it even.
            let piece = (rate / 200).clamp(4096, 1 << 20);
            add(
                true,
                &format!("limit_rate {rate}; sendfile_max_chunk {piece};"),
            );
        }
        if let Some(tls) = &self.tls {
            let (certificate, key) = (tls.certificate.display(), tls.key.display());
            add(true, &format!("ssl_certificate {certificate};"));
            add(true, &format!("ssl_certificate_key {key};"));
        }
        add(self.gzip, "gzip on; gzip_types *; gzip_min_length 1;");
        add(!self.etag, "etag off;");
        add(!self.last_modified, "add_header Last-Modified '';");
        add(!self.ranges, "max_ranges 0;");
        if let Some(limit) = self.upload_limit {
            add(
                true,
                &format!("client_max_body_size {limit}; dav_methods PUT;"),
            );
        }
        // Server-side includes may change the length, so nginx tells none.
        add(self.chunked, "ssi on; ssi_types *;");
        add(true, &self.directives);
        text
    }
}

/// A response as nginx logged it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// Status code.
    pub status: u16,
    /// Bytes of body that went to the socket.
    pub body_bytes: u64,
    /// The request's Range, `-` when there was none.
    pub range: String,
    /// The request's If-Range, `-` when there was none.
    pub if_range: String,
    /// The path asked for, without query.
    pub path: String,
}

/// A running nginx; stopped when dropped.
pub struct Nginx {
    directory: TempDir,
    namespace: Option<String>,
    child: Child,
    address: SocketAddr,
    _port: Option<Port>,
    scheme: &'static str,
}

impl Nginx {
    /// Starts nginx; panics, saying what to install, when there is none.
    #[must_use]
    pub fn start(config: &Config) -> Self {
        let directory = tempfile::tempdir().expect("a temp dir");
        for name in ["root", "temp"] {
            fs::create_dir(directory.path().join(name)).expect("create a directory");
        }
        // In a namespace of its own all are free.
        let own = config.namespace.is_none();
        let port = own.then(|| Port::own(config.address));
        let address = match &port {
            Some(port) => port.address(),
            None => SocketAddr::new(config.address, 8080),
        };
        let text = configuration(directory.path(), address, config);
        fs::write(directory.path().join("nginx.conf"), text).expect("write nginx.conf");
        let mut nginx = Self {
            child: spawn(config.namespace.as_deref(), directory.path()),
            directory,
            namespace: config.namespace.clone(),
            address,
            _port: port,
            scheme: if config.tls.is_some() {
                "https"
            } else {
                "http"
            },
        };
        nginx.await_start();
        nginx
    }

    fn await_start(&mut self) {
        wait_until("nginx to answer", Duration::from_secs(20), || {
            let ended = self.child.try_wait().expect("wait for nginx");
            assert!(ended.is_none(), "nginx has ended: {}", self.error_log());
            self.active_connections().is_some()
        });
    }

    /// Its process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends it at once, with all its connections.
    pub fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // What was killed leaves its sockets in the file system.
        let _ = fs::remove_file(self.directory.path().join("control"));
    }

    /// A server with this file under the name `file`, and a configuration that `change`
    /// has changed.
    pub fn with_file(file: &Content, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::default();
        change(&mut config);
        let nginx = Self::start(&config);
        nginx.put("file", file);
        nginx
    }

    /// Starts it again where it was before [`Self::stop`].
    pub fn start_again(&mut self) {
        self.child = spawn(self.namespace.as_deref(), self.directory.path());
        self.await_start();
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of a file, by address.
    #[must_use]
    pub fn url(&self, name: &str) -> String {
        match self.scheme {
            "http" => front::url(self.address, &format!("/{name}")),
            scheme => format!("{scheme}://{}/{name}", self.address),
        }
    }

    /// The URL of a file, by the name `localhost`.
    #[must_use]
    pub fn url_by_name(&self, name: &str) -> String {
        self.url(name).replace("127.0.0.1", "localhost")
    }

    /// Serves this content under `name`, modified [`long_ago`].
    pub fn put(&self, name: &str, content: &Content) {
        self.put_at(name, content, long_ago());
    }

    /// Serves this content under `name` with this modification time. A
    /// response under way goes on with the file it began with.
    pub fn put_at(&self, name: &str, content: &Content, modified: SystemTime) {
        let path = self.path(name);
        content.write_to(&path).expect("write a file to serve");
        fs::File::options()
            .write(true)
            .open(&path)
            .and_then(|file| file.set_modified(modified))
            .expect("set the modification time");
    }

    /// Where the file served under `name` lies.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("root").join(name)
    }

    /// Every response that has ended, in that order.
    #[must_use]
    pub fn accesses(&self) -> Vec<Access> {
        let path = self.directory.path().join("access.log");
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines().map(parse_access).collect()
    }

    /// Every response, after waiting until none is under way and all clients
    /// have closed their connections.
    #[must_use]
    pub fn settled_accesses(&self) -> Vec<Access> {
        wait_until("nginx to be idle", Duration::from_secs(60), || {
            // The connection that asks is one.
            self.active_connections() == Some(1)
        });
        self.accesses()
    }

    /// Sum of the body bytes of all responses, once all have ended.
    #[must_use]
    pub fn sent_bytes(&self) -> u64 {
        let accesses = self.settled_accesses();
        accesses.iter().map(|access| access.body_bytes).sum()
    }

    /// What nginx complained about.
    #[must_use]
    pub fn error_log(&self) -> String {
        fs::read_to_string(self.directory.path().join("error.log")).unwrap_or_default()
    }

    /// Open client connections, this question's own included, asked over a
    /// socket in the file system, which works across network namespaces.
    fn active_connections(&self) -> Option<usize> {
        let mut stream = UnixStream::connect(self.directory.path().join("control")).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        stream.write_all(b"GET /status HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (_, rest) = answer.split_once("Active connections: ")?;
        rest.split_whitespace().next()?.parse().ok()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(namespace: Option<&str>, directory: &Path) -> Child {
    command(namespace)
        .arg("-p")
        .arg(directory)
        .args(["-c", "nginx.conf", "-e", "error.log"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("start nginx: is the package `nginx` installed? `make test` does it")
}

fn command(namespace: Option<&str>) -> Command {
    // Debian keeps nginx in /usr/sbin, which is not in every user's PATH.
    let program = ["/usr/sbin/nginx", "/usr/local/sbin/nginx"]
        .into_iter()
        .find(|path| Path::new(path).exists())
        .unwrap_or("nginx");
    let Some(namespace) = namespace else {
        return Command::new(program);
    };
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace, program]);
    command
}

/// One process, so that ending it ends everything.
fn configuration(directory: &Path, address: SocketAddr, config: &Config) -> String {
    let control = directory.join("control");
    let tls = if config.tls.is_some() { " ssl" } else { "" };
    format!(
        "daemon off;
master_process off;
pid nginx.pid;
events {{ worker_connections 512; }}
http {{
    client_body_temp_path temp/body;
    proxy_temp_path temp/proxy;
    fastcgi_temp_path temp/fastcgi;
    uwsgi_temp_path temp/uwsgi;
    scgi_temp_path temp/scgi;
    default_type application/octet-stream;
    sendfile on;
    log_format test '$status $body_bytes_sent \"$http_range\" \"$http_if_range\" $uri';
    server {{
        listen unix:{control};
        access_log off;
        location = /status {{ stub_status; }}
    }}
    server {{
        listen {address}{tls};
        access_log access.log test;
        root root;
        {directives}
    }}
}}
",
        control = control.display(),
        directives = config.directives()
    )
}

fn parse_access(line: &str) -> Access {
    let fields: Vec<_> = line.splitn(3, ' ').collect();
    let quoted: Vec<_> = fields[2].splitn(5, '"').collect();
    // The value of a header may hold quotes (ETags do); nginx writes them \x22.
    let value = |index: usize| quoted[index].replace("\\x22", "\"");
    Access {
        status: fields[0].parse().expect("a status"),
        body_bytes: fields[1].parse().expect("a number of bytes"),
        range: value(1),
        if_range: value(3),
        path: quoted[4].trim_start().to_owned(),
    }
}
