//! The receive buffer held and enlarged, and the window lever on a real
//! connection.

use std::io::{Read, Write};
use std::sync::mpsc;
use std::time::Duration;

use dalbe::capability::{Capabilities, Feature};
use dalbe::receive_window::{WindowGroup, WindowLever, WindowSettings};
use dalbe::weight::{FlowTarget, MIN_WEIGHT};

use crate::clamp::{carry, connection, outstanding};
use crate::{Connection, levers_of};

/// Far more than a wake-up ever takes.
const PATIENCE: Duration = Duration::from_secs(20);

const KIB: u32 = 1024;

/// The largest window of this machine; `None`, and loudly so, where the buffer
/// cannot be held.
fn largest_window() -> Option<u32> {
    let support = Capabilities::probe();
    if !support.has(Feature::ReceiveBuffer) {
        eprintln!("SKIPPED, this kernel has no SO_BUF_LOCK (Linux 5.14 has)");
        return None;
    }
    support.receive_window_max.map(|max| max as u32)
}

/// The limit of `SO_RCVBUF`.
fn rcvbuf_max() -> Option<u32> {
    let sysctl = std::fs::read_to_string("/proc/sys/net/core/rmem_max").ok()?;
    sysctl.trim().parse().ok()
}

#[test]
fn a_held_buffer_does_not_grow_and_a_released_one_does() {
    if largest_window().is_none() {
        return;
    }
    let widest = |hold: &[bool]| {
        let mut connection = connection();
        let client = levers_of(&connection.client);
        for &hold in hold {
            client.receiver().hold_receive_buffer(hold).expect("5.14");
        }
        carry(&mut connection, 8 * 1024 * KIB);
        outstanding(&mut connection)
    };
    let held = widest(&[true]);
    // 128 KiB is what a connection begins with everywhere.
    assert!(
        held <= u64::from(256 * KIB),
        "{held} bytes in a held buffer"
    );
    let (free, released) = (widest(&[]), widest(&[true, false]));
    assert!(free > 2 * held, "{free} bytes, {held} when held");
    assert!(released > 2 * held, "{released} bytes, {held} when held");
}

#[test]
fn the_buffer_grows_beyond_the_limit_of_so_rcvbuf() {
    let (Some(largest), Some(rcvbuf)) = (largest_window(), rcvbuf_max()) else {
        return;
    };
    // SO_RCVBUF grants twice what it is asked for, half of it as window.
    let window = rcvbuf.saturating_mul(2).min(largest);
    if window <= rcvbuf {
        eprintln!("SKIPPED, net.core.rmem_max is no limit beside net.ipv4.tcp_rmem here");
        return;
    }
    let mut connection = connection();
    carry(&mut connection, 64 * KIB);
    let client = levers_of(&connection.client);
    client.receiver().make_room(window).expect("Linux 5.14");
    client.receiver().set_window_clamp(window).expect("clamp");
    carry(&mut connection, 4 * window);
    let waiting = outstanding(&mut connection);
    assert!(
        waiting > u64::from(window) / 4 * 3,
        "{waiting} bytes on offer of {window}"
    );
}

#[test]
fn making_room_never_shrinks_the_buffer() {
    let Some(largest) = largest_window() else {
        return;
    };
    let outstanding_with = |rooms: &[u32]| {
        let mut connection = connection();
        carry(&mut connection, 64 * KIB);
        let client = levers_of(&connection.client);
        for &room in rooms {
            client.receiver().make_room(room).expect("Linux 5.14");
        }
        let window = rooms.iter().copied().max().expect("some room");
        client.receiver().set_window_clamp(window).expect("clamp");
        carry(&mut connection, 4 * window);
        outstanding(&mut connection)
    };
    let room = (1024 * KIB).min(largest);
    let once = outstanding_with(&[room]);
    let then_less = outstanding_with(&[room, 16 * KIB, 1]);
    assert!(
        then_less >= once / 4 * 3,
        "{once} bytes, {then_less} after less room was asked for"
    );
}

#[test]
fn a_reader_is_told_of_a_single_byte_after_room_was_made() {
    if largest_window().is_none() {
        return;
    }
    let mut connection = connection();
    carry(&mut connection, 64 * KIB);
    let mut client = connection.client.try_clone().expect("a descriptor");
    levers_of(&client)
        .receiver()
        .make_room(512 * KIB)
        .expect("Linux 5.14");
    let (sender, arrivals) = mpsc::channel();
    // Blocks until the low-water mark is reached, so it must be 1 again.
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        for _ in 0..2 {
            let read = client.read(&mut buffer).expect("loopback");
            sender.send(read).expect("the test waits");
            // Also while a reader waits.
            let receiver = levers_of(&client);
            receiver.receiver().make_room(768 * KIB).expect("5.14");
        }
    });
    for _ in 0..2 {
        connection.server.write_all(&[1]).expect("loopback");
        assert_eq!(arrivals.recv_timeout(PATIENCE), Ok(1), "nobody was woken");
    }
}

/// The window that the server has been offered, bytes.
fn offered(connection: &Connection) -> u32 {
    let info = levers_of(&connection.server).info().expect("TCP_INFO");
    info.snd_wnd.expect("Linux 5.4")
}

/// A lever's look at the connection, and then a block of data. Returns the
/// window that it has set.
fn look_and_carry(
    connection: &mut Connection,
    lever: &mut WindowLever,
    now: &mut Duration,
    order: FlowTarget,
    remaining: Option<u64>,
) -> u32 {
    let socket = levers_of(&connection.client);
    let info = socket.info().expect("TCP_INFO");
    let rtt = info.rcv_rtt.or(info.rtt).expect("data has come");
    // A block per round trip, by a clock of the test's own.
    *now += rtt.mul_f64(1.3);
    let window = lever.update(*now, &socket, order, remaining);
    let window = window.expect("TCP_INFO").expect("data has come").window;
    let clamp = socket.receiver().window_clamp().expect("read");
    assert_eq!(clamp, window, "what the kernel has taken");
    carry(connection, 256 * KIB);
    window
}

#[test]
fn the_lever_holds_the_window_and_opens_it_at_weight_1() {
    if largest_window().is_none() {
        return;
    }
    let mut connection = connection();
    let socket = levers_of(&connection.client);
    WindowLever::hold(&socket).expect("Linux 5.14");
    // The kernel has to learn the segment size.
    carry(&mut connection, 64 * KIB);
    let mut lever = lever(None);
    let mut now = Duration::ZERO;
    let small = FlowTarget {
        w: 2.0 * MIN_WEIGHT,
        capacity: 1e6,
    };
    // Near the end of a response the window is small on any path, also on
    // this one, on which nobody ever meets a queue.
    let to_come = Some(2 * u64::from(KIB));
    let braked: Vec<_> = (0..40)
        .map(|_| {
            let window = look_and_carry(&mut connection, &mut lever, &mut now, small, to_come);
            (window, offered(&connection))
        })
        .collect();
    // What was offered before is not taken back; it has to be used up.
    for &(window, offered) in &braked[10..] {
        assert!(window <= 32 * KIB, "{braked:?}");
        // The header counts in units of the window scale.
        assert!(offered <= window + KIB, "{braked:?}");
    }
    let free: Vec<_> = (0..60)
        .map(|_| {
            look_and_carry(
                &mut connection,
                &mut lever,
                &mut now,
                FlowTarget::FREE,
                to_come,
            )
        })
        .collect();
    let offered = offered(&connection);
    assert!(
        free[59] >= 256 * KIB && offered > 128 * KIB,
        "{offered} bytes on offer of {free:?}"
    );
}

#[test]
fn a_lever_on_demand_leaves_the_window_to_the_kernel_at_first() {
    if largest_window().is_none_or(|largest| largest < 256 * KIB) {
        return;
    }
    let mut connection = connection();
    let socket = levers_of(&connection.client);
    carry(&mut connection, 64 * KIB);
    let mut lever = on_demand();
    let mut now = Duration::ZERO;
    let mut rounds = 0;
    // A held buffer never offers so much.
    while offered(&connection) <= 128 * KIB {
        assert!(rounds < 4_000, "the kernel does not tune it");
        (rounds, now) = (rounds + 1, now + Duration::from_millis(1));
        let hold = lever.update(now, &socket, FlowTarget::FREE, None);
        assert_eq!(hold.expect("TCP_INFO"), None);
        carry(&mut connection, 256 * KIB);
    }
    let tuned = offered(&connection);
    let to_come = Some(2 * u64::from(KIB));
    // What was offered before is not taken back; it has to be used up.
    for _ in 0..40 + tuned / (256 * KIB) {
        look_and_carry(
            &mut connection,
            &mut lever,
            &mut now,
            FlowTarget::YIELD,
            to_come,
        );
    }
    let held = offered(&connection);
    assert!(held <= 32 * KIB, "{held} bytes of {tuned}");
    // What it has taken it keeps: nobody else opens the window again, and so does the lever
    // of a next response that begins before this one is put away.
    lever = on_demand();
    lever.take_over(&socket);
    let free: Vec<_> = (0..60)
        .map(|_| {
            look_and_carry(
                &mut connection,
                &mut lever,
                &mut now,
                FlowTarget::FREE,
                to_come,
            )
        })
        .collect();
    assert!(free[59] >= 256 * KIB, "{free:?}");
}

#[test]
fn a_lever_learns_from_another_lever() {
    let mut connection = connection();
    carry(&mut connection, 64 * KIB);
    let (mut one, mut other) = (lever(Some(64 * KIB)), lever(None));
    let mut now = Duration::ZERO;
    assert_eq!(one.memory(now), None);
    // The handshake's round trip does not count, one of data does.
    let looks = (0..200).map(|_| {
        look_and_carry(&mut connection, &mut one, &mut now, FlowTarget::YIELD, None);
        one.memory(now)
    });
    let memory = looks.flatten().next().expect("data has come");
    assert!(!memory.base.is_zero() && memory.at <= now, "{memory:?}");
    other.learn(memory);
    assert_eq!(other.memory(now), Some(memory));
}

#[test]
fn the_lever_never_exceeds_the_largest_window() {
    if largest_window().is_none() {
        return;
    }
    let most = 24 * KIB;
    let mut connection = connection();
    carry(&mut connection, 64 * KIB);
    let socket = levers_of(&connection.client);
    socket
        .receiver()
        .lock_receive_buffer(8 * most)
        .expect("lock");
    let mut lever = lever(Some(most));
    let mut now = Duration::ZERO;
    for round in 0..40 {
        let order = if round < 20 {
            FlowTarget::YIELD
        } else {
            FlowTarget::FREE
        };
        let window = look_and_carry(&mut connection, &mut lever, &mut now, order, None);
        assert!(window <= most, "{window}");
        let offered = offered(&connection);
        assert!(round < 10 || offered <= most + KIB, "{offered}");
    }
}

fn on_demand() -> WindowLever {
    let settings = WindowSettings {
        holds_on_demand: true,
        ..WindowSettings::default()
    };
    WindowLever::new(settings, &WindowGroup::default())
}

fn lever(max_window: Option<u32>) -> WindowLever {
    WindowLever::new(
        WindowSettings {
            max_window,
            ..WindowSettings::default()
        },
        &WindowGroup::default(),
    )
}
