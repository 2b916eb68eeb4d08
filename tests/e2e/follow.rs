//! `--follow`: URLs that come while the run goes on.

use std::fs::File;
use std::io::Write as _;
use std::process::Command;

use fairbat_tests::bin::Running;
use fairbat_tests::content::Content;
use fairbat_tests::fault::FaultServer;
use fairbat_tests::version::Version;
use fairbat_tests::workdir::Workdir;

const ONE: Content = Content::new(190, 200_000);
const TWO: Content = Content::new(191, 300_000);

fn serve() -> FaultServer {
    let server = FaultServer::start();
    for (path, content) in [("/one", &ONE), ("/two", &TWO)] {
        server.serve(path, Version::new(content));
    }
    server
}

/// A run that follows a named pipe, with these flags besides, and the pipe's other end.
fn follow_pipe(work: &Workdir, pipes: &Workdir, flags: &[&str]) -> (Running, File) {
    let pipe = pipes.join("urls");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
    assert!(made.success(), "{made}");
    let get = work.get().args(["--follow", "-i"]).arg(&pipe).args(flags);
    let running = get.spawn();
    let urls = File::options().write(true).open(&pipe);
    (running, urls.expect("a reader"))
}

#[test]
fn urls_are_fetched_as_their_lines_come() {
    let server = serve();
    let (work, pipes) = (Workdir::new(), Workdir::new());
    let (mut running, mut urls) = follow_pipe(&work, &pipes, &[]);
    let mut tell = |path: &str| writeln!(urls, "{}", server.url(path)).expect("it reads");
    tell("/one");
    running.wait_for_event("the first file", |event| event["event"] == "done");
    work.assert_holds(&[("one", &ONE)]);
    // It waits for more.
    assert!(running.is_running());
    tell("/two");
    drop(urls);
    let outcome = running.wait();
    outcome.expect_code(0);
    work.assert_holds(&[("one", &ONE), ("two", &TWO)]);
    let control = outcome.events_named("control");
    assert!(control.iter().all(|it| it["tau"] == 5.0), "{outcome}");
}

#[test]
fn a_line_that_is_no_url_is_skipped_and_told_of() {
    let server = serve();
    let work = Workdir::new();
    let lines = format!(
        "# a list\n{}\nexample.org/f\n{} deadline=4h\n{}\n",
        server.url("/one"),
        server.url("/one"),
        server.url("/two")
    );
    let get = work.get().args(["--follow", "-i", "-"]).stdin(lines);
    let outcome = get.run();
    outcome.expect_code(2).expect_said(&[
        "standard input, line 3: example.org/f: not a URL",
        "standard input, line 4: \"deadline=4h\" is one word too many",
    ]);
    work.assert_holds(&[("one", &ONE), ("two", &TWO)]);
}

#[test]
fn each_file_has_one_connection_and_all_keep_to_the_limit() {
    let contents: Vec<_> = (0..12)
        .map(|index| (format!("f{index}"), Content::new(7000 + index, 400_000)))
        .collect();
    let server = FaultServer::start();
    for (name, content) in &contents {
        let version = Version::new(content);
        server.script(&format!("/{name}"), move |request| {
            version.answer(request).rate(400_000)
        });
    }
    let work = Workdir::new();
    let urls = contents
        .iter()
        .map(|(name, _)| server.url(&format!("/{name}\n")));
    // So few may wait that all connections are in use.
    let flags = [
        "--follow",
        "-x",
        "3",
        "--tau",
        "0.1",
        "--chunk-size",
        "100K",
    ];
    let refused = work.get().args(flags).args(["-i", "-"]).run();
    refused.expect_code(2).expect_said(&["--chunk-size"]);
    let get = work.get().args(&flags[..5]).args(["-i", "-"]);
    let outcome = get.stdin(urls.collect::<String>()).run();
    outcome.expect_code(0);
    let files: Vec<_> = contents
        .iter()
        .map(|(name, it)| (name.as_str(), it))
        .collect();
    work.assert_holds(&files);
    assert!(
        (2..=3).contains(&server.most_active()),
        "{}",
        server.most_active()
    );
    for (name, _) in &contents {
        let requests = server.requests_for(&format!("/{name}")).len();
        assert!(
            requests <= 2,
            "{requests} requests: a probe, and all at once"
        );
    }
}

#[test]
fn a_run_that_is_stopped_while_it_waits_for_more_says_so() {
    let server = serve();
    for (flags, signal, code) in [
        (&[][..], Some("INT"), 130),
        (&["--max-time", "10s"], None, 10),
    ] {
        let (work, pipes) = (Workdir::new(), Workdir::new());
        let (mut running, mut urls) = follow_pipe(&work, &pipes, flags);
        writeln!(urls, "{}", server.url("/one")).expect("it reads");
        running.wait_for_event("the file", |event| event["event"] == "done");
        signal.into_iter().for_each(|name| running.signal(name));
        running.wait().expect_code(code);
        drop(urls);
    }
}
