//! A receiver that pauses between two reads: what its small buffer lets in.

use std::io::Read;

use dalbe::capability::{Capabilities, Feature};

use crate::clamp::{SEGMENT, carry, connection, outstanding};
use crate::{Connection, levers_of};

const PROBE: u32 = 2 * SEGMENT;

/// A connection whose buffer holds two segments and not a third; `None`, and
/// loudly so, where the buffer cannot be held.
fn narrow() -> Option<Connection> {
    if !Capabilities::probe().has(Feature::ReceiveBuffer) {
        eprintln!("SKIPPED, this kernel has no SO_BUF_LOCK (Linux 5.14 has)");
        return None;
    }
    let mut connection = connection();
    let client = levers_of(&connection.client);
    client.receiver().hold_receive_buffer(true).expect("5.14");
    // The kernel resets the clamp while it learns the segment size.
    carry(&mut connection, 64 * 1024);
    client.receiver().set_window_clamp(PROBE).expect("clamp");
    // What was offered before is not taken back; use it up.
    carry(&mut connection, 512 * 1024);
    client
        .receiver()
        .leave_room(PROBE + SEGMENT / 20 * 19)
        .expect("5.14");
    client.receiver().set_window_clamp(PROBE).expect("clamp");
    Some(connection)
}

/// Reads what waits, in one go: what a read makes room for comes at once.
fn take(connection: &mut Connection) {
    let mut block = [0; 64 * 1024];
    assert!(connection.client.read(&mut block).expect("loopback") > 0);
}

fn received(connection: &Connection) -> u64 {
    let info = levers_of(&connection.client).info().expect("TCP_INFO");
    info.bytes_received.expect("Linux 4.1")
}

/// The window that the sender has been offered, bytes, and whether it takes
/// nothing for lost. (What it sends twice for want of an acknowledgement, in
/// which a receiver may take 40 ms, comes twice and is not lost.)
fn sender(connection: &Connection) -> (u32, bool) {
    let info = levers_of(&connection.server).info().expect("TCP_INFO");
    (info.snd_wnd.expect("Linux 5.4"), !info.is_reducing)
}

#[test]
fn each_read_lets_in_two_segments_and_none_is_lost() {
    let Some(mut connection) = narrow() else {
        return;
    };
    outstanding(&mut connection);
    for read in 0..12 {
        let before = received(&connection);
        take(&mut connection);
        outstanding(&mut connection);
        let came = received(&connection) - before;
        // The header counts the window in units of its scale.
        let most = u64::from(PROBE + SEGMENT);
        assert!((1..=most).contains(&came), "{came} bytes at read {read}");
        let (offered, is_well) = sender(&connection);
        assert!(offered < SEGMENT, "{offered} bytes on offer at read {read}");
        assert!(is_well, "something was dropped at read {read}");
    }
}

#[test]
fn new_room_opens_a_closed_window() {
    let Some(mut connection) = narrow() else {
        return;
    };
    outstanding(&mut connection);
    let (closed, _) = sender(&connection);
    assert!(closed < SEGMENT, "{closed} bytes on offer");
    let window = 64 * 1024;
    let client = levers_of(&connection.client);
    client.receiver().make_room(window).expect("5.14");
    let mut widest = 0;
    for _ in 0..40 {
        // It opens as the reader reads on; then it may be widened.
        take(&mut connection);
        client.receiver().set_window_clamp(window).expect("clamp");
        outstanding(&mut connection);
        let (_, is_well) = sender(&connection);
        assert!(is_well, "something was dropped");
        let before = received(&connection);
        take(&mut connection);
        outstanding(&mut connection);
        widest = widest.max(received(&connection) - before);
    }
    assert!(widest > u64::from(window / 4), "{widest} bytes at once");
}
