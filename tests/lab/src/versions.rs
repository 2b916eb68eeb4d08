//! Where a run is measured, and with what: it goes into every record. Knows
//! no link and no host.

use fairbat_tests::bin::{agent_binary, fairbat_binary};
use fairbat_tests::environment;
pub use fairbat_tests::environment::kernel;
use fairbat_tests::environment::{first_line, nginx_version};

use crate::contender::{Contender, PYTHON};

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
#[must_use]
#[allow(clippy::disallowed_methods, reason = "the shell's clock")]
pub fn now() -> String {
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
    let version_of = |program| first_line(&[program, "--version"]);
    let client = match contender {
        Contender::None => return Vec::new(),
        Contender::Utp(_) => {
            let ask = "import libtorrent; print('libtorrent', libtorrent.version)";
            return vec![first_line(&[PYTHON, "-c", ask]), version_of(PYTHON)];
        }
        Contender::Iperf3(_) => return vec![version_of("iperf3")],
        Contender::Tcp | Contender::TcpReno => return vec![nginx_version()],
        Contender::Sender(_) => {
            return vec![congestion_controls()];
        }
        Contender::Engine | Contender::Queue(_) => format!("fairbat {}", env!("CARGO_PKG_VERSION")),
        Contender::FairbatServed => {
            let fairbat = version_of(&fairbat_binary().to_string_lossy());
            return vec![fairbat, congestion_controls()];
        }
        Contender::Agent => {
            let agent = version_of(&agent_binary().to_string_lossy());
            return vec![agent, congestion_controls()];
        }
        Contender::RclonePush => return vec![version_of("rclone")],
        Contender::Fairbat | Contender::FairbatNoDeadline(_) => {
            version_of(&fairbat_binary().to_string_lossy())
        }
        Contender::Curl => version_of("curl"),
        Contender::Aria2 => version_of("aria2c"),
        Contender::Rclone => version_of("rclone"),
    };
    vec![client, nginx_version()]
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
