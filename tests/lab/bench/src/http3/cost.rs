//! Processor time for one file over loopback, to memory: curl over HTTP/2, and `fairbat get` over
//! HTTP/1.1 and HTTP/3, from Caddy and from `fairbat serve`; and a client of bare QUIC.
//!
//! The commands take turns; each round begins with another one; the first round warms up and does
//! not count.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use super::bare;
use super::record::{Cost, Series, Used};
use crate::machine::{MEMORY, RESERVE, need_memory};
use crate::measure::{in_turns, measure_time};
use fairbat_tests::bin::{Running, fairbat_binary};
use fairbat_tests::caddy::Caddy;
use fairbat_tests::content::Content;
use fairbat_tests::cpu::cpu_s;
use fairbat_tests::expect::assert_content;
use fairbat_tests::served::{serving, settle, started};
use fairbat_tests::tls::Identity;

/// Name of the file that is served.
const NAME: &str = "file";

/// Name of the file that is fetched.
const TARGET: &str = "out";

/// Who fetches the file, how, and from whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Client {
    Curl,
    Tcp,
    Ordinary,
    Yielding,
    OfServe,
    Bare,
}

impl Client {
    const ALL: [Self; 6] = [
        Self::Curl,
        Self::Tcp,
        Self::Bare,
        Self::Ordinary,
        Self::Yielding,
        Self::OfServe,
    ];

    /// As one would type it.
    fn typed(self) -> &'static str {
        match self {
            Self::Curl => "curl -q -sS -f --http2 --cacert AUTHORITY -o out URL",
            Self::Tcp => {
                "fairbat get -q --alone --http3 never --weight 1 --cacert AUTHORITY -o out URL"
            }
            Self::Ordinary => {
                "fairbat get -q --alone --http3 only --weight 1 --cacert AUTHORITY -o out URL"
            }
            Self::Yielding | Self::OfServe => {
                "fairbat get -q --alone --http3 only --cacert AUTHORITY -o out URL"
            }
            Self::Bare => "bench bare-quic ADDRESS AUTHORITY file out",
        }
    }

    fn protocol(self) -> &'static str {
        match self {
            Self::Curl => "HTTP/2",
            Self::Tcp => "HTTP/1.1",
            Self::Ordinary | Self::Yielding | Self::OfServe => "HTTP/3",
            Self::Bare => "QUIC",
        }
    }

    fn server(self) -> &'static str {
        match self {
            Self::Curl | Self::Tcp | Self::Ordinary | Self::Yielding => "Caddy",
            Self::OfServe => "`fairbat serve`",
            Self::Bare => "quinn",
        }
    }
}

/// Measures all commands with a file of so many bytes.
pub(super) fn run(bytes: u64, rounds: u32, seed: u64) -> Cost {
    need_memory(2 * bytes + RESERVE);
    let directory = || tempfile::tempdir_in(MEMORY).expect("a directory in memory");
    let (keys, site, work) = (directory(), directory(), directory());
    let content = Content::new(seed, bytes);
    let written = content.write_to(&site.path().join(NAME));
    written.expect("write the file to serve");
    settle();
    let identity = Identity::issue(keys.path(), &["localhost", "127.0.0.1"], 2099);
    let root = site.path().display();
    let directives = format!("root * {root}\nfile_server");
    let serving = serving(site.path(), &identity).args(["--listen", "127.0.0.1:0"]);
    let (serve, serve_url) = started(&serving);
    let place = Place {
        caddy: Caddy::start(keys.path(), &identity, &directives),
        bare: bare::serve(site.path(), &identity),
        serve,
        serve_url,
        identity: &identity,
        work: work.path(),
        content,
    };
    let has_curl = place.is_http2_spoken();
    let mut clients = Client::ALL.to_vec();
    clients.retain(|&client| client != Client::Curl || has_curl);
    Cost {
        bytes,
        rounds,
        has_curl,
        series: place.run(&clients, rounds),
    }
}

/// The servers, and where the file is fetched to.
struct Place<'a> {
    caddy: Caddy,
    serve: Running,
    serve_url: String,
    bare: SocketAddr,
    identity: &'a Identity,
    work: &'a Path,
    content: Content,
}

impl Place<'_> {
    /// Whether curl does it here: one that cannot takes HTTP/1.1, or refuses.
    fn is_http2_spoken(&self) -> bool {
        let output = Command::new("curl")
            .args(["-q", "-sS", "-f", "--http2", "--range", "0-0", "--cacert"])
            .arg(&self.identity.authority)
            .args(["-o", "/dev/null", "-w", "%{http_version}"])
            .arg(self.caddy.url(NAME))
            .output()
            .expect("start curl");
        output.stdout == b"2"
    }

    /// All clients in turn, round after round.
    fn run(&self, clients: &[Client], rounds: u32) -> Vec<Series> {
        let mut all: Vec<_> = clients
            .iter()
            .map(|client| Series {
                command: client.typed().to_owned(),
                server: client.server().to_owned(),
                protocol: client.protocol().to_owned(),
                samples: Vec::new(),
            })
            .collect();
        for (round, index) in in_turns(0..=rounds, clients.len()) {
            let used = self.fetch(clients[index], round == 0);
            eprintln!(
                "processor time, round {round} of {rounds}: {:?}: {:.2} s of the client in {:.2} s",
                clients[index],
                used.client_s(),
                used.elapsed_s
            );
            // Round 0 warms up.
            if round > 0 {
                all[index].samples.push(used);
            }
        }
        all
    }

    /// One run. Its file is checked and removed.
    fn fetch(&self, client: Client, is_warm_up: bool) -> Used {
        let url = match client {
            Client::OfServe => format!("{}{NAME}", self.serve_url),
            _ => self.caddy.url(NAME),
        };
        let typed = client
            .typed()
            .replace("AUTHORITY", &self.identity.authority.display().to_string())
            .replace("ADDRESS", &self.bare.to_string())
            .replace("URL", &url);
        let mut args: Vec<_> = typed.split(' ').map(str::to_owned).collect();
        match client {
            Client::Curl => {}
            Client::Bare => {
                let own = std::env::current_exe().expect("our own program");
                args[0] = own.display().to_string();
            }
            _ => args[0] = fairbat_binary().display().to_string(),
        }
        let served = || cpu_s(self.serve.id()).expect("the server runs");
        let before = served();
        let sample = measure_time(&args, self.work, 0);
        let server_s = served() - before;
        let target = self.work.join(TARGET);
        if is_warm_up {
            assert_content(&target, &self.content);
        } else {
            let length = fs::metadata(&target).map(|meta| meta.len());
            assert_eq!(length.ok(), Some(self.content.len()), "{client:?}");
        }
        fs::remove_file(&target).expect("remove the fetched file");
        Used {
            elapsed_s: sample.elapsed_s,
            user_s: sample.user_s,
            system_s: sample.system_s,
            server_s: (client == Client::OfServe).then_some(server_s),
        }
    }
}
