//! The `fairbat serve` that both parts fetch from.

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use crate::bin::{Fairbat, Running};
use crate::poll::wait_for;
use crate::tls::Identity;

/// A server is there at once.
const GRACE: Duration = Duration::from_secs(20);

/// For three seconds after a change, a file has no ETag and no Last-Modified. Then it cannot be
/// continued, so whoever fetches it does not let another one go first.
const SETTLES_IN: Duration = Duration::from_secs(4);

/// Waits until files that have just been written are served like old ones.
pub(super) fn settle() {
    sleep(SETTLES_IN);
}

/// `fairbat serve --http3` of this directory, without an address.
pub(super) fn serving(directory: &Path, identity: &Identity) -> Fairbat {
    Fairbat::new(directory)
        .args(["serve", "--json", "--http3", "--tls-cert"])
        .arg(&identity.certificate)
        .arg("--tls-key")
        .arg(&identity.key)
        .arg(directory)
}

/// Starts it, and waits until it listens. Its URL ends with a slash.
pub(super) fn started(serving: &Fairbat) -> (Running, String) {
    let server = serving.spawn();
    let url = wait_for("the server to listen", GRACE, || {
        server.events().first()?["url"].as_str().map(str::to_owned)
    });
    (server, url)
}
