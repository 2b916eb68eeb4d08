//! Transfers in a lane that they share: real files over real connections.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fairbat::carrier::Passage;
use fairbat::engine::{Outcome, Report, Share, Stop, run_in};
use fairbat::lane::{Lane, LaneSettings};
use fairbat::settings::{
    FileAllocation, HttpSettings, RetrySettings, Settings, Target, TransferRequest,
};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc::unbounded_channel;

/// Length of every file, bytes: some chunks.
const LENGTH: u64 = 1_000_000;

fn byte(offset: u64) -> u8 {
    (offset % 251) as u8
}

/// A server of files in ranges; the paths that it is asked for, in order.
fn server() -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
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
        seen.lock().expect("nobody panicked").push(path);
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

fn lane() -> Lane {
    let lane = Lane::start(LaneSettings {
        most_connections: 1,
        weight: 0.02,
        limit_rate: None,
        is_held: false,
    });
    lane.expect("a lane")
}

fn within(seconds: i64) -> Timestamp {
    #[allow(
        clippy::disallowed_methods,
        reason = "a deadline is a moment of the wall clock"
    )]
    let now = Timestamp::now();
    now + SignedDuration::from_secs(seconds)
}

/// A transfer, and what is counted of it.
struct Counted {
    report: Report,
    bytes: u64,
    chunks: u64,
}

async fn fetch(lane: &Lane, url: String, to: &Path, deadline: Option<Timestamp>) -> Counted {
    let settings = Settings {
        http: HttpSettings::default(),
        split: 1,
        max_connections: 1,
        weight: 0.02,
        receiver: Default::default(),
        chunk_size: Some(300_000),
        file_allocation: FileAllocation::None,
        retry: RetrySettings {
            limit: Some(1),
            limit_before_contact: Some(1),
            base: Duration::from_millis(1),
            cap: Duration::from_millis(1),
        },
        limit_rate: None,
        resume: true,
        max_time: None,
        seed: 1,
    };
    let request = TransferRequest {
        url: url.parse().expect("a URL"),
        target: Target::File(to.to_owned()),
        deadline,
        checksum: None,
    };
    let (bytes, chunks) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
    let share = Share {
        member: lane.enter("host", deadline),
        passage: Passage {
            job: Some(Arc::clone(&bytes)),
            ..Passage::default()
        },
        chunks: Arc::clone(&chunks),
    };
    let (events, _) = unbounded_channel();
    let report = run_in(share, settings, request, Stop::new(), events).await;
    Counted {
        report: report.expect("it could start"),
        bytes: bytes.load(Ordering::Relaxed),
        chunks: chunks.load(Ordering::Relaxed),
    }
}

fn expect_whole(file: &Path) {
    let content = std::fs::read(file).expect("the file");
    assert!(content.iter().copied().eq((0..LENGTH).map(byte)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_waits_for_its_turn_and_counts_as_the_lane_does() {
    let (address, asked) = server();
    let directory = tempfile::tempdir().unwrap();
    let lane = lane();
    let other = lane.enter("other", None);
    let permit = other.admit().await;
    let file = directory.path().join("file");
    let held = async {
        let mut samples = lane.samples();
        let mut sample = async || {
            samples.changed().await.unwrap();
            *samples.borrow_and_update()
        };
        while sample().await.waiting == 0 {}
        sample().await;
        assert!(
            asked.lock().expect("nobody panicked").is_empty(),
            "it has to wait"
        );
        drop(permit);
    };
    let url = format!("http://{address}/file");
    let (counted, ()) = tokio::join!(fetch(&lane, url, &file, None), held);
    assert!(matches!(
        counted.report.outcomes[..],
        [Outcome::Done { .. }]
    ));
    expect_whole(&file);
    assert_eq!(counted.bytes, LENGTH);
    assert_eq!(lane.bytes(), LENGTH);
    assert_eq!(counted.chunks, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_due_first_has_the_connection_to_its_end() {
    let (address, asked) = server();
    let directory = tempfile::tempdir().unwrap();
    let lane = lane();
    let other = lane.enter("other", Some(within(300)));
    let permit = other.admit().await;
    let fetch = async |name: &str, deadline| {
        let url = format!("http://{address}/{name}");
        fetch(&lane, url, &directory.path().join(name), deadline).await
    };
    let both_wait = async {
        let mut samples = lane.samples();
        samples
            .wait_for(|sample| sample.waiting == 3)
            .await
            .unwrap();
        drop(permit);
    };
    tokio::join!(
        fetch("none", None),
        fetch("late", Some(within(900))),
        fetch("early", Some(within(600))),
        both_wait
    );
    let asked = asked.lock().expect("nobody panicked");
    let mut order = asked.clone();
    order.dedup();
    assert_eq!(order, ["/early", "/late", "/none"], "{asked:?}");
    for name in ["early", "late", "none"] {
        expect_whole(&directory.path().join(name));
    }
    assert_eq!(lane.bytes(), 3 * LENGTH);
}
