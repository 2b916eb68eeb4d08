//! Compiles what runs in the kernel, if the feature `bpf` is on, and the same congestion controls
//! for senders outside the kernel, if `native` is.

fn main() {
    #[cfg(feature = "bpf")]
    kernel::compile();
    #[cfg(feature = "native")]
    native::compile();
}

#[cfg(feature = "native")]
mod native {
    pub(super) fn compile() {
        println!("cargo::rerun-if-changed=src/bpf");
        cc::Build::new()
            .std("gnu11")
            // Unoptimised, they take most of a simulation's time.
            .opt_level(2)
            .include("src/bpf/native")
            // What only programs of the kernel have, and what they do not take.
            .flag_if_supported("-Wno-unknown-pragmas")
            .flag_if_supported("-Wno-unknown-attributes")
            .flag_if_supported("-Wno-unused-parameter")
            .file("src/bpf/native/flow.c")
            .compile("dalbe_senders");
    }
}

#[cfg(feature = "bpf")]
mod kernel {
    use std::ffi::OsStr;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use libbpf_cargo::SkeletonBuilder;

    /// Each with the directory of the headers that it includes.
    const SOURCES: [(&str, &str); 2] = [
        ("observer", "src/bpf/observer.bpf.c"),
        ("congestion", "src/bpf/congestion.bpf.c"),
    ];

    /// What to do without a compiler.
    const NO_CLANG: &str = "What runs in the kernel is compiled by clang 14 or newer: install it \
        (Debian: apt-get install clang libelf-dev zlib1g-dev pkg-config make), name it by \
        the variable CLANG, or build without eBPF: cargo build -p fairbat-cli \
        --no-default-features";

    pub(super) fn compile() {
        println!("cargo::rerun-if-env-changed=CLANG");
        let clang = std::env::var_os("CLANG").unwrap_or_else(|| "clang".into());
        let runs = Command::new(&clang).arg("--version").output();
        if !runs.is_ok_and(|output| output.status.success()) {
            println!("cargo::error={} cannot be run. {NO_CLANG}", clang.display());
            std::process::exit(1);
        }
        let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
        for (name, source) in SOURCES {
            watch(Path::new(source));
            let built = SkeletonBuilder::new()
                .source(source)
                .clang(&clang)
                // The instructions of Linux 5.12.
                .clang_args(["-mcpu=v3", "-Wall", "-Werror"])
                .build_and_generate(out.join(format!("{name}.skel.rs")));
            if let Err(error) = built {
                println!("cargo::error={source} could not be compiled. {NO_CLANG}");
                panic!("{error:?}");
            }
        }
    }

    /// Compiles again when it or a header beside it changes.
    fn watch(source: &Path) {
        println!("cargo::rerun-if-changed={}", source.display());
        let directory = source.parent().expect("it is in a directory");
        for entry in directory.read_dir().expect("it can be read") {
            let path = entry.expect("it can be read").path();
            if path.extension() == Some(OsStr::new("h")) {
                println!("cargo::rerun-if-changed={}", path.display());
            }
        }
    }
}
