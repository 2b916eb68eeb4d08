//! Compiles the kernel's side of the observer, if the feature `bpf` is on.

fn main() {
    #[cfg(feature = "bpf")]
    observer::compile();
}

#[cfg(feature = "bpf")]
mod observer {
    use std::path::PathBuf;
    use std::process::Command;

    use libbpf_cargo::SkeletonBuilder;

    const SOURCE: &str = "src/observer/observer.bpf.c";
    const HEADERS: [&str; 3] = [
        "src/observer/observer.h",
        "src/observer/packet.h",
        "src/observer/types.h",
    ];

    /// What to do without a compiler.
    const NO_CLANG: &str = "The eBPF observer is compiled by clang 14 or newer: install it \
        (Debian: apt-get install clang libelf-dev zlib1g-dev pkg-config make), name it by \
        the variable CLANG, or build without the observer: cargo build -p fairbat-cli \
        --no-default-features";

    pub(super) fn compile() {
        println!("cargo::rerun-if-changed={SOURCE}");
        for header in HEADERS {
            println!("cargo::rerun-if-changed={header}");
        }
        println!("cargo::rerun-if-env-changed=CLANG");
        let clang = std::env::var_os("CLANG").unwrap_or_else(|| "clang".into());
        let runs = Command::new(&clang).arg("--version").output();
        if !runs.is_ok_and(|output| output.status.success()) {
            println!("cargo::error={} cannot be run. {NO_CLANG}", clang.display());
            std::process::exit(1);
        }
        let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
        let built = SkeletonBuilder::new()
            .source(SOURCE)
            .clang(clang)
            // The instructions of Linux 5.12.
            .clang_args(["-mcpu=v3", "-Wall", "-Werror"])
            .build_and_generate(out.join("observer.skel.rs"));
        if let Err(error) = built {
            println!("cargo::error={SOURCE} could not be compiled. {NO_CLANG}");
            panic!("{error:?}");
        }
    }
}
