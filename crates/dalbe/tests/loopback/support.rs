//! What the probe finds on the machine that runs the tests.

use dalbe::capability::{Capabilities, Feature};
use dalbe::sender::{SenderLevers, SenderPolicy};

#[test]
fn every_feature_is_reported_once_with_a_reason() {
    let support = Capabilities::probe();
    let features = [
        Feature::LowerEffortV4,
        Feature::LowerEffortV6,
        Feature::TcpInfo,
        Feature::WindowClamp,
        Feature::ReceiveBuffer,
        Feature::PacingRate,
        Feature::CongestionControl,
        Feature::OwnCongestionControl,
        Feature::Observer,
        Feature::ForeignSockets,
        Feature::ConnectNotices,
        Feature::UdpOffload,
        Feature::UdpBuffer,
    ];
    let names: Vec<_> = support.capabilities.iter().map(|c| c.name).collect();
    assert_eq!(names, features);
    for capability in &support.capabilities {
        assert!(!capability.reason.is_empty(), "{capability:?}");
    }
}

#[test]
fn a_current_linux_has_the_unprivileged_levers() {
    let support = Capabilities::probe();
    for feature in [
        Feature::LowerEffortV4,
        Feature::TcpInfo,
        Feature::WindowClamp,
        Feature::ReceiveBuffer,
        Feature::PacingRate,
    ] {
        assert!(support.has(feature), "{:?}", support.capabilities);
    }
    assert!(support.best_lever().holds_window());
}

#[test]
fn uploads_use_the_reported_lever() {
    let levers = SenderLevers::open(SenderPolicy::default());
    assert_eq!(Capabilities::probe().best_sender_lever(), levers.kind());
}

#[test]
fn the_largest_window_is_half_of_what_the_sysctl_allows() {
    let Ok(sysctl) = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem") else {
        eprintln!("SKIPPED, no net.ipv4.tcp_rmem in this network namespace");
        return;
    };
    let largest = sysctl
        .split_whitespace()
        .next_back()
        .expect("three numbers");
    let largest: u64 = largest.parse().expect("a number");
    let found = Capabilities::probe()
        .receive_window_max
        .expect("Linux 5.14");
    // The rest is the kernel's bookkeeping, of which it keeps its own count.
    assert!(
        (largest / 4..=largest).contains(&found),
        "{found} of {largest}"
    );
}

#[test]
fn the_congestion_controls_are_those_the_kernel_lists() {
    let congestion = Capabilities::probe().congestion;
    let default = congestion.default.expect("every connection has one");
    assert!(congestion.allowed.contains(&default));
    let list = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let list = list.expect("/proc");
    // Those of our own come and go with other tests.
    let is_kernels = |name: &&str| !name.starts_with("fairbat_");
    let found = congestion.allowed.iter().chain(&congestion.refused);
    let mut found: Vec<&str> = found.map(String::as_str).filter(is_kernels).collect();
    let mut listed: Vec<&str> = list.split_whitespace().filter(is_kernels).collect();
    found.sort_unstable();
    listed.sort_unstable();
    assert_eq!(found, listed);
}

#[test]
fn the_json_form_names_each_capability() {
    let json = serde_json::to_value(Capabilities::probe()).expect("plain data");
    assert_eq!(json["capabilities"][0]["name"], "lower-effort-v4");
    assert_eq!(json["capabilities"][0]["available"], true);
    assert!(json["capabilities"][0]["reason"].is_string());
}
