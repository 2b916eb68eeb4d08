//! Tells the lab which commit it is built of: by the time that it measures, the checkout may
//! be another one. If the feature `bpf` is on, compiles the congestion controls of others for
//! the kernel.

use std::process::Command;

/// What the lab and the programs that it measures are built of, from this
/// directory. Where none of it is changed the commit is what was measured,
/// whatever else is.
const SOURCES: [&str; 13] = [
    "../bench",
    "../judge",
    "../run",
    "../simulation",
    "../Cargo.toml",
    "../Cargo.lock",
    "../../Cargo.toml",
    "../../content",
    "../../s3",
    "../../src",
    "../../../Cargo.toml",
    "../../../Cargo.lock",
    "../../../crates",
];

/// Where Git notes that another commit is the current one. Not the index: it
/// is written for much that changes nothing here, and each time the lab would
/// be built again.
const COMMITS: [&str; 2] = ["HEAD", "logs/HEAD"];

fn main() {
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
    }
    for name in COMMITS {
        // Which directory that is in depends on the worktree.
        if let Some(path) = git(&["rev-parse", "--git-path", name]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    println!("cargo::rustc-env=FAIRBAT_LAB_COMMIT={}", commit());
    #[cfg(feature = "bpf")]
    rivals::compile();
}

#[cfg(feature = "bpf")]
mod rivals {
    use std::path::{Path, PathBuf};

    use libbpf_cargo::SkeletonBuilder;

    /// Where the types are that all programs share, those of dalbe as well.
    const HEADERS: &str = "../../../crates/dalbe/src/bpf";

    /// The congestion controls of others.
    const RIVALS: [&str; 4] = ["ledbat", "ledbat_pp", "tcp_lp", "tcp_lp_linux"];

    /// What they include is below the directories that the lab is built of anyway. That
    /// there is a compiler dalbe has found out.
    pub(super) fn compile() {
        println!("cargo::rerun-if-env-changed=CLANG");
        let clang = std::env::var_os("CLANG").unwrap_or_else(|| "clang".into());
        let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
        for name in RIVALS {
            let source = Path::new("src/rivals/bpf").join(format!("{name}.bpf.c"));
            SkeletonBuilder::new()
                .source(&source)
                .clang(&clang)
                // The instructions of Linux 5.12.
                .clang_args(["-mcpu=v3", "-Wall", "-Werror", "-I", HEADERS])
                .build_and_generate(out.join(format!("{name}.skel.rs")))
                .unwrap_or_else(|error| panic!("{}: {error:?}", source.display()));
        }
    }
}

/// The commit; `-dirty` when sources had been changed, `unknown` where there is
/// no repository.
fn commit() -> String {
    let Some(commit) = git(&["describe", "--always", "--abbrev=12"]) else {
        return "unknown".to_owned();
    };
    let status = ["status", "--porcelain", "--"];
    match git(&[&status[..], &SOURCES].concat()).as_deref() {
        Some("") => commit,
        _ => format!("{commit}-dirty"),
    }
}

/// What git(1) prints; `None` when it fails.
fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git")
        // It would write the index to note what it has looked at.
        .arg("--no-optional-locks")
        .args(words)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
