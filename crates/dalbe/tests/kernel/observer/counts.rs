//! What is counted is what the kernel counts.

use std::process::Command;
use std::time::Duration;

use super::*;

const INTERVAL: Duration = Duration::from_millis(100);

/// `data_segs_in` of the connection that ends at this port, by ss(8).
fn data_segments_in(port: u16) -> u32 {
    let output = Command::new("ss")
        .args(["-tinH", "sport", "="])
        .arg(format!(":{port}"))
        .output()
        .expect("ss of iproute2");
    let text = String::from_utf8_lossy(&output.stdout);
    text.split_whitespace()
        .find_map(|word| word.strip_prefix("data_segs_in:"))
        .and_then(|number| number.parse().ok())
        .unwrap_or_else(|| panic!("no data_segs_in in {text:?}"))
}

#[test]
fn an_unprivileged_user_sees_what_the_kernel_counts() {
    in_own_namespace(|| {
        set_up(EbpfPart::Observer);
        as_nobody(|| {
            let observer = Observer::open().expect("everybody may");
            // Where a processor pauses, TCP sends again what is only late, and
            // one packet overtakes another: then as many arrive as will. Where
            // the kernel says that it was not so, all has to agree.
            let undisturbed = (0..50).any(|_| is_counted_undisturbed(&observer));
            assert!(undisturbed, "50 connections were disturbed");
        });
    });
}

/// Whether nothing was sent twice on a connection and nothing overtaken; panics
/// where the observer counts anything but what the kernel does.
fn is_counted_undisturbed(observer: &Observer) -> bool {
    const BYTES: usize = 3_000_000;
    let (mut client, mut server) = loopback();
    let socket = socket_of(&client);
    observer.watch(&socket, INTERVAL).expect("its own socket");
    transfer(&mut server, &mut client, BYTES);
    let intervals = observed(observer, &socket, BYTES as u64);
    let port = client.local_addr().expect("connected").port();
    let segments = data_segments_in(port);
    // Last, for what is sent twice is counted before it arrives.
    let sent = socket_of(&server).info().expect("TCP_INFO");
    let info = socket.info().expect("TCP_INFO");

    let bytes: u64 = intervals.iter().map(|interval| interval.bytes).sum();
    let received = info.bytes_received.expect("Linux 4.1");
    assert!(bytes >= received, "{bytes} of {received}");
    if sent.total_retrans > 0 || info.rcv_ooopack.expect("Linux 5.4") > 0 {
        return false;
    }
    assert_eq!(bytes, received);
    let packets: u32 = intervals.iter().map(|interval| interval.packets).sum();
    assert_eq!(packets, segments);
    assert!(packets as usize >= BYTES / 65_536, "{packets}");
    for interval in &intervals {
        assert_eq!((interval.out_of_order, interval.holes), (0, 0));
        assert_eq!(interval.length, INTERVAL);
        assert_eq!(interval.tick, Duration::from_millis(1));
        let delay = interval.delay.expect("Linux sends timestamps");
        assert!(delay.min_us <= delay.mean_us, "{delay:?}");
        assert!(delay.min_us <= delay.p90_us, "{delay:?}");
        assert!(delay.samples > 0 && delay.samples <= interval.packets);
    }
    true
}

#[test]
fn intervals_follow_the_clock_and_leave_out_silence() {
    in_own_namespace(|| {
        set_up(EbpfPart::Observer);
        let observer = Observer::open().expect("root may as well");
        let (mut client, mut server) = loopback();
        let socket = socket_of(&client);
        // The ring reaches back to the first of them for twelve seconds.
        let length = Duration::from_millis(400);
        observer.watch(&socket, length).expect("its own socket");
        for _ in 0..3 {
            transfer(&mut server, &mut client, 1_000);
            thread::sleep(3 * length);
        }
        let intervals = observed(&observer, &socket, 3_000);
        assert_eq!(intervals.len(), 3, "{intervals:?}");
        for pair in intervals.windows(2) {
            assert!(pair[0].began + 3 * length <= pair[1].began);
        }
        for interval in &intervals {
            assert_eq!(interval.began.as_micros() % length.as_micros(), 0);
            assert_eq!((interval.packets, interval.bytes), (1, 1_000));
        }
    });
}

#[test]
fn only_requested_connections_are_observed() {
    in_own_namespace(|| {
        set_up(EbpfPart::Observer);
        let observer = Observer::open().expect("root may as well");
        let (mut client, mut server) = loopback();
        let (asked, silent) = (socket_of(&client), socket_of(&server));
        observer.watch(&asked, INTERVAL).expect("its own socket");
        transfer(&mut server, &mut client, 10_000);
        transfer(&mut client, &mut server, 10_000);
        observed(&observer, &asked, 10_000);
        assert_eq!(observer.arrivals(&silent).expect("a TCP socket"), []);
    });
}

#[test]
fn a_second_request_changes_nothing_and_another_length_starts_over() {
    in_own_namespace(|| {
        set_up(EbpfPart::Observer);
        let observer = Observer::open().expect("root may as well");
        let (mut client, mut server) = loopback();
        let socket = socket_of(&client);
        observer.watch(&socket, INTERVAL).expect("its own socket");
        transfer(&mut server, &mut client, 10_000);
        observer.watch(&socket, INTERVAL).expect("again");
        observed(&observer, &socket, 10_000);

        let other = Duration::from_millis(50);
        observer.watch(&socket, other).expect("another length");
        transfer(&mut server, &mut client, 5_000);
        let intervals = observed(&observer, &socket, 5_000);
        let bytes: u64 = intervals.iter().map(|interval| interval.bytes).sum();
        assert_eq!(bytes, 5_000);
        assert!(intervals.iter().all(|interval| interval.length == other));
    });
}

#[test]
fn a_connection_may_be_watched_before_it_is_open() {
    in_own_namespace(|| {
        set_up(EbpfPart::Observer);
        as_nobody(|| {
            let observer = Observer::open().expect("everybody may");
            let listener = TcpListener::bind("127.0.0.1:0").expect("IPv4 loopback");
            let address = listener.local_addr().expect("bound");
            let early = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)
                .expect("a socket");
            let copy: OwnedFd = early.as_fd().try_clone_to_owned().expect("a descriptor");
            let socket = TcpSocket::from_fd(copy);
            observer.watch(&socket, INTERVAL).expect("its own socket");
            early.connect(&address.into()).expect("loopback");
            let (mut server, _) = listener.accept().expect("a pending connection");
            transfer(&mut server, &mut early.into(), 4_000);
            observed(&observer, &socket, 4_000);
        });
    });
}

#[test]
fn invalid_requests_are_refused() {
    in_own_namespace(|| {
        set_up(EbpfPart::Observer);
        let observer = Observer::open().expect("root may as well");
        let (client, _server) = loopback();
        for length in [Duration::ZERO, Duration::from_millis(1001)] {
            let error = observer.watch(&socket_of(&client), length);
            let error = error.expect_err("out of range");
            assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
        }
        let file = fs::File::open("/proc/self/status").expect("/proc");
        let no_socket = TcpSocket::from_fd(file.into());
        assert!(observer.watch(&no_socket, INTERVAL).is_err());
        assert!(observer.arrivals(&no_socket).is_err());
    });
}
