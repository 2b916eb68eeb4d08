//! The command as a process: what it says, and how it ends.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};

use fairbat_tests::bin::Fairbat;
use fairbat_tests::secret::write_secret;
use fairbat_tests::tls::Identity;
use fairbat_tests::workdir::Workdir;

use super::{Content, SOON, Serving, curl, wait_until};

fn serve(work: &Workdir, args: &[&str]) -> Fairbat {
    let listen = ["serve", "--listen", "127.0.0.1:0"];
    Fairbat::new(work.path()).args(listen).args(args)
}

#[test]
fn signals_end_it_at_once_with_their_codes() {
    for (signal, code) in [("TERM", 0), ("INT", 130)] {
        let mut server = Serving::start(&[]);
        server.put_fresh("file", &Content::new(430, 64_000_000));
        let mut stream = server.connect();
        stream
            .write_all(b"GET /file HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .expect("sent");
        stream.read_exact(&mut [0]).expect("it begins");
        server.running.signal(signal);
        server.running.wait().expect_code(code);
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(rest.len() < 64_000_000, "finishes nothing");
    }
}

#[test]
fn the_first_line_says_where_what_and_how() {
    let server = Serving::start(&[]);
    let (url, address) = (server.url.clone(), server.address.to_string());
    let outcome = server.end();
    let first = outcome.stderr.lines().next().unwrap_or_default();
    assert!(first.starts_with(&format!("{url} serves .; ")), "{outcome}");
    assert!(first.contains("background responses are "), "{outcome}");
    let event = outcome.event("listening");
    assert_eq!(event["address"], address.as_str());
    assert!(event["lever"].is_string(), "{outcome}");
    assert_eq!(outcome.stderr.lines().count(), 1, "{outcome}");
}

#[test]
fn whoever_listens_to_the_world_is_warned() {
    let work = Workdir::new();
    write_secret(&work.join("token"), "abc");
    for (flags, said) in [
        (&[][..], "token"),
        (&["--token-file", "token"], "clear text"),
    ] {
        let run = serve(&work, &["--listen", "0.0.0.0:0", "--json", "."]);
        let mut running = run.args(flags).spawn();
        wait_until("it to listen", SOON, || !running.events().is_empty());
        running.signal("TERM");
        let outcome = running.wait();
        let second = outcome.stderr.lines().nth(1).unwrap_or_default();
        assert!(
            second.starts_with("warning: ") && second.contains(said),
            "{outcome}"
        );
    }
}

#[test]
fn a_port_in_use_is_told_with_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("bound").to_string();
    let work = Workdir::new();
    let outcome = serve(&work, &["--listen", &address, "."]).run();
    outcome.expect_code(1).expect_said(&[&address]);
    outcome.expect_said(&["--listen"]);
    assert!(outcome.stdout.is_empty(), "{outcome}");
    let elsewhere = serve(&work, &["--listen", "192.0.2.1:0", "."]).run();
    elsewhere.expect_code(1).expect_said(&["192.0.2.1"]);
}

#[test]
fn a_directory_that_is_none_is_an_error_of_the_disk() {
    let work = Workdir::new();
    fs::write(work.join("file"), "x").expect("written");
    for name in ["missing", "file"] {
        let outcome = serve(&work, &[name]).run();
        outcome.expect_code(6).expect_said(&[name]);
    }
}

#[test]
fn keys_and_tokens_that_cannot_be_used_are_errors() {
    let work = Workdir::new();
    let (one, two) = (Workdir::new(), Workdir::new());
    let one = Identity::issue(one.path(), &["localhost"], 2099);
    let two = Identity::issue(two.path(), &["localhost"], 2099);
    write_secret(&work.join("empty"), "\n");
    let pem = |kind: &str| format!("-----BEGIN {kind}-----\nAAAA\n-----END {kind}-----\n");
    write_secret(&work.join("encrypted"), &pem("ENCRYPTED PRIVATE KEY"));
    write_secret(&work.join("odd"), &pem("PRIVATE KEY"));
    let text = |path: &std::path::Path| path.to_str().expect("UTF-8").to_owned();
    let (certificate, key) = (text(&one.certificate), text(&one.key));
    let other = text(&two.key);
    for (flags, said) in [
        (&["--token-file", "empty"][..], "empty"),
        (&["--token-file", "missing"], "missing"),
        (&["--tls-cert", "empty", "--tls-key", &key], "empty"),
        (
            &["--tls-cert", &certificate, "--tls-key", "empty"],
            "key file empty: there is no PEM private key in it",
        ),
        (
            &["--tls-cert", &key, "--tls-key", &key],
            "there is no PEM certificate in it",
        ),
        (
            &["--tls-cert", &certificate, "--tls-key", &other],
            &format!("key file {other}: it is not the key of the first certificate"),
        ),
        (
            &["--tls-cert", &certificate, "--tls-key", "encrypted"],
            "key file encrypted: it is encrypted",
        ),
        (
            &["--tls-cert", &certificate, "--tls-key", "odd"],
            "key file odd: ",
        ),
    ] {
        let outcome = serve(&work, &["."]).args(flags).run();
        outcome.expect_code(1).expect_said(&[said]);
        assert!(!outcome.stderr.contains("panicked"), "{outcome}");
        assert!(!outcome.stderr.contains("no items found"), "{outcome}");
    }
}

#[test]
fn a_token_that_others_may_read_is_refused() {
    let work = Workdir::new();
    let token = work.join("token");
    write_secret(&token, "abc");
    let chmod = |mode| fs::set_permissions(&token, Permissions::from_mode(mode)).expect("changed");
    let run = || serve(&work, &["--json", "."]).arg("--token-file");
    let expect_refused = || {
        let outcome = run().arg("token").timeout(SOON).run();
        outcome
            .expect_code(1)
            .expect_said(&["chmod 600 token", "/dev/stdin", "LoadCredential="]);
    };
    let is_root = rustix::process::geteuid().is_root();
    let modes = [0o604, 0o644, 0o620, 0o444];
    // root may let a group of its choice read a token.
    for mode in modes.into_iter().chain((!is_root).then_some(0o640)) {
        chmod(mode);
        expect_refused();
    }
    if is_root {
        chmod(0o600);
        chown(&token, Some(65_534), None).expect("changed");
        let outcome = run().arg("token").timeout(SOON).run();
        outcome.expect_code(1).expect_said(&["run chown 0 token ("]);
        assert!(!outcome.stderr.contains("chmod"), "{outcome}");
        chown(&token, Some(0), None).expect("changed");
    }
    chmod(0o644);
    let expect_listening = |run: Fairbat| {
        let mut running = run.spawn();
        wait_until("it to listen", SOON, || !running.events().is_empty());
        running.signal("TERM");
        running.wait().expect_code(0);
    };
    // systemd gives a service's user its credentials by an ACL.
    let credential = run().arg(&token);
    expect_listening(credential.env("CREDENTIALS_DIRECTORY", work.path()));
    for mode in [0o600].into_iter().chain(is_root.then_some(0o640)) {
        chmod(mode);
        expect_listening(run().arg("token"));
    }
    expect_listening(run().arg("/dev/stdin").stdin("abc"));
}

#[test]
fn an_address_that_is_none_is_told_with_one() {
    let work = Workdir::new();
    for address in ["8080", "localhost:8080", "127.0.0.1"] {
        let outcome = serve(&work, &["--listen", address, "."]).run();
        outcome.expect_code(2).expect_said(&[address]);
        outcome.expect_said(&["127.0.0.1:8080 or [::]:8080; names are not taken"]);
    }
}

#[test]
fn a_sender_that_is_not_set_up_is_said_to_have_no_effect() {
    let server = Serving::start(&["--sender", "cdg"]);
    let outcome = server.end();
    let is_set_up = outcome.event("listening")["lever"] == "congestion-control";
    let said = "warning: --sender cdg has no effect until root loads ";
    assert_eq!(outcome.stderr.contains(said), !is_set_up, "{outcome}");
}

#[test]
fn with_v_each_request_is_a_line() {
    let server = Serving::start(&["-v"]);
    server.put_fresh("file", &Content::new(431, 10));
    let url = server.url("file");
    for args in [
        &["-r", "0-4", &url][..],
        &["-H", "Priority: u=7", &url],
        &["-I", &format!("{url}?key=secret")],
        &[&server.url("none")],
    ] {
        curl(args);
    }
    let outcome = server.end();
    let lines = outcome.stderr.lines();
    let lines: Vec<_> = lines.filter(|line| line.contains(" /")).collect();
    assert_eq!(lines.len(), 4, "{outcome}");
    for (line, expected) in lines.into_iter().zip([
        " GET /file 206 bytes 0-4/10 ordinary",
        " GET /file 200 10 w=0.02",
        " HEAD /file 200 10 -",
        " GET /none 404 0 -",
    ]) {
        assert!(
            line.starts_with("info: ") && line.ends_with(expected),
            "{line}"
        );
        let (client, _) = line.split_once(expected).expect("it ends so");
        assert!(client.contains("127.0.0.1:"), "{line}");
    }
}

#[test]
fn usage_errors_exit_2() {
    let work = Workdir::new();
    for args in [
        &[][..],
        &["one", "two"],
        &["--listen", "8080", "."],
        &["--listen", "localhost:8080", "."],
        &["--listen", "127.0.0.1:99999", "."],
        &["--max-connections", "0", "."],
        &["--allow-host", "http://nas.example.org", "."],
        &["--allow-host", "nas.example.org:80", "."],
        &["--allow-host", "*", "."],
        &["--max-connections-per-peer", "0", "."],
        &["--sender", "reno", "."],
        &["--token", "abc", "."],
        &["--tls-cert", "cert.pem", "."],
        &["--tls-key", "key.pem", "."],
    ] {
        let outcome = serve(&work, args).run();
        outcome.expect_code(2);
        assert!(
            !outcome.stderr.is_empty() && outcome.stdout.is_empty(),
            "{outcome}"
        );
    }
}
