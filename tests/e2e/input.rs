//! Several URLs in one run, from arguments, a file or standard input.

use std::fs;

use fairbat_tests::content::Content;
use fairbat_tests::fault::FaultServer;
use fairbat_tests::message::Reply;
use fairbat_tests::version::Version;
use fairbat_tests::workdir::Workdir;
use serde_json::Value;

const ONE: Content = Content::new(90, 200_000);
const TWO: Content = Content::new(91, 100_000);
const THREE: Content = Content::new(92, 1);

fn serve() -> FaultServer {
    let server = FaultServer::start();
    for (path, content) in [("/one", &ONE), ("/two", &TWO), ("/three", &THREE)] {
        server.serve(path, Version::new(content));
    }
    server.script("/gone", |_| Reply::status(410));
    server
}

fn list(server: &FaultServer) -> String {
    format!(
        "# a comment\n{}\n\n   # another\r\n  {}  \r\n{}",
        server.url("/one"),
        server.url("/two"),
        server.url("/three")
    )
}

const ALL: [(&str, &Content); 3] = [("one", &ONE), ("two", &TWO), ("three", &THREE)];

#[test]
fn several_urls_are_all_fetched() {
    let server = serve();
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(["/one", "/two", "/three"].map(|path| server.url(path)))
        .run();
    outcome.expect_code(0);
    work.assert_holds(&ALL);
    assert_eq!(outcome.events_named("done").len(), 3, "{outcome}");
    assert_eq!(
        outcome.event("start")["urls"].as_array().map(Vec::len),
        Some(3)
    );
}

#[test]
fn a_list_in_a_file_is_fetched() {
    let server = serve();
    let (work, lists) = (Workdir::new(), Workdir::new());
    fs::write(lists.join("list"), list(&server)).expect("written");
    work.get()
        .arg("-i")
        .arg(lists.join("list"))
        .run()
        .expect_code(0);
    work.assert_holds(&ALL);
}

#[test]
fn a_list_on_standard_input_is_fetched() {
    let server = serve();
    let work = Workdir::new();
    work.get()
        .args(["--input-file", "-"])
        .stdin(list(&server))
        .run()
        .expect_code(0);
    work.assert_holds(&ALL);
}

#[test]
fn a_list_and_arguments_add_up() {
    let server = serve();
    let work = Workdir::new();
    work.get()
        .args(["-i", "-"])
        .arg(server.url("/one"))
        .stdin(format!(
            "{}\n{}\n",
            server.url("/two"),
            server.url("/three")
        ))
        .run()
        .expect_code(0);
    work.assert_holds(&ALL);
}

#[test]
fn a_directory_is_where_the_files_go() {
    let server = serve();
    let (work, target) = (Workdir::new(), Workdir::new());
    work.get()
        .arg("-d")
        .arg(target.path())
        .args([server.url("/one"), server.url("/two")])
        .run()
        .expect_code(0);
    work.assert_holds(&[]);
    target.assert_holds(&[("one", &ONE), ("two", &TWO)]);
}

#[test]
fn when_some_fail_the_rest_is_done() {
    let server = serve();
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(["/one", "/gone", "/three"].map(|path| server.url(path)))
        .run();
    outcome.expect_code(3).expect_said(&["410"]);
    work.assert_holds(&[("one", &ONE), ("three", &THREE)]);
    assert_eq!(outcome.event("error")["url"], server.url("/gone"));
    assert_eq!(outcome.events_named("done").len(), 2, "{outcome}");
}

#[test]
fn when_all_fail_for_one_reason_the_code_says_which() {
    let server = serve();
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(["/gone", "/missing"].map(|path| server.url(path)))
        .run();
    outcome.expect_code(1);
    assert_eq!(outcome.events_named("error").len(), 2, "{outcome}");
    work.assert_holds(&[]);
}

#[test]
fn the_same_url_twice_is_fetched_without_harm() {
    let server = serve();
    let work = Workdir::new();
    let outcome = work
        .get()
        .args([server.url("/one"), server.url("/one")])
        .run();
    outcome.expect_code(0);
    let names = fairbat_tests::expect::names_in(work.path());
    assert!(names == ["one"] || names == ["one", "one.1"], "{names:?}");
    for name in names {
        fairbat_tests::expect::assert_content(&work.join(&name), &ONE);
    }
}

#[test]
fn a_list_that_cannot_be_used_is_a_clear_error() {
    let work = Workdir::new();
    work.get()
        .args(["-i", "missing-list"])
        .run()
        .expect_code_in(&[1, 2])
        .expect_said(&["missing-list"]);
    work.get()
        .args(["-i", "-"])
        .stdin("http://127.0.0.1:1/x\nnot a url\n")
        .run()
        .expect_code(2)
        .expect_said(&["not a url", "line 2"]);
    work.get()
        .args(["-i", "-"])
        .stdin("# nothing\n")
        .run()
        .expect_code(2);
    work.assert_holds(&[]);
}

#[test]
fn a_line_may_have_a_deadline_of_its_own() {
    let server = serve();
    let list = format!(
        "{} deadline=4h\n{}\n{}\tdeadline=2099-01-01T00:00:00Z\r\n",
        server.url("/one"),
        server.url("/two"),
        server.url("/three")
    );
    // One that is over makes late whatever has no other.
    let over: &[&str] = &["--deadline", "2020-01-01T00:00:00Z"];
    for (flags, two, code) in [
        (&[][..], Value::Null, 0),
        (&["--deadline", "1h"], true.into(), 0),
        (over, false.into(), 11),
    ] {
        let work = Workdir::new();
        let outcome = work
            .get()
            .args(["--fail-late", "-i", "-"])
            .args(flags)
            .stdin(list.clone())
            .run();
        outcome.expect_code(code);
        work.assert_holds(&ALL);
        for (path, met) in [
            ("/one", true.into()),
            ("/two", two),
            ("/three", true.into()),
        ] {
            let events = outcome.events_named("done");
            let done = events.iter().find(|done| done["url"] == server.url(path));
            let found = done.map(|done| &done["deadline_met"]);
            assert_eq!(found, Some(&met), "{path}: {outcome}");
        }
    }
}

#[test]
fn a_line_with_wrong_attributes_is_refused_by_its_number() {
    let work = Workdir::new();
    for (attributes, advice) in [
        ("deadline=soon", "soon"),
        ("deadline=", "deadline=06:00"),
        ("dealine=4h", "deadline=WHEN"),
        ("deadline=4h deadline=5h", "two deadlines"),
    ] {
        let outcome = work
            .get()
            .args(["-i", "-"])
            .stdin(format!(
                "# a list\nhttp://127.0.0.1:1/x deadline=4h\nhttp://127.0.0.1:1/y {attributes}\n"
            ))
            .run();
        outcome.expect_code(2).expect_said(&[advice]);
        outcome.expect_said(&["standard input, line 3: "]);
        work.assert_holds(&[]);
    }
}

#[test]
fn many_small_files_share_the_connections() {
    let server = FaultServer::start();
    let contents: Vec<_> = (0..100)
        .map(|index| (format!("f{index}"), Content::new(1000 + index, 500 + index)))
        .collect();
    for (name, content) in &contents {
        server.serve(&format!("/{name}"), Version::new(content));
    }
    let work = Workdir::new();
    work.get()
        .args(
            contents
                .iter()
                .map(|(name, _)| server.url(&format!("/{name}"))),
        )
        .run()
        .expect_code(0);
    let files: Vec<_> = contents
        .iter()
        .map(|(name, c)| (name.as_str(), c))
        .collect();
    work.assert_holds(&files);
    let connections = server.requests().iter().map(|r| r.connection).max();
    assert!(connections < Some(50), "{connections:?}: not kept alive");
}
