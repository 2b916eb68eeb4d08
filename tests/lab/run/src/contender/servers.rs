//! The web server that has the files.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use std::{fs, io};

use fairbat_tests::bin::{fairbat_binary, s3_server_binary};
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::tls::Identity;
use serde::Deserialize;
use url::Url;

use crate::contender::lever_watch::{LOOK, LeverWatch, Port, Watched};
use crate::contender::process::Program;
use crate::contender::served::{BUCKET, FILE};
use crate::contender::site::Site;
use crate::contender::{Contender, ContenderError};
use crate::host::{Class, Host};
use crate::samples::BackgroundRecord;

/// Name of the file that says what there is to fetch, when it is more than one.
const LIST: &str = "list";

/// A web server that has the files.
pub(crate) struct Origin {
    server: Server,
    /// Where it has them; ends with a slash.
    base: String,
}

/// Which one; ends when it is dropped.
enum Server {
    Nginx {
        nginx: Nginx,
        /// For a rival, who is there by its congestion control only.
        watch: Option<LeverWatch>,
    },
    Serve {
        /// None over HTTP/3, where the program has its congestion control itself.
        watch: Option<LeverWatch>,
        _serve: Serve,
    },
}

impl Origin {
    /// Starts the server that this contender fetches from.
    pub(crate) fn start(site: &Site, contender: Contender) -> Result<Self, ContenderError> {
        let origin = match contender {
            Contender::FairbatServed => Self::serve(site),
            Contender::Http3(_) => Self::serve_http3(site),
            _ => Self::nginx(site, contender),
        };
        origin.map_err(ContenderError::cannot("start the web server"))
    }

    fn nginx(site: &Site, contender: Contender) -> io::Result<Self> {
        let directives = if contender.opens_for_each_job() {
            // The one that asks how long it is, and the one that asks for it.
            "keepalive_requests 2;".to_owned()
        } else if matches!(contender, Contender::Other(..)) {
            // pip fetches what looks like a package only.
            format!("location ~ \\.whl$ {{ try_files /{FILE} =404; }}")
        } else {
            String::new()
        };
        let config = Config {
            directives,
            address: site.server_address(),
            limit_rate: site.background.server_kb_s.map(|rate| (rate * 1e3) as u64),
            ..Config::default()
        };
        let nginx = site.server.run(move || Nginx::start(&config)).join();
        let nginx =
            nginx.map_err(|_| io::Error::other("nginx did not start; see standard error"))?;
        for served in &site.served {
            symlink(site.origin.join(&served.name), nginx.path(&served.name))?;
        }
        let base = nginx.url("");
        let watch = match contender {
            Contender::Rival(_) => Some(watch(site, &base)?),
            _ => None,
        };
        Ok(Self {
            base,
            server: Server::Nginx { nginx, watch },
        })
    }

    /// Has it serve another file of that directory, too.
    pub(crate) fn add(&self, site: &Site, name: &str) -> io::Result<()> {
        match &self.server {
            Server::Nginx { nginx, .. } => symlink(site.origin.join(name), nginx.path(name)),
            Server::Serve { .. } => Err(io::Error::other("only nginx is given other files")),
        }
    }

    fn serve(site: &Site) -> io::Result<Self> {
        let start = Duration::from_secs_f64(site.background.start_s);
        let address = site.server_address();
        let serve = Serve::start(
            &site.server,
            address,
            &site.work,
            "fairbat-serve",
            &site.origin,
            &[],
        )?;
        Ok(Self {
            base: serve.url().to_owned(),
            server: Server::Serve {
                watch: Some(serve.watch(start.saturating_sub(site.clock.now()))?),
                _serve: serve,
            },
        })
    }

    fn serve_http3(site: &Site) -> io::Result<Self> {
        let address = site.server_address();
        let identity = Identity::issue(&site.work, &[&address.to_string()], CERTIFIED_UNTIL);
        let words = [
            "--http3".as_ref(),
            "--tls-cert".as_ref(),
            identity.certificate.as_os_str(),
            "--tls-key".as_ref(),
            identity.key.as_os_str(),
        ];
        let (work, origin) = (&site.work, &site.origin);
        let serve = Serve::start(&site.server, address, work, "fairbat-serve", origin, &words)?;
        Ok(Self {
            base: serve.url().to_owned(),
            server: Server::Serve {
                watch: None,
                _serve: serve,
            },
        })
    }

    /// Ends the server when this download is over, and notes in its record what
    /// the server was to do and whether it did.
    pub(crate) fn finish(self, record: &mut BackgroundRecord) {
        match self.server {
            Server::Nginx {
                watch: Some(watch), ..
            }
            | Server::Serve {
                watch: Some(watch), ..
            } => watch.finish(record),
            Server::Nginx { .. } | Server::Serve { .. } => {}
        }
    }

    /// Where the file is, when it is the only one.
    pub(crate) fn url(&self) -> String {
        self.url_of(FILE)
    }

    pub(crate) fn url_of(&self, name: &str) -> String {
        format!("{}{name}", self.base)
    }

    /// The words that tell a download tool what there is to fetch: a URL, or
    /// where `fairbat` finds a list of them, which is written now.
    pub(crate) fn source(
        &self,
        site: &Site,
        contender: Contender,
    ) -> Result<Vec<String>, ContenderError> {
        if site.background.transfer.is_empty() {
            return Ok(vec![self.url()]);
        }
        let lines = site
            .served
            .iter()
            .map(|served| served.line(&self.url_of(&served.name), contender.has_deadline()));
        let path = site.work.join(LIST);
        fs::write(&path, lines.collect::<String>()).map_err(ContenderError::cannot(
            "write the list of what there is to fetch",
        ))?;
        Ok(vec!["-i".to_owned(), path.display().to_string()])
    }
}

/// Watches whether what the nginx at this URL sends has the congestion control that
/// the route to its client asks for: the kernel would take another one silently.
fn watch(site: &Site, base: &str) -> io::Result<LeverWatch> {
    let url = Url::parse(base).map_err(io::Error::other)?;
    let port = url
        .port()
        .ok_or_else(|| io::Error::other(format!("no port in {base}")))?;
    let start = Duration::from_secs_f64(site.background.start_s);
    Ok(LeverWatch::of(
        "nginx",
        &site.server,
        Port::Own(port),
        site.background.congestion_control.clone(),
        start.saturating_sub(site.clock.now()),
    ))
}

/// The last year of its certificate.
const CERTIFIED_UNTIL: i32 = 2090;

/// How long it may take to listen.
const GRACE: Duration = Duration::from_secs(5);

/// How long it may take to vouch for a file, and how often it is asked.
const SETTLING: Duration = Duration::from_secs(30);
const ASK: Duration = Duration::from_millis(100);

/// A server at work; ends when it is dropped.
pub(crate) struct Serve {
    _program: Program,
    listening: Listening,
    host: Host,
}

/// The event of this name of `fairbat serve --json`.
#[derive(Debug, Deserialize)]
struct Listening {
    address: SocketAddr,
    url: String,
    lever: String,
}

impl Serve {
    /// Starts it at this host and its address, for the files in `directory`, with these words
    /// besides. What it prints goes to files in `work`, which begin with `name`.
    pub(crate) fn start(
        host: &Host,
        address: IpAddr,
        work: &Path,
        name: &str,
        directory: &Path,
        words: &[&OsStr],
    ) -> io::Result<Self> {
        let listen = SocketAddr::new(address, 0).to_string();
        let mut command = Command::new(fairbat_binary());
        command
            .args(["serve", "--json", "--listen", &listen])
            .args(words)
            .arg(directory);
        let mut program = Program::start(host, work, name, command)?;
        let listening = program.tells(GRACE, |program| listening(&program.stdout()))?;
        Ok(Self {
            _program: program,
            listening,
            host: host.clone(),
        })
    }

    /// Where it has the files; ends with a slash.
    pub(crate) fn url(&self) -> &str {
        &self.listening.url
    }

    /// Watches whether a congestion control of ours holds back its connections,
    /// from the start of the transfer on, which is so far away, until its end.
    ///
    /// # Errors
    /// As [`LeverWatch::start`].
    pub(crate) fn watch(&self, start: Duration) -> io::Result<LeverWatch> {
        let watched = Watched {
            who: "fairbat serve",
            host: &self.host,
            port: Port::Own(self.listening.address.port()),
            lever: &self.listening.lever,
            every: LOOK,
        };
        LeverWatch::start(watched, start)
    }
}

/// What `fairbat serve` says first, once it has.
fn listening(said: &str) -> Option<Listening> {
    serde_json::from_str(said.lines().next()?).ok()
}

/// Waits until `fairbat serve` vouches for these files of `directory`, which
/// have just been made: until then they have no entity tag, and nobody would
/// fetch them in parts. One at a host of its own is asked, with its files in
/// `work`.
///
/// # Errors
/// Without the rights of root, when it cannot be started, and when it takes
/// too long.
pub(crate) fn settle<'a>(
    directory: &Path,
    names: impl Iterator<Item = &'a str>,
    work: &Path,
) -> io::Result<()> {
    let host = Host::new(0)?;
    let address = host.address(Class::Background).into();
    let name = "fairbat-serve-settling";
    let serve = Serve::start(&host, address, work, name, directory, &[])?;
    let mut waited = Duration::ZERO;
    for name in names {
        while !is_vouched_for(&serve, name)? {
            if waited > SETTLING {
                let said =
                    format!("fairbat serve does not vouch for {name}, long after its making");
                return Err(io::Error::other(said));
            }
            std::thread::sleep(ASK);
            waited += ASK;
        }
    }
    Ok(())
}

/// Whether a file of this name is served with an entity tag.
fn is_vouched_for(serve: &Serve, name: &str) -> io::Result<bool> {
    let (address, name) = (serve.listening.address, name.to_owned());
    let head = serve.host.within(move || head(address, &name))?;
    if !head.starts_with("HTTP/1.1 200 ") {
        let said = head.lines().next().unwrap_or("nothing").to_owned();
        return Err(io::Error::other(format!("fairbat serve answered {said}")));
    }
    Ok(head.to_ascii_lowercase().contains("\r\netag:"))
}

/// The head of a response.
fn head(address: SocketAddr, name: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(GRACE))?;
    let request = format!("HEAD /{name} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut head = String::new();
    stream.read_to_string(&mut head)?;
    Ok(head)
}

/// Who may write to it.
pub(crate) const ACCESS_KEY: &str = "lab-access";
/// By what.
pub(crate) const SECRET_KEY: &str = "lab-secret";

/// How long it may take to listen.
const STORE_GRACE: Duration = Duration::from_secs(5);

/// What it says before where it listens.
const ANNOUNCEMENT: &str = "http://";

/// A store at work; ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Store {
    _program: Program,
    address: SocketAddr,
}

impl Store {
    /// Starts it at the host that the data goes to.
    pub(crate) fn start(site: &Site) -> io::Result<Self> {
        fs::create_dir_all(site.download.join(BUCKET))?;
        let mut command = Command::new(s3_server_binary());
        command
            .arg(&site.download)
            .arg(format!("{}:0", site.client.address(Class::Background)))
            .args([ACCESS_KEY, SECRET_KEY]);
        let mut program = Program::start(&site.client, &site.work, "store", command)?;
        let address = program.tells(STORE_GRACE, |program| {
            let said = program.stdout();
            let (line, _) = said.split_once('\n')?;
            line.strip_prefix(ANNOUNCEMENT)?.parse().ok()
        })?;
        Ok(Self {
            _program: program,
            address,
        })
    }

    /// Its URL, without a path.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where it listens.
    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }
}

/// Bytes of the objects below this directory of a bucket.
pub(crate) fn bytes(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else {
        return 0;
    };
    let of = |entry: fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => bytes(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.filter_map(Result::ok).map(of).sum()
}
