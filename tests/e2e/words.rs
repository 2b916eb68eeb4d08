//! What a server says is shown as text, and does nothing to a terminal or a log.

use fairbat::printable::is_unsafe;
use fairbat_tests::content::Content;
use fairbat_tests::fault::FaultServer;
use fairbat_tests::version::Version;
use fairbat_tests::workdir::Workdir;

const FILE: Content = Content::new(270, 1000);

/// Turns the rest of the line around, erases the screen, and hides what follows.
const HOSTILE: &str = "x\u{202e}exe.\u{9b}2j\u{2066}y";

#[test]
fn what_a_server_says_is_escaped_and_json_loses_nothing() {
    let server = FaultServer::start();
    let reply = Version::new(&FILE).whole();
    server.script("/file", move |_| {
        reply.clone().header("Content-Encoding", HOSTILE)
    });
    let work = Workdir::new();
    for log in ["-v", "-vvv"] {
        let outcome = work.get().arg(log).arg(server.url("/file")).run();
        outcome.expect_code(1);
        for shown in [&outcome.stdout, &outcome.stderr] {
            let harmful = |c: char| is_unsafe(c) && c != '\n';
            assert!(!shown.contains(harmful), "{shown:?}");
        }
        assert!(outcome.stderr.contains("\\u{202e}exe."), "{outcome}");
        let error = outcome.event("error");
        let message = error["message"].as_str().expect("a message");
        assert!(message.contains(HOSTILE), "{message:?}");
    }
}
