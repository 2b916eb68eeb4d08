//! A file that changes is never a mixed file.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fairbat_tests::poll::wait_until;
use fairbat_tests::tmpfs::TmpFs;

use super::{Content, OnDrop, SOON, Serving, curl, value};

/// More than the buffers between two programs hold.
const LARGE: Content = Content::new(410, 64_000_000);

/// Begins to fetch a file, has it changed, and fetches the rest: the head of
/// the answer, and the body.
fn fetch_while(change: impl FnOnce(&Serving)) -> (String, Vec<u8>) {
    let server = Serving::start(&[]);
    server.put_fresh("file", &LARGE);
    let mut stream = server.connect();
    stream
        .write_all(b"GET /file HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .expect("sent");
    let mut answer = vec![0; 1000];
    stream.read_exact(&mut answer).expect("it begins");
    change(&server);
    stream.set_read_timeout(Some(SOON)).expect("a time");
    // It may be reset in place of an end.
    let _ = stream.read_to_end(&mut answer);
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let body = answer.split_off(end.expect("a head") + 4);
    (String::from_utf8(answer).expect("a head is text"), body)
}

fn assert_short_and_unmixed((head, body): &(String, Vec<u8>)) {
    assert!(head.contains("content-length: 64000000"), "{head}");
    assert!(body.len() < 64_000_000, "all of it came");
    assert!(*body == LARGE.bytes(0..body.len() as u64), "mixed");
}

#[test]
fn a_file_written_while_it_is_sent_is_broken_off() {
    let answer = fetch_while(|server| {
        let file = File::options().write(true).open(server.path("file"));
        let file = file.expect("opened");
        file.write_all_at(b"other bytes", 60_000_000)
            .expect("written");
        file.write_all_at(b"other bytes", 10).expect("written");
    });
    assert_short_and_unmixed(&answer);
}

#[test]
fn a_file_cut_or_grown_while_it_is_sent_is_broken_off() {
    for size in [10_000_000, 64_000_001] {
        let answer = fetch_while(|server| {
            let file = File::options().write(true).open(server.path("file"));
            file.and_then(|file| file.set_len(size)).expect("cut");
        });
        assert_short_and_unmixed(&answer);
    }
}

#[test]
fn a_file_replaced_while_it_is_sent_is_sent_as_it_was_or_broken_off() {
    let (head, body) = fetch_while(|server| {
        let other = Content::new(411, LARGE.len());
        other.write_to(&server.path("file")).expect("replaced");
    });
    assert!(head.contains("content-length: 64000000"), "{head}");
    // The old file loses its name, which counts as a change of it.
    assert!(body == LARGE.bytes(0..body.len() as u64), "mixed");
}

#[test]
fn what_changed_a_moment_ago_has_no_validator() {
    let server = Serving::start(&[]);
    let path = server.path("file");
    let url = server.url("file");
    // Written anew until an answer falls into the first second or two: the
    // first one, unless the machine stands still.
    let fresh = (0..5).any(|_| {
        fs::write(&path, "x").expect("written");
        let head = server.headers(&[&url]);
        assert!(head.starts_with("http/1.1 200"), "{head}");
        !head.contains("\netag: ") && !head.contains("\nlast-modified: ")
    });
    assert!(fresh, "a file just written has a validator");
    server.put("file", &Content::new(412, 10));
    let tag = server.headers(&[&url]);
    assert!(tag.contains("\netag: \"") && tag.contains("\nlast-modified: "));
}

#[test]
fn a_file_changed_twice_within_a_tick_of_the_clock_is_broken_off() {
    let Some(disk) = TmpFs::mount_coarse() else {
        return;
    };
    let server = Serving::of(disk.path(), |run| run);
    let path = disk.path().join("file");
    let old = Content::new(413, 16_000_000);
    old.write_to(&path).expect("a file to serve");
    let old = old.all();
    let file = File::options().write(true).open(&path).expect("opened");
    for round in 0..30 {
        let mut stream = server.connect();
        // A change that shows nothing, and one as soon as the body has begun.
        file.write_all_at(&old[..10], 0).expect("written");
        stream
            .write_all(b"GET /file HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .expect("sent");
        let mut answer = vec![0; 1000];
        stream.read_exact(&mut answer).expect("it begins");
        file.write_all_at(b"other byte", 15_999_990)
            .expect("written");
        // It may be reset in place of an end.
        let _ = stream.read_to_end(&mut answer);
        let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        let body = answer.split_off(end.expect("a head") + 4);
        assert!(body.len() < old.len(), "mixed in round {round}");
        file.write_all_at(&old[15_999_990..], 15_999_990)
            .expect("written");
    }
}

#[test]
fn a_file_that_is_written_without_a_pause_is_for_later() {
    let server = Serving::start(&[]);
    let url = server.url("log");
    let mut file = File::create(server.path("log")).expect("created");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _over = OnDrop(&is_over);
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                file.write_all(b"a line\n").expect("written");
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        // It may seem to pause on a machine that is busy.
        wait_until("a get to be put off", SOON, || {
            let refused = curl(["-D", "-", "-o", "/dev/null", &url]);
            let head = String::from_utf8_lossy(&refused.stdout).to_lowercase();
            head.starts_with("http/1.1 503") && value(&head, "retry-after") == "1"
        });
        // There is nothing in this that could be mixed.
        let head = server.headers(&[&url]);
        assert!(head.starts_with("http/1.1 200"), "{head}");
    });
    let written = fs::read(server.path("log")).expect("read");
    assert!(curl([&url]).stdout == written);
}

#[test]
fn a_file_that_cannot_be_read_to_its_size_is_broken_off_and_told() {
    let shorter_than_it_says = Path::new("/sys/kernel/uevent_seqnum");
    if fs::metadata(shorter_than_it_says).is_err() {
        return eprintln!("SKIPPED, no sysfs");
    }
    let server = Serving::of(Path::new("/sys/kernel"), |run| run);
    for _ in 0..3 {
        let output = curl([&server.url("uevent_seqnum")]);
        assert!(!output.status.success(), "{output:?}");
    }
    let outcome = server.end();
    outcome.expect_said(&["warning: \"uevent_seqnum\" cannot be read, a response is broken off"]);
    let warnings = outcome.stderr.matches("warning: ").count();
    assert_eq!(warnings, 1, "clients fill the log: {outcome}");
}
