//! What is left of one response when the next comes.

use std::io::{Read, Write};

use dalbe::socket::{LOWER_EFFORT, TcpSocket};

use super::{PATIENT, SHORT, serve};

#[test]
fn an_ordinary_response_after_a_yielding_one_is_not_held_back() {
    let server = serve(PATIENT);
    let mut stream = server.connect();
    let local = stream.local_addr().unwrap();
    // Both ends are this process's own: this is the server's, once it has
    // accepted.
    let socket = (0..600).find_map(|_| {
        std::thread::sleep(SHORT / 50);
        TcpSocket::find_by_addresses(server.address, local).unwrap()
    });
    let socket = socket.unwrap();
    let state = || {
        let sender = socket.sender();
        (
            socket.traffic_class().unwrap() & 0xfc,
            sender.congestion().unwrap(),
            sender.max_pacing_rate().unwrap(),
        )
    };
    let before = state();
    let mut piece = vec![0; 100_000];
    for _ in 0..3 {
        for (wish, yields) in [
            ("Priority: u=7", true),
            ("X: y", false),
            ("Fairbat-Deadline: due=3600, remaining=9000000", true),
            ("Priority: u=3", false),
        ] {
            let range = "Range: bytes=0-9999999";
            let request =
                format!("GET /large HTTP/1.1\r\nHost: localhost\r\n{range}\r\n{wish}\r\n\r\n");
            stream.write_all(request.as_bytes()).unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                head.extend(byte);
            }
            stream.read_exact(&mut piece).unwrap();
            let is_as_asked = (0..600).any(|_| {
                std::thread::sleep(SHORT / 50);
                match yields {
                    true => state().0 == LOWER_EFFORT,
                    false => state() == before,
                }
            });
            assert!(is_as_asked, "{wish}: {:?}, at first {before:?}", state());
            for _ in 1..100 {
                stream.read_exact(&mut piece).unwrap();
            }
        }
    }
}
