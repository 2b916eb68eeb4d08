//! Uploads that break off, on either side: under its name a file is whole.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::process::Command;
use std::thread;

use fairbat_tests::bin::Fairbat;
use fairbat_tests::expect::{assert_absent, assert_content, assert_only};
use fairbat_tests::tmpfs::{Bind, TmpFs};
use fairbat_tests::workdir::Workdir;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::uploads::writable;
use super::{Content, FILE, SOON, Serving, curl, wait_until};

const OTHER: Content = Content::new(451, FILE.len());

/// Begins an upload of this many bytes, and sends this.
fn begin(server: &Serving, name: &str, length: u64, sent: &[u8]) -> TcpStream {
    begin_on(server.connect(), name, length, sent)
}

/// The same on this connection.
fn begin_on(mut stream: TcpStream, name: &str, length: u64, sent: &[u8]) -> TcpStream {
    let head =
        format!("PUT /{name} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("sent");
    stream.write_all(sent).expect("sent");
    stream
}

/// How many bytes of unfinished uploads there are.
fn unfinished(server: &Serving) -> Option<u64> {
    let names = fs::read_dir(server.path(".fairbat-upload")).ok()?;
    let sizes = names.map(|entry| {
        entry
            .and_then(|entry| entry.metadata())
            .map_or(0, |m| m.len())
    });
    let sizes: Vec<_> = sizes.collect();
    (!sizes.is_empty()).then(|| sizes.iter().sum())
}

/// What comes back until the end.
fn answer(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn a_body_that_ends_early_leaves_nothing() {
    let server = writable();
    server.put_fresh("old", &FILE);
    for name in ["old", "new/directory/file"] {
        // Who says that no more will come, and who is gone.
        let stream = begin(&server, name, FILE.len(), &OTHER.bytes(0..100_000));
        stream.shutdown(Shutdown::Write).expect("open");
        drop(answer(&mut { stream }));
        drop(begin(&server, name, FILE.len(), &OTHER.bytes(0..100_000)));
    }
    let mut chunked = server.connect();
    chunked
        .write_all(
            b"PUT /old HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n\
              5\r\nabcde\r\n",
        )
        .expect("sent");
    chunked.shutdown(Shutdown::Write).expect("open");
    answer(&mut chunked);
    server.assert_no_scratch();
    assert_content(&server.path("old"), &FILE);
    assert_absent(&server.path("new"));
}

#[test]
fn killed_in_the_middle_it_has_the_old_file_and_forgets_the_rest() {
    let mut server = writable();
    server.put_fresh("file", &FILE);
    let _stream = begin(&server, "file", FILE.len(), &OTHER.bytes(0..100_000));
    wait_until("bytes to be written", SOON, || {
        unfinished(&server) == Some(100_000)
    });
    server.kill();
    assert_content(&server.path("file"), &FILE);
    assert_eq!(unfinished(&server), Some(100_000), "nobody could remove it");
    let again = Serving::of(server.directory.path(), |run| run.arg("--writable"));
    assert_eq!(unfinished(&server), None);
    // One that runs keeps what it has.
    let _stream = {
        let mut stream = again.connect();
        let head = "PUT /file HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nabc";
        stream.write_all(head.as_bytes()).expect("sent");
        stream
    };
    wait_until("bytes to be written", SOON, || {
        unfinished(&server) == Some(3)
    });
    let _third = Serving::of(server.directory.path(), |run| run.arg("--writable"));
    assert_eq!(unfinished(&server), Some(3));
    assert_content(&server.path("file"), &FILE);
}

#[test]
fn killed_at_any_moment_it_has_a_whole_file() {
    let seed = 452;
    eprintln!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let work = Workdir::new();
    let served = Workdir::new();
    let contents = [Content::new(453, 3_000_000), Content::new(454, 3_000_001)];
    contents[0].write_to(&served.join("file")).expect("written");
    let bodies = contents.map(|content| Serving::body(&work, &content));
    for round in 0..25 {
        let mut server = Serving::of(served.path(), |run| run.arg("--writable"));
        let url = server.url("file");
        let mut curl = Command::new("curl")
            .args(["-s", "-T", &bodies[round % 2], &url])
            .spawn()
            .expect("start curl");
        thread::sleep(std::time::Duration::from_micros(
            random.random_range(0..60_000),
        ));
        server.kill();
        let _ = curl.wait();
        let stored = fs::read(served.join("file")).expect("it is there");
        let is_whole = contents.iter().any(|content| stored == content.all());
        assert!(is_whole, "round {round}: {} bytes", stored.len());
    }
    let _server = Serving::of(served.path(), |run| run.arg("--writable"));
    let left = fs::read_dir(served.join(".fairbat-upload")).map_or(0, Iterator::count);
    assert_eq!(left, 0);
}

#[test]
fn told_to_end_it_leaves_nothing_behind() {
    let mut server = writable();
    let _stream = begin(&server, "file", FILE.len(), &OTHER.bytes(0..100_000));
    wait_until("bytes to be written", SOON, || {
        unfinished(&server) == Some(100_000)
    });
    server.running.signal("TERM");
    wait_until("it to end", SOON, || !server.running.is_running());
    assert_eq!(unfinished(&server), None);
    assert_only(server.directory.path(), &[".fairbat-upload"]);
}

#[test]
fn a_full_disk_is_told_and_nothing_is_lost() {
    let Some(disk) = TmpFs::mount(2 << 20) else {
        return;
    };
    let work = Workdir::new();
    let server = Serving::of(disk.path(), |run| run.arg("--writable"));
    FILE.write_to(&disk.path().join("file")).expect("fits");
    let large = Serving::body(&work, &Content::new(455, 4 << 20));
    let before = disk.free();
    // Before the body is sent, and where its length is not known beforehand.
    for flags in [&[][..], &["-H", "Transfer-Encoding: chunked"]] {
        let (status, head) = server.upload("file", &large, flags);
        assert_eq!(status, 507, "{head}");
        assert!(head.contains("disk is full"), "{head}");
        wait_until("the room to be free again", SOON, || disk.free() == before);
        assert_content(&disk.path().join("file"), &FILE);
    }
    let other = Serving::body(&work, &OTHER);
    assert_eq!(server.upload("file", &other, &[]).0, 204);
    assert_content(&disk.path().join("file"), &OTHER);
    let outcome = {
        let put = Fairbat::put(work.path()).args(["--retry", "1", &large]);
        put.arg(server.url("x")).run()
    };
    outcome.expect_code(5).expect_said(&["507"]);
}

#[test]
fn what_cannot_be_renamed_is_told_and_nothing_is_lost() {
    let server = writable();
    let work = Workdir::new();
    FILE.write_to(&work.join("mounted")).expect("written");
    server.put_fresh("file", &FILE);
    // Nothing can take the place of what something is mounted on.
    let mounted = work.join("mounted");
    let Some(bind) = Bind::mount(&mounted, &server.path("file")) else {
        return;
    };
    let body = Serving::body(&work, &OTHER);
    let (status, head) = server.upload("file", &body, &[]);
    drop(bind);
    assert_eq!(status, 500, "{head}");
    assert_content(&server.path("file"), &FILE);
    assert_content(&mounted, &FILE);
    server.assert_no_scratch();
}

#[test]
fn another_file_system_is_left_alone() {
    let server = writable();
    let work = Workdir::new();
    fs::create_dir(server.path("mounted")).expect("made");
    let Some(bind) = Bind::mount(work.path(), &server.path("mounted")) else {
        return;
    };
    let outside = Workdir::new();
    let body = Serving::body(&outside, &OTHER);
    let status = server.upload("mounted/file", &body, &[]).0;
    drop(bind);
    assert_eq!(status, 403);
    assert_absent(&work.join("file"));
}

#[test]
fn uploads_that_are_too_large_are_refused_before_they_come() {
    let server = Serving::start(&["--writable", "--max-upload", "300000"]);
    let work = Workdir::new();
    let (fits, large) = (
        Serving::body(&work, &FILE),
        Serving::body(&work, &Content::new(456, FILE.len() + 1)),
    );
    assert_eq!(server.upload("file", &fits, &[]).0, 201);
    for flags in [&[][..], &["-H", "Transfer-Encoding: chunked"]] {
        let (status, head) = server.upload("file", &large, flags);
        assert_eq!(status, 413, "{head}");
        assert!(head.contains("300000"), "{head}");
    }
    assert_content(&server.path("file"), &FILE);
    server.assert_no_scratch();
}

#[test]
fn who_waits_for_a_word_gets_it_only_where_a_body_is_wanted() {
    let server = writable();
    server.put_fresh("file", &FILE);
    let ask = |name: &str, more: &str| {
        let mut stream = server.connect();
        let head = format!(
            "PUT /{name} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n{more}\
             Expect: 100-continue\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).expect("sent");
        stream
    };
    let mut refused = ask("file", "If-None-Match: *\r\n");
    let said = answer(&mut refused);
    assert!(
        said.starts_with("HTTP/1.1 412") && !said.contains("100 "),
        "{said}"
    );
    let mut wanted = ask("new", "");
    let mut word = [0; 25];
    wanted.read_exact(&mut word).expect("a word");
    assert_eq!(&word, b"HTTP/1.1 100 Continue\r\n\r\n");
    assert_absent(&server.path("new"));
    wanted.write_all(b"abc").expect("sent");
    let said = answer(&mut wanted);
    assert!(said.starts_with("HTTP/1.1 201"), "{said}");
    assert_eq!(fs::read(server.path("new")).expect("stored"), b"abc");
}

#[test]
fn too_many_uploads_are_refused_and_reads_are_not() {
    let server = Serving::start(&["--writable", "--max-connections-per-peer", "100"]);
    server.put_fresh("file", &FILE);
    let work = Workdir::new();
    let body = Serving::body(&work, &OTHER);
    let mut held = Vec::new();
    // As many as each peer may have, one after the other.
    for (last, uploads) in [(1, 32), (2, 16), (3, 8), (4, 4), (5, 2), (6, 1), (7, 1)] {
        for _ in 0..uploads {
            let stream = server.connect_as(Ipv4Addr::new(127, 0, 0, last));
            let name = format!("held{}", held.len());
            held.push(begin_on(stream, &name, 10, b"x"));
        }
        wait_until("all of them to be taken", SOON, || {
            unfinished(&server) == Some(held.len() as u64)
        });
    }
    let (status, head) = server.upload("more", &body, &[]);
    assert_eq!(status, 503, "{head}");
    assert!(head.contains("\nretry-after: "), "{head}");
    assert!(curl([&server.url("file")]).stdout == FILE.all());
    drop(held);
    wait_until("there to be room", SOON, || {
        server.upload("more", &body, &[]).0 < 300
    });
    server.assert_no_scratch();
}

#[test]
fn one_peer_leaves_uploads_to_others() {
    let server = Serving::start(&["--writable", "--max-connections-per-peer", "100"]);
    let work = Workdir::new();
    let body = Serving::body(&work, &OTHER);
    let held: Vec<_> = (0..32)
        .map(|n| begin(&server, &format!("held{n}"), 10, b"x"))
        .collect();
    wait_until("all of them to be taken", SOON, || {
        unfinished(&server) == Some(32)
    });
    let mut greedy = Vec::new();
    for n in 0..32 {
        let mut stream = begin(&server, &format!("more{n}"), 10, b"x");
        stream.set_read_timeout(Some(SOON / 10)).expect("a time");
        let mut status = [0; 13];
        stream.read_exact(&mut status).expect("refused at once");
        assert_eq!(&status, b"HTTP/1.1 503 ");
        greedy.push(stream);
    }
    let (status, head) = server.upload("other", &body, &["--interface", "127.0.0.2"]);
    assert_eq!(status, 201, "{head}");
    drop((held, greedy));
    server.assert_no_scratch();
}

#[test]
fn what_is_only_announced_takes_no_room() {
    let Some(disk) = TmpFs::mount(16 << 20) else {
        return;
    };
    let work = Workdir::new();
    let server = Serving::of(disk.path(), |run| run.arg("--writable"));
    let stored = disk.path().join(".fairbat-upload");
    // Each one fits, and all of them do not.
    let announced: Vec<_> = (0..4)
        .map(|n| begin(&server, &format!("held{n}"), 8 << 20, b"some bytes"))
        .collect();
    wait_until("their first bytes to be written", SOON, || {
        let names = fs::read_dir(&stored).into_iter().flatten();
        let lengths = names.filter_map(|entry| entry.ok()?.metadata().ok());
        lengths.filter(|file| file.len() == 10).count() == 4
    });
    let honest = Content::new(458, 10 << 20);
    let body = Serving::body(&work, &honest);
    let (status, head) = server.upload("file", &body, &[]);
    assert_eq!(status, 201, "{head}");
    assert_content(&disk.path().join("file"), &honest);
    // What can never fit is refused before it comes.
    let mut large = begin(&server, "large", 17 << 20, b"");
    let said = answer(&mut large);
    assert!(said.starts_with("HTTP/1.1 507 "), "{said}");
    drop(announced);
}

#[test]
fn reads_go_on_while_files_come() {
    let server = writable();
    let large = Content::new(457, 20_000_000);
    server.put_fresh("large", &large);
    let work = Workdir::new();
    let body = Serving::body(&work, &large);
    let server = &server;
    thread::scope(|scope| {
        for n in 0..4 {
            let (name, body) = (format!("up{n}"), body.as_str());
            scope.spawn(move || assert_eq!(server.upload(&name, body, &[]).0, 201));
        }
        for _ in 0..4 {
            assert!(curl([&server.url("large")]).stdout == large.all());
        }
    });
    for n in 0..4 {
        assert_content(&server.path(&format!("up{n}")), &large);
    }
}

#[test]
fn a_directory_that_cannot_be_written_is_told_at_once() {
    let Some(disk) = TmpFs::mount(1 << 20) else {
        return;
    };
    disk.make_read_only();
    let work = Workdir::new();
    let serve = ["serve", "--writable", "--listen", "127.0.0.1:0"];
    let outcome = Fairbat::new(work.path()).args(serve).arg(disk.path()).run();
    outcome.expect_code(6).expect_said(&["--writable"]);
}
