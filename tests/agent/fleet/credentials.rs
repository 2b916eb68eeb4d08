//! Credentials as `make-credentials` makes them, against a server that checks them.

use std::fs;
use std::path::Path;
use std::process::Command;

use fairbat_tests::nats::Nats;
use fairbat_tests::netns::skipped;
use fairbat_tests::poll::wait_until;
use fairbat_tests::secret::write_secret;
use tempfile::TempDir;

use super::{fleet, said_by};
use crate::service::{Place, SOON};

/// A directory with the script, where it keeps its keys.
struct Maker(TempDir);

impl Maker {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temp dir");
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../dist/nats/make-credentials");
        let copied = fs::copy(script, directory.path().join("make-credentials"));
        copied.expect("the script");
        Self(directory)
    }

    fn run(&self, words: &[&str]) {
        let script = self.0.path().join("make-credentials");
        let output = Command::new("sh").arg(script).args(words).output();
        let output = output.expect("a shell");
        assert!(output.status.success(), "{output:?}");
    }

    /// What a server has to know.
    fn operator(&self) -> String {
        fs::read_to_string(self.0.path().join("operator.conf")).expect("operator.conf")
    }

    /// Installs the credentials of a host.
    fn install(&self, host: &str, to: &Path) {
        let made = self.0.path().join(format!("{host}.berlin.creds"));
        write_secret(to, &fs::read_to_string(made).expect("credentials"));
    }
}

/// A place for the agent of a host, which has these credentials.
fn host(nats: &Nats, name: &str, maker: &Maker) -> Place {
    let place = Place::new();
    let credentials = place.join("creds");
    maker.install(name, &credentials);
    let fleet = format!(
        "[fleet]\nurl = {:?}\nsite = \"berlin\"\nhost = {name:?}\ncredentials = {credentials:?}",
        nats.url()
    );
    place.configure("connections = 1", &fleet);
    place
}

fn takes_part(place: &Place) {
    place.wait_for_log("takes part in the lane of the site", 1);
}

#[test]
fn new_credentials_are_used_and_missing_rights_are_told() {
    if Command::new("openssl").arg("version").output().is_err() {
        return skipped("make-credentials needs OpenSSL");
    }
    let (maker, other) = (Maker::new(), Maker::new());
    maker.run(&["--coordinate", "berlin", "a"]);
    maker.run(&["berlin", "b"]);
    other.run(&["berlin", "b"]);
    let nats = Nats::start_with(&maker.operator());
    let a = host(&nats, "a", &maker);
    let b = host(&nats, "b", &other);
    let (_of_a, of_b) = (a.start(), b.start());
    takes_part(&a);
    b.wait_for_log("refuses this agent", 1);
    wait_until("its status to say why", SOON, || {
        let refused = said_by(&fleet(&b, &["status"]), 5).to_lowercase();
        let status = of_b.order(&["status"]).to_lowercase();
        let reason = "authorization violation";
        refused.contains(reason) && status.contains(reason)
    });
    maker.install("b", &b.join("creds"));
    takes_part(&b);
    // b may not hold anybody.
    let refused = said_by(&fleet(&b, &["hold", "a"]), 1);
    assert!(refused.contains("do not allow that"), "{refused}");
    let held = said_by(&fleet(&a, &["hold", "b", "--json"]), 0);
    assert!(held.contains("\"host\":\"b\""), "{held}");
    wait_until("b to hear of it", SOON, || {
        of_b.order(&["status"]).contains("this host is held")
    });
}
