//! Where a run is measured, and with what: it goes into every record. Knows
//! no link and no host.

use std::path::Path;

use fairbat_tests::bin::{agent_binary, fairbat_binary};
use fairbat_tests::environment;
pub use fairbat_tests::environment::kernel;
use fairbat_tests::environment::{first_line, nginx_version};
use fairbat_tests::nats;

use crate::contender::{
    Contender, Downloader, PYTHON, Pushing, Restraint, Server, Uploader, others, uploads,
};
use crate::record::Provenance;

/// Version of the lab, and the commit that it is built of.
pub const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("FAIRBAT_LAB_COMMIT"),
    ")"
);

/// Commit that the lab is built of, whatever the checkout has become since;
/// `-dirty` when sources had been changed.
#[must_use]
pub fn commit() -> String {
    env!("FAIRBAT_LAB_COMMIT").to_owned()
}

/// The moment, UTC, to the second, as RFC 3339 writes it.
#[allow(clippy::disallowed_methods, reason = "the shell's clock")]
fn now() -> String {
    let now = jiff::Timestamp::now();
    now.round(jiff::Unit::Second).unwrap_or(now).to_string()
}

/// Cores that this process may use.
#[must_use]
pub fn cores() -> usize {
    environment::cores()
}

/// Processor, and how many cores.
#[must_use]
pub fn machine() -> String {
    let cores = environment::cores();
    let plural = if cores == 1 { "" } else { "s" };
    format!("{}, {cores} core{plural}", environment::processor())
}

/// The programs that take part with this contender, with versions.
///
/// # Panics
/// For `fairbat`, when it has to be built and cannot be.
#[must_use]
pub fn of(contender: Contender) -> Vec<String> {
    let version_of = |program: &str| first_line(&[program, "--version"]);
    let built = |path: &Path| version_of(&path.to_string_lossy());
    let mut versions = match contender {
        Contender::None
        | Contender::Tcp
        | Contender::TcpReno
        | Contender::Sender(_)
        | Contender::Rledbat => Vec::new(),
        Contender::Utp(_) => {
            let ask = "import libtorrent; print('libtorrent', libtorrent.version)";
            vec![first_line(&[PYTHON, "-c", ask]), version_of(PYTHON)]
        }
        Contender::Iperf3(_) => vec![version_of("iperf3")],
        Contender::Engine | Contender::Queue(_) => {
            vec![format!("fairbat {}", env!("CARGO_PKG_VERSION"))]
        }
        Contender::Fairbat
        | Contender::FairbatServed
        | Contender::FairbatNoDeadline(_)
        | Contender::Http3(_) => {
            vec![built(fairbat_binary())]
        }
        Contender::Agent | Contender::AgentStream | Contender::Hosts(Pushing::Alone) => {
            vec![built(agent_binary())]
        }
        Contender::Hosts(Pushing::Static) => vec![version_of("rclone")],
        Contender::Hosts(_) => vec![
            built(agent_binary()),
            first_line(&[nats::program(), "--version"]),
        ],
        Contender::Curl | Contender::Rival(_) => vec![version_of("curl")],
        Contender::Aria2 => vec![version_of("aria2c")],
        Contender::Upload(uploader, restraint) => {
            let own = || built(fairbat_binary());
            match (uploader, restraint) {
                (Uploader::Fairbat, _) => vec![own()],
                (Uploader::Restic, Restraint::Run) => {
                    vec![own(), first_line(&["restic", "version"])]
                }
                (Uploader::Restic, _) => vec![first_line(&["restic", "version"])],
                (other, Restraint::Run) => vec![own(), version_of(uploads::program(other))],
                (other, _) => vec![version_of(uploads::program(other))],
            }
        }
        Contender::Other(Downloader::Gets, Restraint::Lane) => {
            vec![built(fairbat_binary()), built(agent_binary())]
        }
        Contender::Other(Downloader::Gets, _) => vec![built(fairbat_binary())],
        Contender::Other(downloader, restraint) => {
            let program = version_of(others::program(downloader));
            match restraint {
                Restraint::None | Restraint::Trickle | Restraint::Limit => vec![program],
                Restraint::Run | Restraint::Planned | Restraint::Proxy | Restraint::Lane => {
                    vec![built(fairbat_binary()), program]
                }
            }
        }
        Contender::Rclone | Contender::RclonePush => vec![version_of("rclone")],
    };
    if contender.server() == Server::Nginx {
        versions.push(nginx_version());
    }
    if matches!(
        contender,
        Contender::FairbatServed
            | Contender::Agent
            | Contender::Sender(_)
            | Contender::Hosts(Pushing::Together | Pushing::Alone | Pushing::Despite(_))
    ) {
        versions.push(congestion_controls());
    }
    versions
}

/// Of what begins now: the command that does it again, what takes part with
/// versions, and how many labs run side by side.
#[must_use]
pub fn provenance(command: String, versions: Vec<String>, side_by_side: String) -> Provenance {
    Provenance {
        command,
        commit: commit(),
        kernel: kernel(),
        machine: machine(),
        versions,
        started: now(),
        side_by_side,
    }
}

/// The congestion controls of ours that are set up for a run.
fn congestion_controls() -> String {
    format!(
        "dalbe {}, congestion controls {}",
        env!("CARGO_PKG_VERSION"),
        dalbe::ebpf::CONGESTION_VERSION
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_here_is_named() {
        assert!(kernel().starts_with("Linux "), "{}", kernel());
        assert!(machine().contains(" core"), "{}", machine());
        let versions = of(Contender::Curl);
        assert!(versions[0].starts_with("curl "), "{versions:?}");
        assert!(versions[1].starts_with("nginx version"), "{versions:?}");
        assert_eq!(of(Contender::None), Vec::<String>::new());
        let controls = format!("congestion controls {}", dalbe::ebpf::CONGESTION_VERSION);
        let served = of(Contender::FairbatServed);
        assert!(served[0].starts_with("fairbat "), "{served:?}");
        assert!(served[1].ends_with(&controls), "{served:?}");
    }
}
