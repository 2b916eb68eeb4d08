//! Programs of others that download, alone or held back.

use std::io;
use std::process::Command;

use fairbat_tests::bin::{agent_binary, fairbat_binary};

use crate::contender::agent::{head, write_config};
use crate::contender::error::{ContenderError, require as require_program};
use crate::contender::kind::{Downloader, Restraint};
use crate::contender::process::Over;
use crate::contender::restrained::{self, fixed_rate, shell, written_below};
use crate::contender::servers::Origin;
use crate::contender::site::Site;
use crate::contender::tools::{carry, parse, record, words};
use crate::contender::utp::{PYTHON, require_module};
use crate::samples::BackgroundRecord;

/// Processes of [`Downloader::Many`].
const MANY: u32 = 64;

/// What [`Downloader::Gets`] is called.
const GET: &str = "gets";

/// Processes of [`Downloader::Gets`], where the scenario has one transfer.
const GETS: u32 = 8;

/// Clients of [`Downloader::Clients`].
const CLIENTS: u32 = 20;

/// Where `fairbat proxy` listens at the machine of its clients.
pub const PROXY: &str = "127.0.0.1:3128";

/// The program that is run.
pub(crate) fn program(downloader: Downloader) -> &'static str {
    match downloader {
        // What is our own is built.
        Downloader::Curl | Downloader::Many | Downloader::Clients | Downloader::Gets => "curl",
        Downloader::Wget => "wget",
        Downloader::Aria2 => "aria2c",
        Downloader::Rclone => "rclone",
        Downloader::Pip => PYTHON,
    }
}

/// Looks for the programs.
///
/// # Errors
/// One is not installed.
pub(crate) fn require(downloader: Downloader, restraint: Restraint) -> Result<(), ContenderError> {
    require_program("nginx", "nginx")?;
    match downloader {
        Downloader::Aria2 => require_program(program(downloader), "aria2")?,
        Downloader::Pip => require_module("pip", "python3-pip")?,
        _ => require_program(program(downloader), program(downloader))?,
    }
    match restraint {
        Restraint::Trickle => require_program("trickle", "trickle"),
        Restraint::None
        | Restraint::Run
        | Restraint::Planned
        | Restraint::Limit
        | Restraint::Proxy
        | Restraint::Lane => Ok(()),
    }
}

/// Runs it until it is done or the run is over.
///
/// # Errors
/// It cannot be started.
pub(crate) fn run(
    site: &Site,
    origin: &Origin,
    downloader: Downloader,
    restraint: Restraint,
    over: &Over,
) -> Result<BackgroundRecord, String> {
    let mut program = download(downloader, site, origin);
    if restraint == Restraint::Limit {
        // Only curl is asked for it.
        program.extend(words(&["--limit-rate", &format!("{}k", fixed_rate(site))]));
    }
    if restraint == Restraint::Lane {
        program = in_lane(site, origin).map_err(|error| format!("configure the agent: {error}"))?;
    }
    if site.served.len() > 1 {
        let mut command = Command::new(&program[0]);
        command.args(&program[1..]);
        // All of them tell their events there.
        return carry(
            site,
            &site.client,
            GET,
            command,
            over,
            |program, started| record(parse(&program.stdout()), started),
        );
    }
    restrained::run(site, &site.client, program, restraint, over, |_| {
        written_below(&site.download).unwrap_or(0)
    })
}

/// The command.
fn download(downloader: Downloader, site: &Site, origin: &Origin) -> Vec<String> {
    let url = origin.url();
    let to = site.download.display().to_string();
    let file = site.download.join("file").display().to_string();
    match downloader {
        Downloader::Curl => words(&["curl", "-sS", "-f", "-o", &file, &url]),
        Downloader::Wget => words(&["wget", "-q", "-O", &file, &url]),
        Downloader::Aria2 => words(&[
            "aria2c",
            "-x16",
            "-s16",
            "-k1M",
            "--no-conf",
            "--file-allocation=none",
            "--console-log-level=error",
            "--show-console-readout=false",
            "--summary-interval=0",
            "--download-result=hide",
            "-d",
            &to,
            &url,
        ]),
        Downloader::Rclone => words(&[
            "rclone",
            "copyurl",
            "--config",
            "/dev/null",
            "--local-no-preallocate",
            &url,
            &file,
        ]),
        Downloader::Pip => {
            let package = origin.url_of("endless-1.0-py3-none-any.whl");
            let environment = format!("TMPDIR={to}");
            words(&[
                "env",
                &environment,
                PYTHON,
                "-m",
                "pip",
                "download",
                "-q",
                "--no-deps",
                "--no-cache-dir",
                "--disable-pip-version-check",
                "-d",
                &to,
                &package,
            ])
        }
        Downloader::Many => {
            let each = format!("curl -sS -f -o {to}/%% {url}");
            shell(&format!("seq {MANY} | xargs -P {MANY} -I %% {each}"))
        }
        Downloader::Gets => shell(&gets(site, origin, "--alone")),
        Downloader::Clients => {
            let proxy = fairbat_binary().display().to_string();
            let each =
                format!("curl -sS -f --interface 127.0.1.%% -x http://{PROXY} -o {to}/%% {url}");
            shell(&format!(
                "{proxy} proxy --listen {PROXY} 2>{to}/../proxy.log & \
                 until curl -sS -f -o {to}/../metrics http://{PROXY}/metrics; do \
                 sleep 0.05; kill -0 $! || exit 1; done; \
                 seq {CLIENTS} | xargs -P {CLIENTS} -I %% {each}"
            ))
        }
    }
}

/// Downloads side by side, each with these flags: each transfer of the scenario, or many times the
/// only one.
fn gets(site: &Site, origin: &Origin, flags: &str) -> String {
    let (fairbat, to) = (fairbat_binary().display(), site.download.display());
    let get = format!("{fairbat} get --json {flags} --file-allocation none");
    if let [_] = &site.served[..] {
        let each = format!("{get} -q -o {to}/%% {}", origin.url());
        return format!("seq {GETS} | xargs -P {GETS} -I %% {each}");
    }
    let each = site.served.iter().map(|served| {
        let deadline = served.deadline_s;
        let deadline = deadline.map_or(String::new(), |time| format!("--deadline {time:.3}s"));
        let (name, url) = (&served.name, origin.url_of(&served.name));
        format!("{get} -q {deadline} -o {to}/{name} {url} &")
    });
    format!("{} wait", each.collect::<String>())
}

/// The same in the lane of an agent at their machine.
fn in_lane(site: &Site, origin: &Origin) -> io::Result<Vec<String>> {
    let socket = site.work.join("agent.sock");
    let config = write_config(site, &head(site, &socket)?)?;
    let (agent, config) = (agent_binary().display(), config.display());
    let socket = socket.display();
    let gets = gets(site, origin, &format!("--socket {socket}"));
    Ok(shell(&format!(
        "{agent} run --config {config} 2>{config}.log & \
         until [ -S {socket} ]; do sleep 0.05; kill -0 $! || exit 1; done; \
         export FAIRBAT_ALONE=0; {gets}"
    )))
}
