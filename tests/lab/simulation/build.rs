//! Compiles the congestion controls of others for this machine, for simulations.

use std::path::Path;

/// What is compiled here, and what it includes.
const SOURCES: [&str; 3] = [NATIVE, RIVALS_DIRECTORY, HEADERS];

const NATIVE: &str = "src/congestion/native";

const RIVALS_DIRECTORY: &str = "../run/src/rivals/bpf";

/// Where the types are that all programs share, those of dalbe as well.
const HEADERS: &str = "../../../crates/dalbe/src/bpf";

fn main() {
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
    }
    compile_senders();
}

/// A library for each of them, and one of what they share.
fn compile_senders() {
    for name in RIVALS {
        let source = format!("\"../../../../run/src/rivals/bpf/{name}.bpf.c\"");
        native()
            .define("RIVAL", name)
            .define("SOURCE", source.as_str())
            .file(Path::new(NATIVE).join("rival.c"))
            .compile(&format!("rival_{name}"));
    }
    native()
        .file(Path::new(NATIVE).join("rivals.c"))
        .compile("rivals");
}

/// The congestion controls of others.
const RIVALS: [&str; 4] = ["ledbat", "ledbat_pp", "tcp_lp", "tcp_lp_linux"];

/// A compiler of what runs in the kernel for this machine.
fn native() -> cc::Build {
    let mut build = cc::Build::new();
    build
        .std("gnu11")
        // Unoptimised, they take most of a simulation's time.
        .opt_level(2)
        .include(NATIVE)
        .include(HEADERS)
        .include(Path::new(HEADERS).join("native"))
        // What only programs of the kernel have, and what they do not take.
        .flag_if_supported("-Wno-unknown-pragmas")
        .flag_if_supported("-Wno-unknown-attributes")
        .flag_if_supported("-Wno-unused-parameter");
    build
}
