//! Nothing but the regular files below the directory.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use fairbat::http::host::HostPattern;
use fairbat_tests::bin::Fairbat;
use fairbat_tests::poll::wait_until;
use fairbat_tests::secret::write_secret;
use fairbat_tests::workdir::Workdir;

use super::{FILE, OnDrop, SOON, Serving, curl, value};

/// One directory below the one that is served, and a secret beside it.
fn nested() -> Serving {
    nested_as(|run| run)
}

/// The same, served as `change` has it.
fn nested_as(change: impl FnOnce(Fairbat) -> Fairbat) -> Serving {
    let server = Serving::run(|run| change(run.arg("--quiet")));
    fs::create_dir(server.path("inner")).expect("created");
    server.put_fresh("inner/file", &FILE);
    server
}

#[test]
fn no_name_leads_out_of_the_directory() {
    let server = nested();
    for path in [
        "/../../../../../../../../etc/passwd",
        "/inner/../../../../../../../etc/passwd",
        "/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/%2E%2E%2F%2E%2E%2F%2E%2E%2Fetc%2Fpasswd",
        "/..%2f..%2f..%2f..%2fetc%2fpasswd",
        "/%252e%252e/%252e%252e/%252e%252e/etc/passwd",
        "/..\\..\\..\\..\\etc\\passwd",
        "/..%5c..%5c..%5cetc%5cpasswd",
        "/..%c0%af..%c0%afetc/passwd",
        "//etc/passwd",
        "/%2fetc%2fpasswd",
        "///etc/passwd",
        "/inner/file%00.txt",
        "/inner/%00",
        "/proc/self/root/etc/passwd",
        "/inner/file/",
        "/inner/./file",
        "/inner//file",
        "/inner/../inner/file",
        "/inner%2ffile",
        "/inner",
        "/inner/",
        "/",
    ] {
        let answer = server.raw(format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        ));
        let refused = ["HTTP/1.1 404", "HTTP/1.1 400"];
        assert!(
            refused.iter().any(|status| answer.starts_with(status)),
            "{path}: {answer}"
        );
        assert!(!answer.contains("root:"), "{path}: {answer}");
    }
    for request in [
        "GET ../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /etc/passwd\r\n\r\n",
        "GET file:///etc/passwd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        "GET http://localhost/../../etc/passwd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        "GET * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        "CONNECT h:80 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    ] {
        let answer = server.raw(request);
        assert!(!answer.contains("HTTP/1.1 200"), "{request}: {answer}");
        assert!(!answer.contains("root:"), "{request}: {answer}");
    }
    // As a proxy would be asked.
    for (host, expected) in [("localhost", " 200 OK"), ("other", " 421 ")] {
        let answer = server.raw(format!("GET http://{host}/inner/file HTTP/1.0\r\n\r\n"));
        assert!(answer.contains(expected), "{answer}");
    }
}

#[test]
fn symbolic_links_count_as_long_as_they_stay_inside() {
    let server = nested();
    for (target, name) in [
        ("inner/file", "in"),
        ("inner", "directory"),
        ("/etc/passwd", "out"),
        ("../../../../../../../etc/passwd", "up"),
        ("/etc", "etc"),
        ("loop", "loop"),
        ("none", "dangling"),
        ("/proc/self/fd/0", "magic"),
    ] {
        symlink(target, server.path(name)).expect("a link");
    }
    // Though it leads back inside, it names the way from outside.
    symlink(server.path("inner/file"), server.path("absolute")).expect("a link");
    for name in ["in", "directory/file"] {
        assert!(curl([&server.url(name)]).stdout == FILE.all(), "{name}");
    }
    for name in [
        "out",
        "up",
        "etc/passwd",
        "loop",
        "dangling",
        "magic",
        "absolute",
        "directory",
    ] {
        assert_eq!(server.status(&[&server.url(name)]), 404, "{name}");
    }
}

#[test]
fn links_that_change_meanwhile_lead_nowhere_else() {
    let server = nested();
    let outside = Workdir::new();
    fs::write(outside.join("file"), "secret").expect("written");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _over = OnDrop(&is_over);
        scope.spawn(|| {
            let targets = [Path::new("inner"), outside.path()];
            for target in targets.iter().cycle() {
                symlink(target, server.path("new")).expect("a link");
                fs::rename(server.path("new"), server.path("link")).expect("in its place");
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let request = "GET /link/file HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        for _ in 0..500 {
            let answer = server.raw(request);
            assert!(!answer.contains("secret"), "{answer}");
        }
    });
}

#[test]
fn a_request_names_one_host() {
    let server = nested();
    for (fields, status) in [
        ("", 400),
        ("Host: localhost\r\nHost: localhost\r\n", 400),
        ("Host: localhost\r\n", 200),
    ] {
        let answer = server.raw(format!(
            "GET /inner/file HTTP/1.1\r\n{fields}Connection: close\r\n\r\n"
        ));
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{fields}"
        );
    }
}

/// The answer to a GET with this field `Host`.
fn asked_as(server: &Serving, host: &str) -> String {
    let request = format!("GET /inner/file HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    server.raw(request)
}

#[test]
fn a_name_that_may_be_anothers_reads_nothing() {
    let work = Workdir::new();
    write_secret(&work.join("token"), "s3cret");
    let token = work.join("token");
    for server in [
        nested(),
        nested_as(|run| run.arg("--writable")),
        nested_as(|run| run.arg("--token-file").arg(&token)),
    ] {
        for host in ["rebound.example", "localhost.rebound.example:80", "h"] {
            let answer = asked_as(&server, host);
            assert!(answer.starts_with("HTTP/1.1 421 "), "{host}: {answer}");
            let said = format!("the host \"{host}\" is not known");
            assert!(answer.contains(&said), "{answer}");
            assert!(answer.contains("--allow-host"), "{answer}");
        }
        let listing = "GET / HTTP/1.1\r\nHost: rebound.example\r\nAccept: application/json\r\n\
                       Connection: close\r\n\r\n";
        let answer = server.raw(listing);
        assert!(answer.starts_with("HTTP/1.1 421 "), "{answer}");
        assert!(!answer.contains("inner"), "{answer}");
        // Of HTTP/1.0, which knows no Host.
        let old = server.raw("GET /none HTTP/1.0\r\n\r\n");
        assert!(!old.contains(" 400 ") && !old.contains(" 421 "), "{old}");
    }
}

#[test]
fn a_refused_host_is_one_warning() {
    let server = Serving::start(&[]);
    for host in ["nas.example", "other.example"] {
        assert!(asked_as(&server, host).starts_with("HTTP/1.1 421 "));
    }
    let said = server.end().stderr;
    let warning = "warning: refused a request under the host \"nas.example\"; ";
    assert!(
        said.contains(warning) && said.contains("--allow-host NAME"),
        "{said}"
    );
    assert!(!said.contains("other.example"), "{said}");
}

#[test]
fn the_machines_own_names_are_accepted_from_its_network_only() {
    let own = fs::read_to_string("/proc/sys/kernel/hostname").expect("a host name");
    let own = own.trim();
    if own.parse::<HostPattern>().is_err() {
        eprintln!("SKIPPED: this machine has no host name: {own:?}");
        return;
    }
    let label = own.split('.').next().unwrap_or_default();
    for (listen, status) in [("0.0.0.0:0", 200), ("127.0.0.1:0", 421), ("[::1]:0", 421)] {
        let server = nested_as(|run| run.args(["--listen", listen]));
        for host in [own, &format!("{label}.local:80"), &format!("{own}.")] {
            let host = format!("Host: {host}");
            let answered = server.status(&["-H", &host, &server.url("inner/file")]);
            assert_eq!(answered, status, "{listen} {host}");
        }
    }
}

#[test]
fn names_that_are_allowed_are_accepted() {
    let server = nested_as(|run| {
        run.args(["--allow-host", "NAS.example.org"])
            .args(["--allow-host", "*.example.net"])
    });
    for host in [
        "localhost:1",
        "192.0.2.1",
        "[2001:db8::1]:80",
        "nas.example.org:80",
        "nas.example.org.",
        "a.example.net",
    ] {
        let answer = asked_as(&server, host);
        assert!(answer.starts_with("HTTP/1.1 200 "), "{host}: {answer}");
    }
    for host in ["example.net", "nas.example.org.rebound.example"] {
        let answer = asked_as(&server, host);
        assert!(answer.starts_with("HTTP/1.1 421 "), "{host}: {answer}");
    }
}

#[test]
fn no_page_of_another_site_may_use_an_answer() {
    let server = nested();
    let (file, none) = (server.url("inner/file"), server.url("none"));
    for args in [
        &[file.as_str()][..],
        &[&none],
        &["-X", "PUT", &none],
        &["-H", "Host: rebound.example", &file],
        &["-r", "999999-", &file],
    ] {
        let head = server.headers(args);
        assert_eq!(value(&head, "x-content-type-options"), "nosniff");
        assert_eq!(value(&head, "cross-origin-resource-policy"), "same-origin");
    }
}

#[test]
fn what_is_no_regular_file_is_not_found_and_not_waited_for() {
    let server = nested();
    let fifo = server.path("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status();
    assert!(made.expect("start mkfifo").success());
    let _socket = UnixListener::bind(server.path("socket")).expect("a socket");
    // Waits until somebody opens the other end, which nobody may do.
    let mut writer = Command::new("sh")
        .args(["-c", "echo secret > \"$0\""])
        .arg(&fifo)
        .spawn()
        .expect("start sh");
    for name in ["fifo", "socket", "inner"] {
        for _ in 0..3 {
            assert_eq!(server.status(&[&server.url(name)]), 404, "{name}");
        }
    }
    assert!(writer.try_wait().expect("asked").is_none(), "it was woken");
    let _ = writer.kill();
    let _ = writer.wait();
    assert!(curl([&server.url("inner/file")]).stdout == FILE.all());
}

#[test]
fn names_need_not_be_text() {
    let server = nested();
    let names: [(&[u8], &str); 5] = [
        (b"\xff\xfe\x80", "%FF%fe%80"),
        (b"with space+plus", "with%20space+plus"),
        (b"100%", "100%25"),
        (b"q?u#e", "q%3fu%23e"),
        ("\u{e4}\u{20ac}".as_bytes(), "%c3%a4%E2%82%AC"),
    ];
    for (name, url) in names {
        let path = server.directory.path().join(OsStr::from_bytes(name));
        fs::write(path, name).expect("written");
        assert_eq!(curl([&server.url(url)]).stdout, name, "{url}");
    }
    // What follows the name is no part of it.
    assert_eq!(curl([&server.url("100%25?x=/../y")]).stdout, b"100%");
}

#[test]
fn a_file_may_come_and_go() {
    let server = nested();
    let url = server.url("late");
    assert_eq!(server.status(&[&url]), 404);
    server.put_fresh("late", &FILE);
    assert_eq!(server.status(&[&url]), 200);
    fs::remove_file(server.path("late")).expect("removed");
    wait_until("it to be gone", SOON, || server.status(&[&url]) == 404);
}
