//! A machine that does not allow what is asked for.

use std::process::Command;

use crate::turn::shared;
use crate::{CANNOT, is_root};

/// Runs `lab` where the kernel describes its types to nobody, and where nothing
/// is set up.
const WITHOUT_BTF: &str = "if [ -d /sys/kernel/btf ]; then mount -t tmpfs none /sys/kernel/btf; fi && \
    mount -t tmpfs none /run && exec \"$0\" \"$@\"";

#[test]
fn what_the_machine_lacks_has_an_exit_status_of_its_own() {
    if !is_root() {
        return;
    }
    let _turn = shared();
    for words in [
        &["sender-cost", "--quick"][..],
        &["run", "physics-short", "--contender", "sender-vegas"],
        &["run", "physics-short", "--contender", "ledbat"],
        &["matrix", "sender-steps", "--quick"],
    ] {
        let directory = tempfile::tempdir().expect("a temp dir");
        let output = Command::new("unshare")
            .args(["--mount", "sh", "-c", WITHOUT_BTF])
            .arg(env!("CARGO_BIN_EXE_lab"))
            .args(words)
            .arg("--output")
            .arg(directory.path())
            .output()
            .expect("start unshare");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(CANNOT), "{words:?}: {stderr}");
        assert!(stderr.contains("BTF"), "{words:?}: {stderr}");
    }
}
