//! Clients that take a response slowly, but never pause for long.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread::sleep;

use dalbe::socket::TcpSocket;
use fairbat::serve::Patience;
use socket2::{Domain, SockRef, Socket, Type};

use super::{LONG, PATIENT, SHORT, Serving, serve};

/// Pauses between two reads, in a patience of `SHORT * 4`.
const PAUSES: u32 = 16;

/// A client that reads slowly.
struct Reader {
    stream: TcpStream,
    socket: TcpSocket,
    /// Bytes that it reads after each pause.
    step: usize,
    /// What its kernel has received of the response, bytes.
    received: u64,
    /// Pauses since more was received.
    unchanged: u32,
}

impl Reader {
    /// Asks for a large file with the smallest buffer and the smallest window that the
    /// kernel allows. Then the window opens, and more is acknowledged, for about half a
    /// KiB at a time.
    fn ask(server: &Serving, step: usize) -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.set_recv_buffer_size(1).unwrap();
        let levers = TcpSocket::from_fd(socket.try_clone().unwrap().into());
        levers.receiver().set_window_clamp(1).unwrap();
        socket.connect(&server.address.into()).unwrap();
        let mut stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream
            .write_all(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .unwrap();
        // Past the first window, which is larger.
        stream.read_exact(&mut [0; 4096]).unwrap();
        Self {
            stream,
            socket: levers,
            step,
            received: 0,
            unchanged: 0,
        }
    }

    /// Reads once more. Returns whether the server still keeps the connection.
    fn read(&mut self) -> bool {
        match self.stream.read_exact(&mut vec![0; self.step]) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return false,
            Err(error) => panic!("{error}"),
        }
        let received = self.socket.info().unwrap().bytes_received.unwrap();
        self.unchanged = match received == self.received {
            true => self.unchanged + 1,
            false => 0,
        };
        self.received = received;
        SockRef::from(&self.stream).take_error().unwrap().is_none()
    }
}

#[test]
fn who_takes_less_than_a_kib_in_the_patience_is_closed_though_it_never_pauses() {
    let server = serve(Patience {
        sending: SHORT * 4,
        idle: LONG * 10,
        closing: LONG,
        ..PATIENT
    });
    // 768 bytes in the patience, so more is acknowledged every three quarters of it.
    let mut slow = Reader::ask(&server, 48);
    let mut steady = Reader::ask(&server, 160);
    let mut is_closed = false;
    for pause in 1..=PAUSES * 4 {
        sleep(SHORT * 4 / PAUSES);
        assert!(steady.read(), "2560 bytes in the patience are enough");
        if !is_closed && !slow.read() {
            is_closed = true;
            assert!(slow.unchanged < PAUSES, "it was silent as well");
        }
        if is_closed && pause >= PAUSES * 2 {
            return;
        }
    }
    panic!("it is kept");
}
