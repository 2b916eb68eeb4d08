//! The suites over HTTP/3: in a program whose name begins with `over_http3`, what the tests' servers
//! have is asked for by way of Caddy, which speaks HTTP/3 to the client and HTTP/1.1 to them.
//!
//! One Caddy serves the tests of a process. It takes the port of a server from the first part of
//! the path.

use std::ffi::OsStr;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::caddy::Caddy;
use crate::tls::Identity;

/// What stands between the client and the servers.
struct Front {
    caddy: Caddy,
    authority: PathBuf,
}

/// None where the suites go over TCP. It ends with the process.
static FRONT: LazyLock<Option<Front>> = LazyLock::new(|| {
    let own = std::env::current_exe().expect("the path of this program");
    let name = own.file_name().and_then(OsStr::to_str);
    name.is_some_and(|name| name.starts_with("over_http3"))
        .then(|| {
            let directory = own_directory();
            let identity = Identity::issue(&directory, &["localhost"], 2099);
            Front {
                caddy: Caddy::start(&directory, &identity, DIRECTIVES),
                authority: identity.authority,
            }
        })
});

/// A directory that is there as long as this process. Nothing is dropped at its end, so those of
/// processes that have ended are removed by the next ones.
fn own_directory() -> PathBuf {
    const PREFIX: &str = "fairbat-front-";
    let all = std::env::temp_dir();
    for entry in fs::read_dir(&all).into_iter().flatten().flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        let process = name.strip_prefix(PREFIX);
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            // Another process may be faster.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let own = all.join(format!("{PREFIX}{}", std::process::id()));
    // Numbers of processes come again.
    let _ = fs::remove_dir_all(&own);
    fs::create_dir(&own).expect("a directory");
    own
}

const DIRECTIVES: &str = "
@server path_regexp server ^/([0-9]+)(/.*)$
handle @server {
    rewrite * {re.server.2}
    reverse_proxy 127.0.0.1:{re.server.1} {
        flush_interval 1ms
        transport http {
            compression off
            keepalive off
        }
    }
}";

/// The URL by which a client reaches `path`, which begins with a slash, of the server at this
/// address.
#[must_use]
pub fn url(address: SocketAddr, path: &str) -> String {
    match &*FRONT {
        Some(front) => front.caddy.url(&format!("{}{path}", address.port())),
        None => format!("http://{address}{path}"),
    }
}

/// Whether there is one. What the servers have sent tells nothing of the client then: Caddy reads
/// ahead. And Caddy 2.6 lets a body of unknown length look whole that has broken off.
#[must_use]
pub fn is_there() -> bool {
    FRONT.is_some()
}

/// What a client is told besides.
#[must_use]
pub fn words() -> Vec<String> {
    let words = FRONT.as_ref().map(|front| {
        let authority = front.authority.display().to_string();
        ["--http3", "only", "--cacert", &authority].map(str::to_owned)
    });
    words.into_iter().flatten().collect()
}
