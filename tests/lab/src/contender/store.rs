//! The store that a contender pushes to: an S3 server at the far end of the link,
//! which keeps objects as files in memory and so is never what is slow.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fairbat_tests::bin::s3_server_binary;

use super::process::Program;
use super::site::Site;
use crate::host::Class;

/// The only bucket.
pub(super) const BUCKET: &str = "bucket";

/// Who may write to it.
pub(super) const ACCESS_KEY: &str = "lab-access";
/// By what.
pub(super) const SECRET_KEY: &str = "lab-secret";

/// How long it may take to listen.
const GRACE: Duration = Duration::from_secs(5);

/// What it says before where it listens.
const ANNOUNCEMENT: &str = "http://";

/// A store at work; ends when it is dropped.
#[derive(Debug)]
pub(super) struct Store {
    _program: Program,
    address: SocketAddr,
}

impl Store {
    /// Starts it at the host that the data goes to.
    pub(super) fn start(site: &Site) -> io::Result<Self> {
        fs::create_dir_all(site.download.join(BUCKET))?;
        let mut command = Command::new(s3_server_binary());
        command
            .arg(&site.download)
            .arg(format!("{}:0", site.client.address(Class::Background)))
            .args([ACCESS_KEY, SECRET_KEY]);
        let mut program = Program::start(&site.client, &site.work, "store", command)?;
        let address = program.tells(GRACE, |program| {
            let said = program.stdout();
            let (line, _) = said.split_once('\n')?;
            line.strip_prefix(ANNOUNCEMENT)?.parse().ok()
        })?;
        Ok(Self {
            _program: program,
            address,
        })
    }

    /// Its URL, without a path.
    pub(super) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where it listens.
    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }
}

/// Bytes of the objects below this directory of a bucket.
pub(super) fn bytes(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else {
        return 0;
    };
    let of = |entry: fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => bytes(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.filter_map(Result::ok).map(of).sum()
}
