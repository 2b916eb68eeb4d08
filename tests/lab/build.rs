//! Compiles the congestion controls of others, for simulations and, if the feature `bpf` is on, for
//! the kernel, and tells the lab
//! which commit it is built of: by the time that it measures, the checkout may be
//! another one.

use std::path::Path;
use std::process::Command;

/// What the lab and the programs that it measures are built of, by this
/// directory. Where none of it is changed the commit is what was measured,
/// whatever else is.
const SOURCES: [&str; 8] = [
    "build.rs",
    "Cargo.toml",
    "src",
    "../Cargo.toml",
    "../src",
    "../../Cargo.toml",
    "../../Cargo.lock",
    "../../crates",
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
    compile_senders();
    #[cfg(feature = "bpf")]
    rivals::compile();
}

/// Where the types are that all programs share, those of dalbe as well.
const HEADERS: &str = "../../crates/dalbe/src/bpf";

/// Compiles the congestion controls of others for this machine, for simulations.
fn compile_senders() {
    const SOURCES: &str = "src/simulation/congestion/native";
    for name in RIVALS {
        let source = format!("\"../../../rivals/bpf/{name}.bpf.c\"");
        native(SOURCES)
            .define("RIVAL", name)
            .define("SOURCE", source.as_str())
            .file(Path::new(SOURCES).join("rival.c"))
            .compile(&format!("rival_{name}"));
    }
    native(SOURCES)
        .file(Path::new(SOURCES).join("rivals.c"))
        .compile("rivals");
}

/// The congestion controls of others.
const RIVALS: [&str; 4] = ["ledbat", "ledbat_pp", "tcp_lp", "tcp_lp_linux"];

/// A compiler of what runs in the kernel for this machine.
fn native(sources: &str) -> cc::Build {
    let mut build = cc::Build::new();
    build
        .std("gnu11")
        // Unoptimised, they take most of a simulation's time.
        .opt_level(2)
        .include(sources)
        .include(HEADERS)
        .include(Path::new(HEADERS).join("native"))
        // What only programs of the kernel have, and what they do not take.
        .flag_if_supported("-Wno-unknown-pragmas")
        .flag_if_supported("-Wno-unknown-attributes")
        .flag_if_supported("-Wno-unused-parameter");
    build
}

#[cfg(feature = "bpf")]
mod rivals {
    use std::path::{Path, PathBuf};

    use libbpf_cargo::SkeletonBuilder;

    /// What they include is below the directories that the lab is built of anyway. That
    /// there is a compiler dalbe has found out.
    pub(super) fn compile() {
        println!("cargo::rerun-if-env-changed=CLANG");
        let clang = std::env::var_os("CLANG").unwrap_or_else(|| "clang".into());
        let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
        for name in super::RIVALS {
            let source = Path::new("src/rivals/bpf").join(format!("{name}.bpf.c"));
            SkeletonBuilder::new()
                .source(&source)
                .clang(&clang)
                // The instructions of Linux 5.12.
                .clang_args(["-mcpu=v3", "-Wall", "-Werror", "-I", super::HEADERS])
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
