//! Nothing a lab starts outlives it, and nothing it makes is seen outside.
//!
//! The command starts itself again as the first process of a PID namespace:
//! when that ends, by whatever, the kernel ends all that it had started. The
//! network namespaces, without names, and the TUN devices in them are gone
//! with the last process inside. Working files are on a tmpfs in a mount
//! namespace, gone likewise, and so is /run, where `fairbat setup` keeps its
//! observer and its congestion controls. All of the machine sees the latter:
//! where `fairbat setup` has made them already, runs use those.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use dalbe::ebpf::setup::SetupStatus;
use dalbe::ebpf::{EbpfPart, setup};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

use crate::machine::Context as _;

/// Tells the inner process where its working directory is.
const MARK: &str = "FAIRBAT_LAB_SANDBOX";

/// On which side of the wall this process is.
#[derive(Debug)]
pub enum Side {
    /// Inside: go on, with this directory for working files.
    Inside(PathBuf),
    /// Outside, and the inner process has ended like this.
    Outside(ExitCode),
}

/// Checks that this process may make what a lab needs.
///
/// # Errors
/// What to do about it, when it may not.
pub fn require_root() -> Result<(), &'static str> {
    if nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    Err("the lab makes network namespaces and needs root: run it with sudo")
}

/// Starts this command again inside, waits for it and returns how it ended;
/// in the inner process, returns at once. What `needs` names is there
/// inside as well where `fairbat setup` has made it outside, of this version, and
/// nothing else.
///
/// # Errors
/// Without the rights of root, or when the kernel lacks namespaces.
pub fn enter(needs: Option<EbpfPart>) -> io::Result<Side> {
    if let Some(work) = std::env::var_os(MARK) {
        // If the outer process is killed, nothing else would end this one.
        prctl::set_pdeathsig(Signal::SIGKILL)
            .doing("ask to end with the lab that started this one")?;
        // Programs that look for processes find those of the lab, by the numbers they have here.
        let (none, flags): (Option<&str>, _) = (None, MsFlags::empty());
        mount(Some("proc"), "/proc", Some("proc"), flags, none).doing("mount /proc")?;
        return Ok(Side::Inside(PathBuf::from(work)));
    }
    unshare(CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS).map_err(|errno| {
        io::Error::other(format!(
            "make namespaces: {errno}; the lab needs root and the namespaces of Linux"
        ))
    })?;
    let work = tempfile::Builder::new().prefix("fairbat-lab-").tempdir();
    let work = work.doing(format_args!(
        "make a working directory in {}",
        std::env::temp_dir().display()
    ))?;
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).doing(
        "make the mounts below / private to the lab (in a chroot / is no mount point: use a \
         container, or `mount --bind DIR DIR` before chroot DIR)",
    )?;
    let tmpfs = |at: &Path, options| {
        mount(none, at, Some("tmpfs"), MsFlags::empty(), Some(options))
            .doing(format_args!("mount a tmpfs on {}", at.display()))
    };
    tmpfs(work.path(), "size=75%")?;
    if !needs.is_some_and(is_alone) {
        // A run sees only an observer of its own, and only it sees that one.
        tmpfs(Path::new("/run"), "mode=755")?;
    }
    let ended = supervise(work.path());
    nix::mount::umount(work.path()).doing(format_args!("unmount {}", work.path().display()))?;
    work.close().doing("remove the working directory")?;
    ended.map(Side::Outside)
}

/// Whether this is what there is, and nothing else.
fn is_alone(part: EbpfPart) -> bool {
    let is_there = |part| {
        let status = setup::status(Path::new(dalbe::ebpf::PIN_DIRECTORY), part);
        matches!(status, Ok(SetupStatus::SetUp))
    };
    EbpfPart::ALL
        .into_iter()
        .all(|other| is_there(other) == (other == part))
}

/// Makes a command that is started inside go into a sandbox of its own again.
pub fn of_its_own(command: &mut std::process::Command) {
    command.env_remove(MARK);
}

/// Runs the inner process to its end, or to that of this one by a signal.
fn supervise(work: &Path) -> io::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        // Before there is anything to end.
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(std::env::args_os().skip(1))
            .env(MARK, work)
            .env("TMPDIR", work);
        // They are of another network.
        for name in ["http_proxy", "https_proxy", "all_proxy"] {
            command.env_remove(name).env_remove(name.to_uppercase());
        }
        let child = command.spawn();
        let mut child = child.doing("start the lab again inside its namespaces")?;
        let killed_by = tokio::select! {
            status = child.wait() => {
                let code = status?.code().and_then(|code| u8::try_from(code).ok());
                return Ok(code.map_or(ExitCode::FAILURE, ExitCode::from));
            }
            _ = interrupt.recv() => SignalKind::interrupt(),
            _ = terminate.recv() => SignalKind::terminate(),
        };
        child.kill().await?;
        Ok(ExitCode::from(128 + killed_by.as_raw_value() as u8))
    })
}
