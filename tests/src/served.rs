//! `fairbat serve` over HTTP/3.

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use crate::bin::{Fairbat, Running};
use crate::tls::Identity;

/// For three seconds after a change, a file has no ETag and no Last-Modified. Then it cannot be
/// continued, so whoever fetches it does not let another one go first.
const SETTLES_IN: Duration = Duration::from_secs(4);

/// Waits until files that have just been written are served like old ones.
pub fn settle() {
    sleep(SETTLES_IN);
}

/// `fairbat serve --http3` of this directory, without an address.
#[must_use]
pub fn serving(directory: &Path, identity: &Identity) -> Fairbat {
    Fairbat::new(directory)
        .args(["serve", "--json", "--http3", "--tls-cert"])
        .arg(&identity.certificate)
        .arg("--tls-key")
        .arg(&identity.key)
        .arg(directory)
}

/// Starts it, and waits until it listens. Its URL ends with a slash.
///
/// # Panics
/// It does not listen.
#[must_use]
pub fn started(serving: &Fairbat) -> (Running, String) {
    let mut server = serving.spawn();
    server.wait_for_event("to listen", |event| event["event"] == "listening");
    let url = server.events()[0]["url"]
        .as_str()
        .expect("a URL")
        .to_owned();
    (server, url)
}
