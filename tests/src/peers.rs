//! Other download tools, run beside `fairbat` for comparison and to check the
//! harness itself.

use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long a peer may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A download tool that is not ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// curl, continuing with `-C -`.
    Curl,
    /// aria2c, continuing with `-c`, one connection.
    Aria2,
    /// GNU wget, continuing with `-c`.
    Wget,
}

impl Peer {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Curl, Self::Aria2, Self::Wget];

    /// The command line that fetches (or continues) `url` as `name`.
    #[must_use]
    pub fn continue_args(self, url: &str, name: &str) -> Vec<String> {
        let args: &[&str] = match self {
            Self::Curl => &["curl", "-sS", "-f", "-C", "-", "-o", name, url],
            Self::Aria2 => &[
                "aria2c",
                "-q",
                "-c",
                "-x1",
                "-s1",
                "--no-conf",
                "--file-allocation=none",
                "-o",
                name,
                url,
            ],
            Self::Wget => &["wget", "-q", "--no-config", "-c", "-O", name, url],
        };
        args.iter().map(ToString::to_string).collect()
    }

    /// The command as one would type it.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Curl => "curl -C -",
            Self::Aria2 => "aria2c -c",
            Self::Wget => "wget -c",
        }
    }
}

/// Starts a command line in a directory, without the proxies and settings of
/// whoever runs the tests. Panics, saying what to install, when the program
/// is missing.
#[must_use]
pub fn start(args: &[String], directory: &Path) -> Child {
    let (program, rest) = args.split_first().expect("a program");
    Command::new(program)
        .args(rest)
        .current_dir(directory)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| {
            panic!("start {program}: {error}; install the Debian packages curl, aria2 and wget")
        })
}

/// Waits for a peer's end; kills it and panics when that takes too long.
pub fn finish(child: &mut Child) -> ExitStatus {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("wait for a peer") {
            return status;
        }
        if begin.elapsed() > TIMEOUT {
            let _ = child.kill();
            let _ = child.wait();
            panic!("a peer did not end within {TIMEOUT:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
