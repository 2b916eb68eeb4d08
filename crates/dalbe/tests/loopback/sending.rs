//! What a connection that sends is told and still asked: how much waits
//! unsent, and what the peer said before it broke off.

use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

use crate::{Connection, levers_of};

/// Writes until the kernel takes no more; returns how much that was.
fn fill(stream: &mut std::net::TcpStream) -> u64 {
    stream.set_nonblocking(true).expect("a socket");
    let mut written = 0;
    let mut refused = 0;
    // What has been taken is sent meanwhile and makes room again.
    while refused < 50 {
        match stream.write(&[7; 4096]) {
            Ok(bytes) => (written, refused) = (written + bytes as u64, 0),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                refused += 1;
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(error) => panic!("{error}"),
        }
    }
    written
}

#[test]
fn unsent_data_is_limited() {
    const LIMIT: u32 = 32 * 1024;
    let unsent = |limit: Option<u32>| {
        // The server reads nothing, so its window fills up.
        let Connection {
            mut client,
            server: _server,
        } = Connection::over_ipv4();
        let levers = levers_of(&client);
        if let Some(limit) = limit {
            levers.sender().limit_unsent(limit).expect("Linux 3.12");
        }
        let written = fill(&mut client);
        // What is on its way has been sent.
        let arrived = (0..10_000).find_map(|_| {
            std::thread::sleep(Duration::from_millis(2));
            levers.info().ok().filter(|info| info.unacked == 0)
        });
        let acked = arrived.expect("it arrives").bytes_acked;
        // The SYN counts.
        written - (acked.expect("Linux 4.1") - 1)
    };
    let (limited, free) = (unsent(Some(LIMIT)), unsent(None));
    // The kernel takes whole segments, of up to 64 KiB over the loopback.
    assert!(limited <= u64::from(LIMIT) + 65_536, "{limited}");
    assert!(free > 2 * limited, "{limited} with, {free} without");
}

#[test]
fn unacknowledged_data_is_owed() {
    let Connection {
        mut client,
        mut server,
    } = Connection::over_ipv4();
    let levers = levers_of(&client);
    let is_owed = || levers.info().expect("TCP_INFO").is_owed();
    assert!(!is_owed());
    // Its window fills up.
    let written = fill(&mut client);
    assert!(is_owed());
    let mut taken = vec![0; usize::try_from(written).expect("memory")];
    server.read_exact(&mut taken).expect("loopback");
    // An answer carries the acknowledgement.
    while is_owed() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn data_from_before_a_reset_can_still_be_read() {
    let Connection { mut client, server } = Connection::over_ipv4();
    let levers = levers_of(&client);
    client.write_all(&[1; 1000]).expect("loopback");
    // Closing with unread data resets the connection.
    (&server).write_all(b"go away").expect("loopback");
    server.peek(&mut [0]).expect("loopback");
    drop(server);
    while client.write(&[1; 1000]).is_ok() {
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(client);
    let mut buffer = [0; 100];
    let length = levers.take_unread(&mut buffer).expect("something came");
    assert_eq!(&buffer[..length], b"go away");
}

#[test]
fn an_empty_buffer_is_an_error() {
    let Connection {
        mut client,
        mut server,
    } = Connection::over_ipv4();
    client.write_all(b"x").expect("loopback");
    server.read_exact(&mut [0]).expect("loopback");
    server.set_nonblocking(true).expect("a socket");
    let levers = levers_of(&server);
    let error = levers.take_unread(&mut [0; 10]).expect_err("nothing came");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
}
