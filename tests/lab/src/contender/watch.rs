//! Watches what holds back the connections of a program of ours.
//!
//! It takes the best lever that it finds, and sends with any. So what it was meant
//! to be measured with is looked for on its connections, as the kernel has them
//! (ss(8)), until the transfer has ended.

mod looks;

use std::io;
use std::process::Command;
use std::thread::JoinHandle;
use std::time::Duration;

use dalbe::ebpf::WeightedCongestion;
use dalbe::sender::{SenderLeverKind, SenderPolicy};

use self::looks::Looks;
use super::over::{End, Over};
use crate::host::Host;
use crate::record::BackgroundRecord;

/// How often its connections are looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Which connections of a host are meant.
#[derive(Debug, Clone, Copy)]
pub(super) enum Port {
    /// Those of a server at this port.
    Own(u16),
    /// Those to a server at this port.
    Peer(u16),
}

/// Who sends, and where.
#[derive(Debug, Clone, Copy)]
pub(super) struct Watched<'a> {
    /// Who it is, for people.
    pub(super) who: &'static str,
    /// Where it runs.
    pub(super) host: &'a Host,
    /// Its connections.
    pub(super) port: Port,
    /// The lever that it says it has.
    pub(super) lever: &'a str,
}

/// Who watches.
pub(super) struct Watch {
    control: String,
    end: End,
    thread: JoinHandle<io::Result<Looks>>,
}

impl Watch {
    /// Watches whether a congestion control of ours holds back these connections,
    /// from the start of the transfer on, which is so far away, until its end.
    ///
    /// # Errors
    /// The program has already taken another lever, or this process cannot say what
    /// the congestion control is called.
    pub(super) fn start(watched: Watched<'_>, start: Duration) -> io::Result<Self> {
        let Watched {
            who,
            host,
            port,
            lever,
        } = watched;
        let expected = SenderLeverKind::Congestion.name();
        if lever != expected {
            return Err(io::Error::other(format!(
                "{who} holds back by {lever}, and is to be measured with {expected}: build it of \
                 the same checkout as the lab, with its default features"
            )));
        }
        let congestion = WeightedCongestion::open().map_err(io::Error::other)?;
        let control = congestion.name(SenderPolicy::default().law()).to_owned();
        let (end, over) = Over::pair();
        let looks = Looks::new(who, control.clone());
        Ok(Self {
            control,
            end,
            thread: host.run(move || look(looks, port, start, &over)),
        })
    }

    /// Notes what has held back what this transfer has moved; it has failed if
    /// that was nothing of ours, or not always.
    pub(super) fn finish(self, record: &mut BackgroundRecord) {
        drop(self.end);
        let fault = match self.thread.join().expect("looking does not panic") {
            Ok(looks) => looks.fault(),
            Err(error) => Some(format!("cannot see what holds back: {error}")),
        };
        let Some(fault) = fault else {
            record.held_by = Some(self.control);
            return;
        };
        let has_moved = record.bytes.is_some_and(|bytes| bytes > 0);
        if has_moved && record.failure.is_none() {
            record.failure = Some(fault);
        }
    }
}

/// Looks at these connections, from `start` on until it is over, in the network
/// namespace of this thread.
fn look(mut looks: Looks, port: Port, start: Duration, over: &Over) -> io::Result<Looks> {
    let mut wait = start;
    while !over.within(wait) {
        looks.take(&connections(port)?);
        wait = LOOK;
    }
    Ok(looks)
}

/// What ss(8) says of these connections that are established, a line of each.
fn connections(port: Port) -> io::Result<String> {
    let (end, port) = match port {
        Port::Own(port) => ("sport", port),
        Port::Peer(port) => ("dport", port),
    };
    let output = Command::new("ss")
        .args([
            "-HOtin",
            "state",
            "established",
            end,
            "=",
            &format!(":{port}"),
        ])
        .output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("ss: {}", stderr.trim())))
}
