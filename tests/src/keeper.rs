//! Starts processes that cannot outlive this one, however it ends.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use crate::poll::wait_for;

/// A command, and where to tell what became of it.
type Order = (Command, Sender<io::Result<Child>>);

/// `program`, to be started by [`spawn`], without the proxies and settings of
/// whoever runs the tests.
pub(crate) fn command(program: &Path, home: &Path) -> Command {
    // The kernel kills it when its parent ends (PR_SET_PDEATHSIG).
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "KILL", "--"])
        .arg(program)
        .current_dir(home)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home)
        .env("TMPDIR", home)
        .stdin(Stdio::null());
    command
}

/// Starts a [`command`]. For the kernel the parent is the thread that starts
/// it, and a test's ends early; so one that ends with the process does it.
fn spawn(command: Command) -> io::Result<Child> {
    static KEEPER: OnceLock<Sender<Order>> = OnceLock::new();
    let keeper = KEEPER.get_or_init(|| {
        let (sender, orders) = channel::<Order>();
        std::thread::spawn(move || {
            for (mut command, reply) in orders {
                // Who gave the order waits for the answer.
                let _ = reply.send(command.spawn());
            }
        });
        sender
    });
    let (reply, answer) = channel();
    keeper.send((command, reply)).expect("the keeper lives");
    answer.recv().expect("the keeper answers")
}

/// Starts a [`command`] with what it says in this log, and waits until `look` finds there, or anywhere
/// else, that it is up.
///
/// # Panics
/// When it does not come up, with what it said.
pub(crate) fn start<T>(
    mut command: Command,
    log: &Path,
    patience: Duration,
    mut look: impl FnMut(&str) -> Option<T>,
) -> (Kept, T) {
    let output = File::create(log).expect("create a log");
    command
        .stdout(output.try_clone().expect("a second handle of the log"))
        .stderr(output);
    let what = format!("{command:?}");
    let mut kept = Kept(spawn(command).expect("start setpriv of util-linux"));
    let found = wait_for(&format!("{what} to be up"), patience, || {
        let ended = kept.0.try_wait().expect("wait for a server");
        let said = fs::read(log).expect("read a log");
        let said = String::from_utf8_lossy(&said);
        if let Some(status) = ended {
            panic!("{what}: {status}: {said}");
        }
        look(&said)
    });
    (kept, found)
}

/// A running process; killed when dropped.
#[derive(Debug)]
pub(crate) struct Kept(Child);

impl Kept {
    /// SIGKILL: it is gone at once, with all its connections.
    pub(crate) fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.kill();
    }
}
