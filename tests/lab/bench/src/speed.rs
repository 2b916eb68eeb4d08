//! Whole files, as fast as they come.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use super::Extent;
use super::machine::{MEMORY, RESERVE, free_space, need_memory};
use super::measure::{in_turns, measure};
use super::record::{Medium, Sample, Series};
use fairbat_tests::bin::fairbat_binary;
use fairbat_tests::content::Content;
use fairbat_tests::expect::assert_content;
use fairbat_tests::nginx::{Config, Nginx};

/// Name of the file that is fetched.
const TARGET: &str = "out";

/// A way to fetch a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    Fairbat,
    Curl,
    CurlDurable,
    Aria2,
    Aria2Durable,
}

impl Tool {
    /// Those to compare: on a disk `fairbat` makes the file durable before it
    /// says done, so there the others also appear followed by sync(1).
    fn on(medium: Medium) -> &'static [Self] {
        match medium {
            Medium::Memory => &[Self::Fairbat, Self::Curl, Self::Aria2],
            Medium::Disk => &[
                Self::Fairbat,
                Self::CurlDurable,
                Self::Aria2Durable,
                Self::Curl,
                Self::Aria2,
            ],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Fairbat => "fairbat get",
            Self::Curl => "curl",
            Self::CurlDurable => "curl && sync",
            Self::Aria2 => "aria2c -x4",
            Self::Aria2Durable => "aria2c -x4 && sync",
        }
    }

    /// As one would type it.
    fn typed(self) -> String {
        let fetch = match self {
            Self::Fairbat => "fairbat get -q -o out URL",
            Self::Curl | Self::CurlDurable => "curl -q -sS -f -o out URL",
            Self::Aria2 | Self::Aria2Durable => {
                "aria2c --no-conf -q -x4 -s4 --file-allocation=falloc -o out URL"
            }
        };
        let sync = match self {
            Self::CurlDurable | Self::Aria2Durable => " && sync out",
            Self::Fairbat | Self::Curl | Self::Aria2 => "",
        };
        format!("{fetch}{sync}")
    }

    fn args(self, url: &str) -> Vec<String> {
        let typed = self.typed().replace("URL", url);
        if typed.contains("&&") {
            return vec!["sh".to_owned(), "-c".to_owned(), typed];
        }
        let mut args: Vec<_> = typed.split(' ').map(str::to_owned).collect();
        if self == Self::Fairbat {
            args[0] = fairbat_binary()
                .to_str()
                .expect("a path in UTF-8")
                .to_owned();
        }
        args
    }
}

/// Measures all tools on both media.
pub(super) fn run(extent: &Extent, seed: u64, scratch: &Path) -> Vec<Series> {
    let memory = tempfile::tempdir_in(MEMORY).expect("a directory in memory");
    let disk = tempfile::tempdir_in(scratch).expect("a directory on the disk");
    check_space(extent.size, disk.path());
    let content = Content::new(seed, extent.size);
    let served = memory.path().join("served");
    content.write_to(&served).expect("write the file to serve");
    let nginx = Nginx::start(&Config::default());
    symlink(&served, nginx.path("file")).expect("serve it");
    let mut all = Vec::new();
    for (medium, directory) in [(Medium::Memory, memory.path()), (Medium::Disk, disk.path())] {
        let place = Place {
            medium,
            directory,
            url: nginx.url("file"),
            content,
        };
        all.extend(place.run(extent.rounds));
    }
    all
}

fn check_space(size: u64, disk: &Path) {
    need_memory(2 * size + RESERVE);
    let (free, needed) = (free_space(disk), size + RESERVE);
    assert!(
        free >= needed,
        "the disk has {free} bytes free, {needed} are needed"
    );
}

/// Where a file is fetched to, and from.
struct Place<'a> {
    medium: Medium,
    directory: &'a Path,
    url: String,
    content: Content,
}

impl Place<'_> {
    /// All tools in turn, round after round.
    fn run(&self, rounds: u32) -> Vec<Series> {
        let tools = Tool::on(self.medium);
        let mut all: Vec<_> = tools
            .iter()
            .map(|tool| Series {
                medium: self.medium,
                tool: tool.name().to_owned(),
                command: tool.typed(),
                bytes: self.content.len(),
                samples: Vec::new(),
            })
            .collect();
        for (round, index) in in_turns(0..=rounds, tools.len()) {
            let sample = self.fetch(tools[index], round == 0);
            eprintln!(
                "{:?}, round {round} of {rounds}: {}: {:.2} s",
                self.medium,
                tools[index].name(),
                sample.elapsed_s
            );
            // Round 0 warms up.
            if round > 0 {
                all[index].samples.push(sample);
            }
        }
        all
    }

    /// One run. Its file is checked and removed.
    fn fetch(&self, tool: Tool, is_warm_up: bool) -> Sample {
        if self.medium == Medium::Disk {
            // So that it does not pay for what others have left to write.
            let synced = Command::new("sync").arg("-f").arg(self.directory).status();
            assert!(synced.is_ok_and(|status| status.success()), "sync -f");
        }
        let sample = measure(&tool.args(&self.url), self.directory, 0);
        let target = self.directory.join(TARGET);
        if is_warm_up {
            assert_content(&target, &self.content);
        } else {
            let length = fs::metadata(&target).map(|meta| meta.len());
            assert_eq!(length.ok(), Some(self.content.len()), "{tool:?}");
        }
        fs::remove_file(&target).expect("remove the fetched file");
        sample
    }
}
