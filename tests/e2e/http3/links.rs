//! Over a link of a test's own: a client whose address changes, and a name that says in the DNS
//! where HTTP/3 is spoken.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fairbat_tests::content::Content;
use fairbat_tests::netns::{CLIENT, Link, SERVER};
use fairbat_tests::poll::wait_until;
use fairbat_tests::served::{serving, started};
use fairbat_tests::tls::Identity;
use fairbat_tests::workdir::Workdir;

use super::get;

/// Twenty-five seconds at the link's rate.
const FILE: Content = Content::new(311, 50_000_000);
const RATE: &str = "16mbit";

/// So often the address changes, ...
const MOVES: usize = 20;

/// ... and so much comes over each.
const BETWEEN_MOVES: u64 = 1_500_000;

/// A client that has stopped is not waited for.
const GRACE: Duration = Duration::from_secs(20);

#[test]
fn a_download_goes_on_from_each_new_address() {
    let Some(link) = Link::new(RATE) else {
        return;
    };
    let site = Workdir::new();
    let identity = Identity::issue(site.path(), &[SERVER], 2099);
    FILE.write_to(&site.join("file")).expect("a file");
    let serving = serving(site.path(), &identity).namespace(link.server());
    let (_server, url) = started(&serving.args(["--listen", &format!("{SERVER}:0")]));
    let work = Workdir::new();
    let get = get(&work, &identity, "only", &format!("{url}file"))
        .namespace(link.client())
        .timeout(Duration::from_secs(150));
    let mut running = get.spawn();
    let come = |bytes| {
        let (before, at) = (link.received(), Instant::now());
        wait_until("data to come", GRACE, || link.received() >= before + bytes);
        at.elapsed()
    };
    come(BETWEEN_MOVES);
    let mut longest = Duration::ZERO;
    for number in 0..MOVES {
        let address = |number: usize| match number {
            0 => CLIENT.to_owned(),
            _ => format!("10.77.0.{}", 10 + number),
        };
        link.remove_address(&address(number));
        link.add_address(&address(number + 1));
        // What was on its way to the old address is not for it.
        longest = longest.max(come(150_000));
        come(BETWEEN_MOVES);
        assert!(running.is_running(), "it has ended after {number} moves");
    }
    let outcome = running.wait();
    outcome.expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
    assert_eq!(outcome.event("done")["protocol"], "h3", "{outcome}");
    let tries = outcome.events_named("retry").len();
    eprintln!("{MOVES} moves: 150 kB after {longest:?} at the latest, {tries} tries again");
    assert_eq!(tries, 0, "a connection did not move along: {outcome}");
}

/// dnsmasq in the server's namespace; it ends with the test.
struct Dns(Child);

impl Drop for Dns {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What `ip netns exec` shows as `/etc` in a namespace; removed when dropped.
struct Etc(std::path::PathBuf);

impl Drop for Etc {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_record_in_the_dns_leads_the_first_request_to_http3() {
    let Some(link) = Link::new("100mbit") else {
        return;
    };
    let etc = Etc(format!("/etc/netns/{}", link.client()).into());
    fs::create_dir_all(&etc.0).expect("a directory");
    fs::write(etc.0.join("resolv.conf"), format!("nameserver {SERVER}\n")).expect("a file");
    // An HTTPS record (RFC 9460): priority 1, fairbat.test, alpn h3, port 9443.
    let record = "_8443._https.fairbat.test,65,000107666169726261740474657374000001000302683300030\
                  00224e3";
    let dns = Command::new("ip")
        .args([
            "netns",
            "exec",
            link.server(),
            "dnsmasq",
            "--keep-in-foreground",
        ])
        .args([
            "--no-resolv",
            "--no-hosts",
            "--conf-file=/dev/null",
            "--user=root",
        ])
        .args([
            "--pid-file=",
            "--bind-interfaces",
            "--listen-address",
            SERVER,
        ])
        .arg(format!("--address=/fairbat.test/{SERVER}"))
        .arg(format!("--dns-rr={record}"))
        .stderr(Stdio::null())
        .spawn()
        .expect("start dnsmasq: has .ci/deps run?");
    let _dns = Dns(dns);
    wait_until("the name server to listen", GRACE, || {
        let listening = Command::new("ip")
            .args([
                "netns",
                "exec",
                link.server(),
                "ss",
                "-lunH",
                "sport",
                "=",
                ":53",
            ])
            .output();
        !listening.expect("ss of iproute2").stdout.is_empty()
    });

    let site = Workdir::new();
    let identity = Identity::issue(site.path(), &["fairbat.test"], 2099);
    let small = Content::new(312, 300_000);
    small.write_to(&site.join("file")).expect("a file");
    let serving = serving(site.path(), &identity).namespace(link.server());
    let (_server, _url) = started(&serving.args([
        "--listen",
        &format!("{SERVER}:9443"),
        "--allow-host",
        "fairbat.test",
    ]));
    // Nothing listens there: only the record leads on.
    let url = "https://fairbat.test:8443/file";
    // A request waits for the DNS for a moment only, however busy the machine is.
    let attempts = (0..5).map(|_| {
        let work = Workdir::new();
        let get = get(&work, &identity, "auto", url).args(["--retry", "0"]);
        (get.namespace(link.client()).run(), work)
    });
    let mut attempts = attempts.filter(|(outcome, _)| {
        // Over TCP, where nobody listens.
        outcome.expect_code_in(&[0, 5]);
        outcome.code == Some(0)
    });
    let (outcome, work) = attempts.next().expect("the record is followed");
    work.assert_holds(&[("file", &small)]);
    assert_eq!(outcome.event("done")["protocol"], "h3", "{outcome}");
}
