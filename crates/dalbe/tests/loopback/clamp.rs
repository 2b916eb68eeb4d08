//! The receive window: what the sender is offered, and how much it can send
//! to a receiver that does not read.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use dalbe::socket::TcpSocket;
use socket2::{Domain, Socket, Type};

use crate::{Connection, levers_of};

/// So often a sender is looked at: for far longer than it takes to fill any window.
const LOOKS: usize = 200;

/// What a usual path carries; the loopback's own 64 kB is more than the
/// windows tried here.
pub(crate) const SEGMENT: u32 = 1448;
const BUFFER: u32 = 256 * 1024;
const CLAMP: u32 = 8 * 1024;

/// A connection whose client receives segments of a usual size.
pub(crate) fn connection() -> Connection {
    let listener = TcpListener::bind("127.0.0.1:0").expect("IPv4 loopback");
    let client = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    client.set_tcp_mss(SEGMENT).expect("before connecting");
    client
        .connect(&listener.local_addr().expect("bound").into())
        .expect("loopback");
    let (server, _) = listener.accept().expect("a pending connection");
    Connection {
        client: client.into(),
        server,
    }
}

/// Sends so many bytes from the server to the client, which takes them all.
pub(crate) fn carry(connection: &mut Connection, bytes: u32) {
    let mut block = [0x55; 16 * 1024];
    for _ in 0..bytes / 16_384 {
        connection.server.write_all(&block).expect("loopback");
        connection.client.read_exact(&mut block).expect("loopback");
    }
}

/// Sends while the client does not read, until nothing more is accepted;
/// returns how many bytes have arrived unread.
pub(crate) fn outstanding(connection: &mut Connection) -> u64 {
    let client = levers_of(&connection.client);
    let received = || client.info().expect("TCP_INFO").bytes_received;
    let read = received().expect("Linux 4.1");
    connection.server.set_nonblocking(true).expect("a socket");
    let server = levers_of(&connection.server);
    let mut last = None;
    for _ in 0..LOOKS {
        while let Ok(1..) = connection.server.write(&[0x55; 4096]) {}
        // Longer than an acknowledgement is ever delayed (40 ms).
        std::thread::sleep(Duration::from_millis(100));
        let now = received();
        // The window is what holds it back, and not a processor that pauses.
        let sender = server.info().expect("TCP_INFO");
        // The kernel may have dropped what came last, for lack of room.
        let is_settled = sender.unacked == 0 || sender.is_reducing;
        let is_blocked = is_settled && sender.snd_wnd < Some(sender.snd_mss);
        if now == last && is_blocked {
            return now.expect("Linux 4.1") - read;
        }
        last = now;
    }
    panic!("its window is never full: {:?}", server.info());
}

/// The widest window that the sender saw while the client, told `prepare`
/// after the first data, took a few megabytes.
fn widest_window_after(prepare: impl FnOnce(&TcpSocket)) -> u32 {
    let mut connection = connection();
    // The kernel resets the clamp while it learns the segment size.
    carry(&mut connection, 64 * 1024);
    prepare(&levers_of(&connection.client));
    // What was offered before is not taken back; use it up.
    carry(&mut connection, 4 * BUFFER);
    let sender = levers_of(&connection.server);
    let windows = (0..64).map(|_| {
        carry(&mut connection, 64 * 1024);
        let info = sender.info().expect("TCP_INFO");
        info.snd_wnd.expect("Linux 5.4")
    });
    windows.max().expect("64 of them")
}

#[test]
fn a_clamp_limits_the_window_that_the_sender_sees() {
    let unclamped = widest_window_after(|levers| {
        levers.receiver().lock_receive_buffer(BUFFER).expect("lock");
    });
    let clamped = widest_window_after(|levers| {
        levers.receiver().lock_receive_buffer(BUFFER).expect("lock");
        levers.receiver().set_window_clamp(CLAMP).expect("clamp");
        assert_eq!(levers.receiver().window_clamp().expect("read"), CLAMP);
    });
    assert!((1..=CLAMP).contains(&clamped), "{clamped} bytes on offer");
    assert!(
        unclamped > 4 * CLAMP,
        "{unclamped} bytes on offer without the clamp"
    );
}

#[test]
fn a_clamp_can_be_widened_again() {
    let wider = 4 * CLAMP;
    let widest = widest_window_after(|levers| {
        levers.receiver().lock_receive_buffer(BUFFER).expect("lock");
        levers.receiver().set_window_clamp(CLAMP).expect("clamp");
        levers.receiver().set_window_clamp(wider).expect("clamp");
    });
    assert!(
        (CLAMP + 1..=wider).contains(&widest),
        "{widest} bytes on offer"
    );
}

#[test]
fn both_ends_report_the_same_window() {
    let mut connection = connection();
    carry(&mut connection, 64 * 1024);
    let receiver = levers_of(&connection.client);
    receiver
        .receiver()
        .lock_receive_buffer(BUFFER)
        .expect("lock");
    receiver.receiver().set_window_clamp(CLAMP).expect("clamp");
    carry(&mut connection, 4 * BUFFER);
    let sender = levers_of(&connection.server);
    let info = |socket: &TcpSocket| socket.info().expect("TCP_INFO");
    let (mut received, mut sent) = (info(&receiver), info(&sender));
    // The last acknowledgement may be on its way.
    for _ in 0..1000 {
        if received.rcv_wnd == sent.snd_wnd {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
        (received, sent) = (info(&receiver), info(&sender));
    }
    if received.rcv_wnd.is_none() {
        eprintln!("SKIPPED, this kernel does not report the window (Linux 6.2 does)");
        return;
    }
    assert_eq!(received.rcv_wnd, sent.snd_wnd);
    assert!(received.rcv_mss <= SEGMENT && sent.snd_mss <= SEGMENT);
}

#[test]
fn a_locked_small_buffer_limits_what_a_sender_can_have_outstanding() {
    let outstanding_with = |prepare: fn(&TcpSocket)| {
        let mut connection = connection();
        prepare(&levers_of(&connection.client));
        carry(&mut connection, 4 * BUFFER);
        outstanding(&mut connection)
    };
    let free = outstanding_with(|_| {});
    let locked = outstanding_with(|levers| {
        levers.receiver().lock_receive_buffer(CLAMP).expect("lock");
    });
    assert!(
        (1..=2 * u64::from(CLAMP)).contains(&locked) && free > 4 * u64::from(CLAMP),
        "{locked} bytes outstanding, {free} without the lock"
    );
}

#[test]
fn the_kernel_grants_twice_the_locked_buffer() {
    let Connection { client, .. } = Connection::over_ipv4();
    let granted = levers_of(&client).receiver().lock_receive_buffer(65_536);
    assert_eq!(granted.expect("lock"), 2 * 65_536);
}

#[test]
fn excessive_sizes_are_limited_and_do_not_wrap() {
    let Connection { client, .. } = Connection::over_ipv4();
    let levers = levers_of(&client);
    let granted = levers.receiver().lock_receive_buffer(u32::MAX);
    let granted = granted.expect("lock");
    assert!(granted > 65_536, "{granted} for the largest request");
    levers.receiver().set_window_clamp(u32::MAX).expect("clamp");
    let clamp = levers.receiver().window_clamp().expect("read");
    assert!(clamp > 65_536, "{clamp} for the largest clamp");
}

#[test]
fn a_window_of_0_is_refused() {
    let Connection { client, .. } = Connection::over_ipv4();
    let levers = levers_of(&client);
    assert!(levers.receiver().set_window_clamp(0).is_err());
}
