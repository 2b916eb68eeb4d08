//! Many files in one run: the limits on connections and on open files hold
//! for all of them together.

use std::time::Duration;

use fairbat_tests::bin::Fairbat;
use fairbat_tests::content::Content;
use fairbat_tests::fault::FaultServer;
use fairbat_tests::version::Version;
use fairbat_tests::workdir::Workdir;

/// Names and contents of so many files of about `size` bytes.
fn contents(count: u64, size: u64) -> Vec<(String, Content)> {
    let content = |index| Content::new(3000 + index, size + index);
    (0..count)
        .map(|index| (format!("f{index}"), content(index)))
        .collect()
}

fn serve(contents: &[(String, Content)]) -> FaultServer {
    let server = FaultServer::start();
    for (name, content) in contents {
        server.serve(&format!("/{name}"), Version::new(content));
    }
    server
}

/// A list for `-i -`.
fn list(server: &FaultServer, contents: &[(String, Content)]) -> String {
    let urls = contents
        .iter()
        .map(|(name, _)| server.url(&format!("/{name}\n")));
    urls.collect()
}

#[track_caller]
fn assert_holds(work: &Workdir, contents: &[(String, Content)]) {
    let files: Vec<_> = contents
        .iter()
        .map(|(name, content)| (name.as_str(), content))
        .collect();
    work.assert_holds(&files);
}

#[test]
fn streams_with_a_deadline_keep_to_the_limit_on_connections() {
    const MOST: usize = 3;
    let contents = contents(60, 100_000);
    let server = FaultServer::start();
    for (name, content) in &contents {
        let version = Version::new(content);
        server.script(&format!("/{name}"), move |_| {
            version.whole().without("Accept-Ranges").rate(500_000)
        });
    }
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(["-s", "3", "-x", "3", "--deadline", "1h", "-i", "-"])
        .stdin(list(&server, &contents))
        .run();
    outcome.expect_code(0);
    assert_holds(&work, &contents);
    let most = server.most_active();
    assert!(most <= MOST, "{most} requests in progress at once");
}

#[test]
fn more_files_than_may_be_open_at_once_are_all_fetched() {
    let contents = contents(300, 2000);
    let server = serve(&contents);
    for deadline in [&["--deadline", "1h"][..], &[]] {
        let work = Workdir::new();
        // Without the events: those of so many files are no help to a reader.
        let outcome = Fairbat::new(work.path())
            .args(["get", "--quiet", "-i", "-"])
            .args(deadline)
            .open_files(256)
            .timeout(Duration::from_secs(120))
            .stdin(list(&server, &contents))
            .run();
        outcome.expect_code(0);
        assert_holds(&work, &contents);
    }
}

#[test]
fn small_files_are_fetched_one_after_the_other_over_one_connection() {
    let contents = contents(40, 500);
    let server = serve(&contents);
    for deadline in [&["--deadline", "1h"][..], &[]] {
        let work = Workdir::new();
        let outcome = work
            .get()
            .args(deadline)
            .args(["-x", "1", "-i", "-"])
            .stdin(list(&server, &contents))
            .run();
        outcome.expect_code(0);
        assert_holds(&work, &contents);
        assert_eq!(server.most_active(), 1, "{outcome}");
    }
}
