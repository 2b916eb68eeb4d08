//! What went wrong is said in plain words, and the advice is for that.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::thread;

use fairbat_tests::bin::Fairbat;
use fairbat_tests::content::Content;
use fairbat_tests::fault::FaultServer;
use fairbat_tests::message::{End, Framing, Reply};
use fairbat_tests::outcome::Outcome;
use fairbat_tests::workdir::Workdir;

const FILE: Content = Content::new(80, 100_000);

/// What `get`, `put` and `plan` make of a URL that none of them can use.
fn every_command(url: &str) -> [Outcome; 3] {
    let work = Workdir::new();
    FILE.write_to(&work.join("sent")).expect("written");
    let plan = ["plan", "--measure=0", "--deadline=4h", url];
    [
        work.get().args(["--retry", "0", url]),
        work.put().args(["--retry", "0", "sent", url]),
        Fairbat::new(work.path()).args(plan),
    ]
    .map(|run| run.run())
}

/// The advice that people read.
fn hint(outcome: &Outcome) -> &str {
    let (_, hint) = outcome
        .stderr
        .rsplit_once("hint: ")
        .unwrap_or_else(|| panic!("no hint: {outcome}"));
    hint
}

/// A server that answers every connection with these bytes.
fn answering(bytes: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for mut connection in listener.incoming().flatten() {
            let _ = connection.read(&mut [0; 1024]);
            let _ = connection.write_all(bytes);
            // All that comes, so that nothing resets the connection.
            let _ = connection.shutdown(std::net::Shutdown::Write);
            thread::spawn(move || std::io::copy(&mut connection, &mut std::io::sink()));
        }
    });
    address
}

#[test]
fn a_name_that_does_not_resolve_is_said_so_first() {
    for outcome in every_command("http://no-such-host.invalid/file") {
        outcome.expect_code(5);
        assert!(
            outcome
                .stderr
                .contains("invalid/file: the host name cannot be resolved: "),
            "{outcome}"
        );
        assert!(hint(&outcome).contains("check the host name"), "{outcome}");
    }
}

#[test]
fn plain_http_to_a_port_that_speaks_tls_is_asked_about() {
    // A fatal alert, "unexpected message" (RFC 8446 section 6).
    let server = answering(b"\x15\x03\x03\x00\x02\x02\x0a");
    for outcome in every_command(&format!("http://{server}/file")) {
        outcome.expect_code(5).expect_said(&["is it https?"]);
        assert!(hint(&outcome).contains("https://"), "{outcome}");
        assert!(!hint(&outcome).contains("host name"), "{outcome}");
    }
}

#[test]
fn a_server_that_was_there_is_not_looked_for_by_its_name() {
    let server = FaultServer::start();
    server.script("/file", |_| {
        Reply::status(200)
            .framing(Framing::Nothing)
            .end(End::Reset(0))
    });
    for outcome in every_command(&server.url("/file")) {
        outcome.expect_code(5);
        assert_eq!(hint(&outcome).trim_end(), "try again later", "{outcome}");
    }
}
