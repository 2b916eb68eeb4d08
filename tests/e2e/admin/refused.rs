//! Kernels that lack something, processes that lack a right, and things that
//! are in the way: it is said what, and all is as it was.

use std::process::{Child, Output};
use std::time::Duration;

use fairbat_tests::netns::skipped;
use fairbat_tests::poll::wait_until;

use super::SET_UP;
use super::machine::{BINARY, Machine, assert_says};

#[test]
fn without_a_capability_it_says_which_ones_it_takes() {
    let Some(machine) = Machine::new() else {
        return;
    };
    // CAP_SYS_ADMIN is good for the other two as well; it is for the mount.
    for lacking in ["-all", "-all,+bpf,+perfmon", "-all,+dac_override"] {
        let refused = machine.root_with(lacking, &["setup"]);
        assert_says(&refused, 1, "CAP_SYS_ADMIN, CAP_BPF and CAP_PERFMON");
        assert_says(&refused, 1, "(mount /run/fairbat/bpf: ");
        machine.assert_clean(&[]);
    }
    let mount = "mkdir -p /run/fairbat/bpf; mount -t bpf -o mode=0755 bpf /run/fairbat/bpf";
    machine.shell(mount);
    for lacking in ["-all", "-all,+bpf", "-all,+perfmon"] {
        let refused = machine.root_with(lacking, &["setup"]);
        assert_says(&refused, 1, "CAP_SYS_ADMIN, CAP_BPF and CAP_PERFMON");
        assert_says(&refused, 1, "(load the observer: ");
        assert_says(&refused, 1, "(load the congestion controls: ");
        let left = machine.shell("find /run/fairbat/bpf -mindepth 1 -not -name '*.debug'");
        assert_eq!(left, "");
    }
    machine.shell("umount /run/fairbat/bpf; rmdir /run/fairbat/bpf /run/fairbat");
}

#[test]
fn a_kernel_that_does_not_describe_itself_is_told_so() {
    let Some(machine) = Machine::new() else {
        return;
    };
    machine.shell("mount -t tmpfs none /sys/kernel/btf");
    let refused = machine.root(&["setup"]);
    assert_says(&refused, 1, "CONFIG_DEBUG_INFO_BTF");
    machine.assert_clean(&[]);
}

#[test]
fn a_kernel_that_lacks_what_the_programs_use_is_told_what_it_takes() {
    let Some(machine) = Machine::new() else {
        return;
    };
    // A description (BTF, linux/btf.h) of a kernel that has no types: magic,
    // version, length of the header, no types, one byte of strings.
    machine.shell(
        "printf '\\237\\353\\001\\000\\030\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\
         \\000\\000\\000\\000\\001\\000\\000\\000\\000' > /run/empty; \
         mount --bind /run/empty /sys/kernel/btf/vmlinux; rm /run/empty",
    );
    let refused = machine.root(&["setup"]);
    assert_says(
        &refused,
        1,
        "error: the kernel does not take the observer: ",
    );
    assert_says(
        &refused,
        1,
        "error: the kernel does not take the congestion controls: ",
    );
    assert_says(&refused, 1, "it takes Linux 6.4");
    machine.assert_clean(&[]);
}

#[test]
fn one_part_that_cannot_be_set_up_does_not_keep_the_other_away() {
    let Some(machine) = Machine::new() else {
        return;
    };
    assert_says(&machine.root(&["setup"]), 0, "");
    let strange = "/run/fairbat/bpf/observer/strange";
    machine.shell(&format!("mkdir {strange}"));
    let removal = machine.root(&["setup", "--remove"]);
    assert_says(&removal, 1, &format!("error: {strange} is in the way: "));
    assert_says(&removal, 1, "congestion controls: removed");
    let status = machine.somebody(&["setup", "--status"]);
    assert_says(
        &status,
        1,
        "observer: set up\ncongestion controls: not set up\n",
    );
    // That there is nothing of the other one makes no success of it.
    let removal = machine.root(&["setup", "--remove"]);
    assert_says(&removal, 1, &format!("error: {strange} is in the way: "));
    assert_says(&removal, 1, "congestion controls: not set up, nothing to");

    machine.shell(&format!("rmdir {strange}"));
    machine.shell("mkdir -p /run/fairbat/bpf/congestion/strange");
    machine.shell("rm /run/fairbat/bpf/observer/v*/link");
    let repeated = machine.root(&["setup"]);
    assert_says(&repeated, 3, "observer: set up in ");
    assert_says(
        &repeated,
        3,
        "error: /run/fairbat/bpf/congestion/strange is in the way: ",
    );
    machine.shell("rmdir /run/fairbat/bpf/congestion/strange");
    assert_says(
        &machine.root(&["setup"]),
        0,
        "congestion controls: set up in ",
    );
    assert_says(&machine.somebody(&["setup", "--status"]), 0, SET_UP);
    let controls = machine.controls();
    assert_says(&machine.root(&["setup", "--remove"]), 0, "removed");
    machine.assert_clean(&controls);
}

/// Runs `fairbat setup` as root; what the kernel answers to some of its calls is
/// as strace(1) is told. `None`, and loudly so, without strace.
fn with_injected(machine: &Machine, injection: &str) -> Option<Output> {
    let strace = ["strace", "-f", "-o", "/dev/null", "-e"];
    let run = |words: &[&str]| machine.run(&[&strace[..], words].concat());
    if !run(&["trace=none", "true"]).status.success() {
        skipped("needs strace, and to be let trace");
        return None;
    }
    Some(run(&[&format!("inject={injection}"), BINARY, "setup"]))
}

#[test]
fn what_fails_around_the_mount_leaves_nothing() {
    let Some(machine) = Machine::new() else {
        return;
    };
    for (call, doing) in [
        ("fsopen:error=ENOMEM", "mount"),
        ("fsconfig:error=ENOMEM", "mount"),
        ("fsmount:error=ENOMEM", "mount"),
        // Each first one is that of the directory above.
        ("flock:error=ENOMEM:when=2+2", "lock"),
        ("move_mount:error=ENOMEM", "mount"),
    ] {
        let Some(failed) = with_injected(&machine, call) else {
            return;
        };
        let words = format!("error: {doing} /run/fairbat/bpf: Cannot allocate memory");
        assert_says(&failed, 1, &words);
        machine.assert_clean(&[]);
    }
}

#[test]
fn a_signal_does_not_end_the_wait_for_another_setup() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let Some(done) = with_injected(&machine, "flock:error=EINTR:when=1+2") else {
        return;
    };
    assert_says(&done, 0, "congestion controls: set up in ");
    let controls = machine.controls();
    assert_says(&machine.root(&["setup", "--remove"]), 0, "removed");
    machine.assert_clean(&controls);
}

#[test]
fn a_file_system_that_others_could_write_to_is_refused() {
    let Some(machine) = Machine::new() else {
        return;
    };
    for (mode, why) in [
        ("0777", "other users may write to it"),
        ("0700", "may not look into"),
    ] {
        machine.shell(&format!(
            "mkdir -p /run/fairbat/bpf; mount -t bpf -o mode={mode} theirs /run/fairbat/bpf"
        ));
        let refused = machine.root(&["setup"]);
        assert_says(&refused, 1, "/run/fairbat/bpf is in the way: ");
        assert_says(&refused, 1, why);
        assert_says(&refused, 1, "left as it is");
        machine.shell("umount /run/fairbat/bpf; rmdir /run/fairbat/bpf /run/fairbat");
    }
}

#[test]
fn nobody_can_keep_root_waiting() {
    let Some(machine) = Machine::new() else {
        return;
    };
    assert_says(&machine.root(&["setup"]), 0, "");
    // Longer than this test may take.
    let mut holders = ["/run/fairbat", "/run/fairbat/bpf"].map(|directory| {
        let lock = ["flock", "--no-fork", directory, "sleep", "600"];
        machine.start_somebody(&lock)
    });
    wait_until("both to be locked", Duration::from_secs(10), || {
        let locks = machine.shell("cat /proc/locks");
        let is_held = |holder: &Child| locks.contains(&format!(" {} ", holder.id()));
        holders.iter().all(is_held)
    });
    assert_says(&machine.root(&["setup", "--remove"]), 0, "removed");
    assert_says(&machine.root(&["setup"]), 0, "set up in");
    let controls = machine.controls();
    assert_says(&machine.root(&["setup", "--remove"]), 0, "removed");
    machine.assert_clean(&controls);
    for holder in &mut holders {
        assert!(holder.try_wait().expect("ours").is_none(), "it let go");
        holder.kill().expect("ours");
        holder.wait().expect("ours");
    }
}
