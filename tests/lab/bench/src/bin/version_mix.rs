//! What download tools make of a file that changes on the server between two
//! runs: prints a Markdown table, `fairbat` in the last column.
//!
//! Each tool begins to fetch the old version from a rate-limited nginx, is
//! interrupted (SIGINT, so that it may save what it needs), and continues
//! with the same command after the file has changed.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fairbat_tests::bin::fairbat_binary;
use fairbat_tests::content::Content;
use fairbat_tests::nginx::{Config, Nginx, long_ago};
use fairbat_tests::peers::{self, Peer};
use fairbat_tests::poll::wait_until;

const SIZE: u64 = 4_000_000;
const OLD: Content = Content::new(1, SIZE);
const NEW: Content = Content::new(2, SIZE);
const LONGER: Content = Content::new(3, SIZE + SIZE / 4);
const SHORTER: Content = Content::new(4, SIZE / 2);

/// Byte/s; the first run is interrupted after a quarter of the old version.
const RATE: u64 = 2_000_000;

/// What changes between the runs, and what the server says about it.
struct Case {
    name: &'static str,
    etag: bool,
    last_modified: bool,
    modified: bool,
    new: Content,
}

const CASES: [Case; 7] = [
    Case {
        name: "unchanged",
        etag: true,
        last_modified: true,
        modified: false,
        new: OLD,
    },
    Case {
        name: "same size, new ETag",
        etag: true,
        last_modified: true,
        modified: true,
        new: NEW,
    },
    Case {
        name: "same size, only a new mtime",
        etag: false,
        last_modified: true,
        modified: true,
        new: NEW,
    },
    Case {
        name: "longer, same mtime, no ETag",
        etag: false,
        last_modified: true,
        modified: false,
        new: LONGER,
    },
    Case {
        name: "shorter, same mtime, no ETag",
        etag: false,
        last_modified: true,
        modified: false,
        new: SHORTER,
    },
    Case {
        name: "longer, no validator",
        etag: false,
        last_modified: false,
        modified: false,
        new: LONGER,
    },
    Case {
        name: "same size, no validator",
        etag: false,
        last_modified: false,
        modified: false,
        new: NEW,
    },
];

#[derive(Clone, Copy)]
enum Tool {
    Peer(Peer),
    Fairbat,
}

impl Tool {
    const ALL: [Self; 4] = [
        Self::Peer(Peer::Curl),
        Self::Peer(Peer::Aria2),
        Self::Peer(Peer::Wget),
        Self::Fairbat,
    ];

    fn label(self) -> &'static str {
        match self {
            Self::Peer(peer) => peer.label(),
            Self::Fairbat => "fairbat get",
        }
    }

    fn args(self, url: &str) -> Vec<String> {
        match self {
            Self::Peer(peer) => peer.continue_args(url, "out"),
            Self::Fairbat => {
                let binary = fairbat_binary().to_str().expect("a UTF-8 path");
                [
                    binary,
                    "get",
                    "-q",
                    "--file-allocation",
                    "none",
                    "-o",
                    "out",
                    url,
                ]
                .map(str::to_owned)
                .to_vec()
            }
        }
    }

    /// Where the bytes of an unfinished download are.
    fn growing(self) -> &'static str {
        match self {
            Self::Peer(_) => "out",
            Self::Fairbat => "out.part",
        }
    }
}

fn main() {
    print!("| between the runs |");
    for tool in Tool::ALL {
        print!(" {} |", tool.label());
    }
    println!("\n|---|{}", "---|".repeat(Tool::ALL.len()));
    for case in &CASES {
        print!("| {} |", case.name);
        for tool in Tool::ALL {
            print!(" {} |", try_out(tool, case));
        }
        println!();
    }
}

fn try_out(tool: Tool, case: &Case) -> String {
    let nginx = Nginx::start(&Config {
        limit_rate: Some(RATE),
        etag: case.etag,
        last_modified: case.last_modified,
        ..Config::default()
    });
    nginx.put("file", &OLD);
    let directory = tempfile::tempdir().expect("a temp dir");
    let args = tool.args(&nginx.url("file"));

    let mut first = peers::start(&args, directory.path());
    let growing = directory.path().join(tool.growing());
    wait_until("a quarter of the file", Duration::from_secs(20), || {
        let over = first.try_wait().expect("wait for a tool").is_some();
        assert!(!over, "{} ended too soon", tool.label());
        growing.metadata().is_ok_and(|file| file.len() >= SIZE / 4)
    });
    interrupt(first.id());
    peers::finish(&mut first);

    if case.new != OLD {
        let later = long_ago() + Duration::from_secs(86_400);
        let modified = if case.modified { later } else { long_ago() };
        nginx.put_at("file", &case.new, modified);
    }
    let status = peers::finish(&mut peers::start(&args, directory.path()));
    let success = status.success();
    let what = verdict(&directory.path().join("out"), &case.new);
    match (success, status.code()) {
        (true, _) => what.to_owned(),
        (false, Some(code)) => format!("exit {code}, {what}"),
        (false, None) => format!("killed, {what}"),
    }
}

fn interrupt(id: u32) {
    let status = Command::new("sh")
        .args(["-c", "kill -s INT \"$0\""])
        .arg(id.to_string())
        .status()
        .expect("start sh");
    assert!(status.success(), "kill: {status}");
}

/// What the file in place is, in words; right is the version the server has.
fn verdict(path: &Path, new: &Content) -> &'static str {
    let is = |content: &Content| matches!(content.first_difference(path), Ok(None));
    if !path.exists() {
        "no file"
    } else if is(new) {
        "right"
    } else if is(&OLD) {
        "the old version"
    } else {
        "**a mixture**"
    }
}
