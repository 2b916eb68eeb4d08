//! A connection that has one of ours for a while.

use std::os::fd::AsRawFd;

use dalbe::sender::{SenderCoupling, SenderLeverKind, SenderLevers, SenderPolicy};
use dalbe::weight::FlowTarget;

use super::*;

#[test]
fn a_released_connection_gets_its_own_congestion_control_back() {
    in_own_namespace(|| {
        set_up(EbpfPart::CongestionControls);
        as_nobody(|| {
            let (mut client, mut server) = loopback();
            let socket = socket_of(&client);
            let chosen = || socket.sender().congestion().expect("a TCP socket");
            let own = chosen();
            let levers = SenderLevers::open(SenderPolicy::Vegas);
            assert_eq!(levers.kind(), SenderLeverKind::Congestion);
            let mut lever = levers.take(&socket, SenderCoupling::EQUAL);
            for round in 0..3 {
                let now = Duration::from_secs(round);
                lever.update(now, &socket, FlowTarget::YIELD).expect("held");
                assert!(chosen().starts_with("fairbat_"), "round {round}");
                transfer(&mut client, &mut server, 1_000_000);
                lever.release(&socket).expect("let go");
                assert_eq!(chosen(), own, "round {round}");
                let class = socket.traffic_class().expect("an IP socket");
                assert_eq!(class & 0xfc, 0, "round {round}");
                transfer(&mut client, &mut server, 1_000_000);
            }
        });
    });
}

#[test]
fn a_connection_taken_again_begins_with_its_present_window() {
    in_own_namespace(|| {
        set_up(EbpfPart::CongestionControls);
        without_slow_start(|| as_nobody(take_again));
    });
}

fn take_again() {
    let (mut client, mut server) = loopback();
    let socket = socket_of(&client);
    let (state, descriptor) = (readable("state"), client.as_raw_fd());
    // 0 while the window is another's.
    let law = || {
        let entry = entry(&state, descriptor).expect("its own");
        number(&entry.expect("under control"), 4)
    };
    let mut lever = SenderLevers::open(SenderPolicy::Vegas).take(&socket, SenderCoupling::EQUAL);
    send(&mut client, &mut server);
    assert_ne!(law(), 0, "it has a window of its own");
    lever.release(&socket).expect("let go");
    send(&mut client, &mut server);
    let later = Duration::from_secs(1);
    lever
        .update(later, &socket, FlowTarget::YIELD)
        .expect("held");
    assert_eq!(law(), 0, "a window from before is no window now");
}
