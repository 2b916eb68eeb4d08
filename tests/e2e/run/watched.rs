//! What the levers do to the sockets of the command, as another process sees it.

use std::time::Duration;

use dalbe::process::{ForeignProcess, descendants};
use dalbe::socket::TcpSocket;
use fairbat_tests::bin::Running;
use fairbat_tests::poll::wait_for;

/// The connected TCP sockets of this process and all that descends from it.
pub(super) fn connections(root: i32) -> Vec<TcpSocket> {
    let mut found = Vec::new();
    let below = descendants([root]).expect("read /proc");
    for process in below.into_iter().chain([root]) {
        let Ok(process) = ForeignProcess::open(process) else {
            continue;
        };
        for (descriptor, _) in process.sockets().unwrap_or_default() {
            let socket = process.socket(descriptor).ok();
            found.extend(
                socket.filter(|socket| socket.info().is_ok() && socket.peer_addr().is_ok()),
            );
        }
    }
    found
}

/// Whether this connection's window is held.
pub(super) fn is_held(socket: &TcpSocket) -> bool {
    socket.receiver().holds_receive_buffer().expect("a socket")
}

/// Waits until the one connection below this process is held, or is not.
pub(super) fn wait_until_held(root: i32, expected: bool) {
    wait_for(
        "the connection to be held or free",
        Duration::from_secs(10),
        || {
            let connections = connections(root);
            (!connections.is_empty() && connections.iter().all(|it| is_held(it) == expected))
                .then_some(())
        },
    );
}

/// The process of a run.
pub(super) fn number(running: &Running) -> i32 {
    running.id().cast_signed()
}
