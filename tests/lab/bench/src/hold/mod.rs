//! What it costs to hold connections of others: curl under `fairbat run` beside curl alone, and
//! curl through `fairbat proxy` beside nginx as a forward proxy, from an nginx on the same machine
//! that sends 1 Gbit/s.
//!
//! Loopback counts as a network here (`--include-local`). The ways take turns; each round begins
//! with another one; the first round warms up and does not count. Everything is counted: who
//! reads differently makes others work differently.

pub mod record;

use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use self::record::{Cost, Record, Series};
use super::machine::{self, MEMORY, need_memory};
use super::measure::{in_turns, measure};
use fairbat_tests::bin::{Fairbat, Running, fairbat_binary};
use fairbat_tests::content::Content;
use fairbat_tests::cpu::cpu_s;
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::poll::wait_for;

/// What is measured.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    /// Size of the file, bytes.
    pub size: u64,
    /// Rounds that count.
    pub rounds: u32,
}

/// Some six minutes.
pub const FULL: Extent = Extent {
    size: 2_000_000_000,
    rounds: 3,
};

/// To see whether it works.
pub const QUICK: Extent = Extent {
    size: 125_000_000,
    rounds: 1,
};

/// What the server sends, byte/s.
const RATE: u64 = 125_000_000;

/// Determines the bytes of the file.
const SEED: u64 = 1;

/// How curl gets the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Alone,
    Run,
    Nginx,
    Proxy,
    Tunnel,
}

impl Way {
    const ALL: [Self; 5] = [
        Self::Alone,
        Self::Run,
        Self::Nginx,
        Self::Proxy,
        Self::Tunnel,
    ];

    /// As one would type it.
    fn typed(self) -> &'static str {
        match self {
            Self::Alone => "curl -q -sS -f -o /dev/null URL",
            Self::Run => "fairbat run --quiet --include-local -- curl -q -sS -f -o /dev/null URL",
            Self::Nginx => "curl -q -sS -f -o /dev/null -x http://NGINX URL",
            Self::Proxy => "curl -q -sS -f -o /dev/null -x http://PROXY URL",
            Self::Tunnel => "curl -q -sS -f -o /dev/null -p -x http://PROXY URL",
        }
    }
}

/// Measures everything, saying on standard error what is going on. `command` is
/// what the user typed.
///
/// # Panics
/// When there is too little free memory, or a tool fails.
#[must_use]
pub fn run(extent: &Extent, command: &str) -> Record {
    need_memory(2 * extent.size);
    let memory = tempfile::tempdir_in(MEMORY).expect("a directory in memory");
    let served = memory.path().join("served");
    let content = Content::new(SEED, extent.size);
    content.write_to(&served).expect("write the file to serve");
    let server = Nginx::start(&Config {
        limit_rate: Some(RATE),
        ..Config::default()
    });
    symlink(&served, server.path("file")).expect("serve it");
    let proxy = Fairbat::new(memory.path())
        .args(["proxy", "--json", "--include-local"])
        .args(["--listen", "127.0.0.1:0"])
        .timeout(Duration::from_secs(7200))
        .spawn();
    let address = wait_for("the proxy", Duration::from_secs(20), || {
        let events = proxy.events();
        events.first()?["address"].as_str().map(str::to_owned)
    });
    let place = Place {
        server,
        forward: Nginx::start(&Config {
            directives: "location / { proxy_pass http://$http_host$request_uri; \
                         proxy_max_temp_file_size 0; }"
                .to_owned(),
            ..Config::default()
        }),
        proxy,
        address,
        directory: memory.path(),
    };
    Record {
        command: command.to_owned(),
        seed: SEED,
        rounds: extent.rounds,
        machine: machine::describe(),
        bytes: extent.size,
        series: place.run(extent.rounds),
    }
}

/// The servers, and where curl runs.
struct Place<'a> {
    server: Nginx,
    forward: Nginx,
    proxy: Running,
    /// Where the proxy listens.
    address: String,
    directory: &'a Path,
}

impl Place<'_> {
    fn run(&self, rounds: u32) -> Vec<Series> {
        let mut all = Way::ALL.map(|way| Series {
            command: way.typed().to_owned(),
            samples: Vec::new(),
        });
        for (round, index) in in_turns(0..=rounds, all.len()) {
            let cost = self.fetch(Way::ALL[index]);
            eprintln!(
                "round {round} of {rounds}: {:?}: {:.2} s of the processor",
                Way::ALL[index],
                cost.all_s()
            );
            if round > 0 {
                all[index].samples.push(cost);
            }
        }
        all.into()
    }

    fn fetch(&self, way: Way) -> Cost {
        let typed = way
            .typed()
            .replace("URL", &self.server.url("file"))
            .replace("NGINX", &self.forward.address().to_string())
            .replace("PROXY", &self.address);
        let mut args: Vec<_> = typed.split(' ').map(str::to_owned).collect();
        if way == Way::Run {
            args[0] = fairbat_binary().display().to_string();
        }
        let between = match way {
            Way::Alone | Way::Run => None,
            Way::Nginx => Some(self.forward.id()),
            Way::Proxy | Way::Tunnel => Some(self.proxy.id()),
        };
        let used = |process| cpu_s(process).expect("it runs");
        let used = || (used(self.server.id()), between.map_or(0.0, used));
        let (server, proxy) = used();
        let sample = measure(&args, self.directory, 0);
        let after = used();
        Cost {
            elapsed_s: sample.elapsed_s,
            client_s: sample.cpu_s(),
            server_s: after.0 - server,
            proxy_s: after.1 - proxy,
        }
    }
}
