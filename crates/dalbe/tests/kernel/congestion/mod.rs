//! The congestion controls.

mod release;
mod rights;
mod setup;
mod shares;
mod thousand;

use dalbe::ebpf::{CongestionLaw, CongestionParameters, WeightedCongestion};
use dalbe::sender::SenderCoupling;
use dalbe::weight::MIN_WEIGHT;
use libbpf_rs::libbpf_sys::BPF_F_RDONLY;
use libbpf_rs::{MapCore, MapFlags, MapHandle};

use super::*;
use crate::link::{command, within};

/// What a socket of this weight is to do.
fn of_weight(law: CongestionLaw, w: f64) -> CongestionParameters {
    CongestionParameters {
        law,
        w,
        phi: 1.0,
        g_ms: None,
        capacity: 0.0,
        coupling: SenderCoupling::EQUAL,
    }
}

/// What is sent in a row takes a round trip or more each time; the first one
/// tells nothing.
const ROUNDS: usize = 8;

/// Nothing shorter is taken for a round trip (`RTT_LEAST_US`,
/// ../../src/bpf/flow.h).
const LEAST_ROUND: Duration = Duration::from_micros(250);

/// Sends for some round trips.
fn send(client: &mut TcpStream, server: &mut TcpStream) {
    for _ in 0..ROUNDS {
        thread::sleep(LEAST_ROUND);
        transfer(client, server, 5_000);
    }
}

/// A loopback interface whose connections are never in slow start, in which
/// they follow no law yet.
fn without_slow_start(test: impl FnOnce() + Send) {
    command("ip", "netns add settled");
    within("settled", || {
        command("ip", "link set lo up");
        // BBR would begin by forgetting it.
        for (name, value) in [
            ("tcp_no_ssthresh_metrics_save", "0"),
            ("tcp_congestion_control", "reno"),
            // A pause would begin it again.
            ("tcp_slow_start_after_idle", "0"),
        ] {
            fs::write(Path::new("/proc/sys/net/ipv4").join(name), value).expect("root");
        }
        let route = "local 127.0.0.1 dev lo src 127.0.0.1 table local";
        command("ip", &format!("route replace {route} ssthresh lock 2"));
        // It holds for the second connection to an address.
        let (mut client, mut server) = loopback();
        transfer(&mut client, &mut server, 5_000);
        drop((client, server));
        wait_until("what was learnt of the first", || {
            command("ip", "tcp_metrics show").contains("127.0.0.1")
        });
        test();
    });
    command("ip", "netns delete settled");
}

/// The directory of the version that this build speaks.
fn version() -> String {
    format!("v{}", dalbe::ebpf::CONGESTION_VERSION)
}

/// The directory of the version that is set up.
fn pins() -> std::path::PathBuf {
    directory().join("congestion").join(version())
}

/// The names of the congestion controls that are set up.
fn names() -> Vec<String> {
    let names = entries(&pins()).into_iter();
    names.filter(|name| name.starts_with("fairbat_")).collect()
}

/// A map that is set up, with all the rights that this thread has.
fn map(name: &str) -> MapHandle {
    MapHandle::from_pinned_path(pins().join(name)).expect("set up")
}

/// A map that is set up, as everybody may read it.
fn readable(name: &str) -> MapHandle {
    let path = pins().join(name);
    MapHandle::from_pinned_path_with_file_flags(path, BPF_F_RDONLY).expect("set up")
}

/// The entry of a socket as the kernel has it.
fn entry(map: &MapHandle, descriptor: i32) -> libbpf_rs::Result<Option<Vec<u8>>> {
    map.lookup(&descriptor.to_ne_bytes(), MapFlags::ANY)
}

/// The number of that many bytes in an entry.
fn number(entry: &[u8], at: usize) -> u32 {
    let bytes = entry[at..at + 4].try_into();
    u32::from_ne_bytes(bytes.expect("four bytes"))
}
