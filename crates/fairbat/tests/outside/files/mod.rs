//! A server of files that are as long as each other, and how they are fetched.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fairbat::settings::{FileAllocation, HttpSettings, RetrySettings, Settings};

/// Length of every file, bytes: some chunks.
pub(crate) const LENGTH: u64 = 1_000_000;

fn byte(offset: u64) -> u8 {
    (offset % 251) as u8
}

/// A server of files in ranges; the paths that it is asked for, in order. It takes its time
/// over each range of a file whose name begins with `slow`.
pub(crate) fn server() -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let seen = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let seen = Arc::clone(&seen);
            std::thread::spawn(move || serve(&stream.expect("a connection"), &seen));
        }
    });
    (address, asked)
}

fn serve(mut stream: &TcpStream, seen: &Mutex<Vec<String>>) {
    let mut lines = BufReader::new(stream).lines();
    while let Some(Ok(first)) = lines.next() {
        let path = first.split(' ').nth(1).expect("a path").to_owned();
        let mut range = 0..LENGTH;
        while let Some(Ok(line)) = lines.next() {
            if line.is_empty() {
                break;
            }
            if let Some(asked) = line.to_ascii_lowercase().strip_prefix("range: bytes=") {
                let (start, end) = asked.split_once('-').expect("a range");
                let end = end.parse().map_or(LENGTH, |end: u64| LENGTH.min(end + 1));
                range = start.parse().expect("a number")..end;
            }
        }
        let is_slow = path.starts_with("/slow");
        seen.lock().expect("nobody panicked").push(path);
        if is_slow {
            std::thread::sleep(Duration::from_millis(200));
        }
        let head = format!(
            "HTTP/1.1 206 Partial Content\r\nETag: \"1\"\r\nContent-Length: {}\r\n\
             Content-Range: bytes {}-{}/{LENGTH}\r\n\r\n",
            range.end - range.start,
            range.start,
            range.end - 1
        );
        let body: Vec<u8> = range.map(byte).collect();
        if stream
            .write_all(&[head.as_bytes(), &body].concat())
            .is_err()
        {
            return;
        }
    }
}

/// One connection at a time, in chunks of so many bytes; whatever fails, fails
/// soon.
pub(crate) fn settings(chunk_size: u64) -> Settings {
    Settings {
        paths: Vec::new(),
        http: HttpSettings::default(),
        split: 1,
        max_connections: 1,
        weight: 0.02,
        max_weight: 1,
        receiver: Default::default(),
        controller: Default::default(),
        chunk_size: Some(chunk_size),
        file_allocation: FileAllocation::None,
        retry: RetrySettings {
            limit: Some(1),
            limit_before_contact: Some(1),
            base: Duration::from_millis(1),
            cap: Duration::from_millis(1),
            max_retry_after: Duration::from_millis(1),
        },
        limit_rate: None,
        max_size: None,
        machine: None,
        resume: true,
        max_time: None,
        seed: 1,
    }
}

/// That it is the server's file.
pub(crate) fn expect_whole(file: &Path) {
    let content = std::fs::read(file).expect("the file");
    assert!(content.iter().copied().eq((0..LENGTH).map(byte)));
}
