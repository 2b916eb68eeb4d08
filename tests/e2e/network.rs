//! The network goes away and comes back.

use std::time::Duration;

use fairbat_tests::bin::Fairbat;
use fairbat_tests::content::Content;
use fairbat_tests::netns::{Link, SERVER};
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::workdir::Workdir;

/// Six seconds at the link's rate.
const FILE: Content = Content::new(150, 12_000_000);
const RATE: &str = "16mbit";

fn serve(link: &Link) -> Nginx {
    let nginx = Nginx::start(&Config {
        namespace: Some(link.server().to_owned()),
        address: SERVER.parse().expect("an address"),
        ..Config::default()
    });
    nginx.put("file", &FILE);
    nginx
}

fn get(link: &Link, nginx: &Nginx, work: &Workdir) -> Fairbat {
    work.get()
        .namespace(link.client())
        .timeout(Duration::from_secs(120))
        .args(["--file-allocation", "none", "-o", "file"])
        .args(["--connect-timeout", "3s", "--retry-max-wait", "3s"])
        .arg(nginx.url("file"))
}

#[test]
fn a_link_that_is_down_for_10_s_is_waited_out() {
    let Some(link) = Link::new(RATE) else { return };
    let nginx = serve(&link);
    let work = Workdir::new();
    let mut run = get(&link, &nginx, &work)
        .args(["--stall-timeout", "3s"])
        .spawn();
    run.wait_for_progress(&work.join("file"), FILE.len() / 4);
    link.down();
    std::thread::sleep(Duration::from_secs(10));
    assert!(run.is_running(), "gave up");
    link.up();
    let outcome = run.wait();
    outcome.expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
    assert!(!outcome.events_named("retry").is_empty(), "{outcome}");
    let sent = nginx.sent_bytes();
    assert!(
        sent < FILE.len() * 3 / 2,
        "{sent} bytes sent: it started over"
    );
}

#[test]
fn a_link_that_stays_down_is_left_at_max_time_and_the_next_run_resumes() {
    let Some(link) = Link::new(RATE) else { return };
    let nginx = serve(&link);
    let work = Workdir::new();
    let get = get(&link, &nginx, &work);
    let mut run = get.clone().args(["--max-time", "5s"]).spawn();
    run.wait_for_progress(&work.join("file"), FILE.len() / 10);
    link.down();
    let outcome = run.wait();
    outcome.expect_code(10);
    assert!(outcome.elapsed >= Duration::from_secs(5), "{outcome}");
    assert_eq!(outcome.event("error")["kind"], "max_time", "{outcome}");
    assert!(!work.join("file").exists());

    link.up();
    let again = get.run();
    again.expect_code(0);
    assert!(again.resumed_bytes() > 0, "{again}");
    work.assert_holds(&[("file", &FILE)]);
}

#[test]
fn a_network_that_is_not_there_at_all_is_a_temporary_error() {
    let Some(link) = Link::new(RATE) else { return };
    let nginx = serve(&link);
    link.down();
    let work = Workdir::new();
    let outcome = get(&link, &nginx, &work).args(["--retry", "2"]).run();
    outcome.expect_code(5);
    assert_eq!(outcome.event("error")["kind"], "network", "{outcome}");
    work.assert_holds(&[]);
}
