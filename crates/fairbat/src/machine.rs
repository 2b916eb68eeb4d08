//! The lane of a machine: where an agent runs, other processes take part in its lanes, through
//! a socket that everybody may open.
//!
//! A process says [`Hello`] and then its demand, again and again; the agent answers with
//! grants. Each message is one line of JSON. When the agent is gone, the process goes on by
//! itself at once; when it is back, they join again. The messages are in [`crate::lane::wire`].

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::lane::wire::{LaneDemand, LaneGrant, MAX_MESSAGE, News, Want};
use crate::lane::{Lane, OuterLane};

/// The version of the messages. Another one is refused.
pub const VERSION: u32 = 1;

/// Name of the socket, in the directory of the agent's socket.
pub const SOCKET: &str = "lane.sock";

/// How long a grant holds without another one.
pub const LEASE: Duration = Duration::from_secs(3);

/// A demand is told again after this time, also without news.
const REPEAT: Duration = Duration::from_millis(500);

/// Changes come in pairs: a connection that is given back is asked for again at once. Told apart,
/// somebody else would get it in between.
const SETTLE: Duration = Duration::from_millis(1);

/// Whoever waits for this time without a connection is told why.
const LONG_WAIT: Duration = Duration::from_secs(2);

/// Time between two tries to reach an agent. A try costs one system call.
const TRY_AGAIN: Duration = Duration::from_millis(500);

/// Which way the data of a lane moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LaneDirection {
    /// From this machine.
    Push,
    /// To this machine.
    Pull,
}

impl LaneDirection {
    /// Its name in JSON and in labels.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::Pull => "pull",
        }
    }
}

/// The first message of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`VERSION`].
    pub version: u32,
    /// The lane that it joins.
    pub direction: LaneDirection,
    /// What it is, for people: `get`, `put` or `run`.
    pub name: String,
}

/// What the agent answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// What the process may do.
    Grant(LaneGrant),
    /// The process may not join; the text says why. The connection ends.
    Refused(String),
}

/// The lane of the machine that a process joins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineLane {
    socket: PathBuf,
    /// What this process is, for people.
    name: String,
    /// Whether the user counts on the agent.
    is_expected: bool,
}

impl MachineLane {
    /// That of the agent whose socket for commands is this one.
    #[must_use]
    pub fn of_agent(agent: &Path, name: &str) -> Self {
        Self {
            socket: agent.with_file_name(SOCKET),
            name: name.to_owned(),
            is_expected: false,
        }
    }

    /// The same. A user who has named the socket expects an agent there, and is told if nobody
    /// answers.
    #[must_use]
    pub fn expected(self, is_expected: bool) -> Self {
        Self {
            is_expected,
            ..self
        }
    }

    /// Lets `lane` take part, for as long as it lives. If there is an agent, the lane has its first
    /// grant when this returns.
    pub(crate) fn join(self, lane: &Lane, direction: LaneDirection) {
        let joined = JoinedLane {
            socket: self.socket,
            is_expected: self.is_expected,
            hello: Hello {
                version: VERSION,
                direction,
                name: self.name,
            },
            outer: lane.outer(),
            clock: Clock::start(),
        };
        // Without a thread each goes on alone.
        let (first, begun) = std::sync::mpsc::channel();
        let thread = thread::Builder::new().name("machine-lane".to_owned());
        if thread.spawn(move || joined.follow(&first)).is_ok() {
            let _ = begun.recv_timeout(FIRST_GRANT);
        }
    }
}

/// Longest wait for the first grant. An agent answers within a millisecond, unless it hangs or many
/// commands begin at once on a machine that is busy. They would all begin alone.
const FIRST_GRANT: Duration = Duration::from_secs(1);

/// A lane that takes part, or tries to.
struct JoinedLane {
    socket: PathBuf,
    is_expected: bool,
    hello: Hello,
    outer: OuterLane,
    clock: Clock,
}

/// Why a connection to the agent has ended.
enum Ended {
    /// The agent is gone.
    Agent,
    /// The lane is gone.
    Lane,
    /// The agent does not want it.
    Refused,
}

impl JoinedLane {
    /// Takes part whenever there is an agent, until the lane is gone. Tells `first` when there has
    /// been a grant, or when there is no agent.
    fn follow(&self, first: &std::sync::mpsc::Sender<()>) {
        let mut was_there = true;
        loop {
            match dial(&self.socket) {
                Ok(agent) => {
                    was_there = true;
                    let ended = self.take_part(agent, first);
                    self.outer.lose();
                    match ended {
                        Ok(Ended::Lane | Ended::Refused) => return,
                        Ok(Ended::Agent) => {
                            tracing::info!("the agent is gone; going on without it");
                        }
                        Err(error) => tracing::warn!("the lane of the machine: {error}"),
                    }
                }
                Err(error) => {
                    if was_there && self.is_expected {
                        let socket = self.socket.display();
                        tracing::warn!("no agent answers at {socket}: {error}; going on alone");
                    } else if was_there {
                        tracing::debug!("no lane of the machine: {error}");
                    }
                    was_there = false;
                }
            }
            let _ = first.send(());
            thread::sleep(TRY_AGAIN);
            if self.outer.is_gone() {
                return;
            }
        }
    }

    /// Speaks with the agent until one of the two is gone.
    fn take_part(
        &self,
        mut agent: UnixStream,
        first: &std::sync::mpsc::Sender<()>,
    ) -> io::Result<Ended> {
        agent.set_nonblocking(true)?;
        let (mut changes, told) = UnixStream::pair()?;
        changes.set_nonblocking(true)?;
        told.set_nonblocking(true)?;
        self.outer.tell_changes(told);
        let mut lines = Lines::default();
        let mut sent = News::default();
        let mut sent_at = None::<Duration>;
        let mut waits = Waits::default();
        let mut is_in = false;
        agent.write_all(&line(&self.hello)?)?;
        loop {
            let Some(demand) = self.outer.demand() else {
                return Ok(Ended::Lane);
            };
            let now = self.clock.now();
            waits.see(now, &demand);
            let news = demand.news();
            if news != sent || sent_at.is_none_or(|at| now >= at + REPEAT) {
                if let Err(error) = agent.write_all(&line(&demand)?)
                    && error.kind() != io::ErrorKind::WouldBlock
                {
                    return Ok(Ended::Agent);
                }
                (sent, sent_at) = (news, Some(now));
            }
            let next = sent_at.map_or(REPEAT, |at| (at + REPEAT).saturating_sub(now));
            let wait = self.outer.declines_in().map_or(next, |it| it.min(next));
            await_any(&agent, &changes, wait)?;
            if drain(&mut changes)? {
                thread::sleep(SETTLE);
                drain(&mut changes)?;
            }
            if lines.read(&mut agent)? == 0 {
                return Ok(Ended::Agent);
            }
            while let Some(line) = lines.next() {
                match serde_json::from_slice(&line) {
                    Ok(Answer::Grant(grant)) => {
                        grant.check().map_err(io::Error::other)?;
                        self.outer.take(&grant);
                        if !std::mem::replace(&mut is_in, true) {
                            tracing::info!("in the lane of fairbat-agent");
                        }
                        let _ = first.send(());
                    }
                    Ok(Answer::Refused(why)) => {
                        tracing::warn!("not in the lane of the machine: {why}");
                        return Ok(Ended::Refused);
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }
}

/// Whether the lane waits for its turn, for the user to know.
#[derive(Debug, Default)]
struct Waits {
    since: Option<Duration>,
    is_told: bool,
}

impl Waits {
    fn see(&mut self, now: Duration, demand: &LaneDemand) {
        let has = |count: fn(&Want) -> u32| demand.wants.iter().any(|want| count(want) > 0);
        if !has(|want| want.waiting) || has(|want| want.active) {
            self.since = None;
            return;
        }
        let since = *self.since.get_or_insert(now);
        if !self.is_told && now >= since + LONG_WAIT {
            self.is_told = true;
            tracing::warn!(
                "waiting for its turn in the lane of fairbat-agent; with --alone it would not wait"
            );
        }
    }
}

/// Connects without waiting for an agent that hangs.
fn dial(path: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket.into())
}

/// A message as it is sent.
///
/// # Errors
/// It cannot be written as JSON.
pub fn line(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// Waits until there is something to read, or for this long.
fn await_any(agent: &UnixStream, changes: &UnixStream, wait: Duration) -> io::Result<()> {
    let mut fds = [
        PollFd::new(agent, PollFlags::IN),
        PollFd::new(changes, PollFlags::IN),
    ];
    let wait = Timespec::try_from(wait).map_err(io::Error::other)?;
    match poll(&mut fds, Some(&wait)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Reads all that is there. Returns whether there was something.
fn drain(stream: &mut UnixStream) -> io::Result<bool> {
    let mut buffer = [0; 64];
    let mut was_there = false;
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(was_there),
            Ok(_) => was_there = true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(was_there),
            Err(error) => return Err(error),
        }
    }
}

/// Lines from a stream.
#[derive(Debug, Default)]
struct Lines(Vec<u8>);

impl Lines {
    /// Reads what is there; 0 at the end of the stream.
    fn read(&mut self, stream: &mut UnixStream) -> io::Result<usize> {
        let mut buffer = [0; 4096];
        let mut read = 0;
        loop {
            match stream.read(&mut buffer) {
                Ok(0) if read == 0 => return Ok(0),
                Ok(0) => return Ok(read),
                Ok(length) => {
                    read += length;
                    self.0.extend_from_slice(&buffer[..length]);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(read.max(1)),
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(0),
                Err(error) => return Err(error),
            }
            if self.0.len() > 2 * MAX_MESSAGE {
                return Err(io::Error::other("a message that is too long"));
            }
        }
    }

    /// The next whole line.
    fn next(&mut self) -> Option<Vec<u8>> {
        let end = self.0.iter().position(|byte| *byte == b'\n')?;
        let rest = self.0.split_off(end + 1);
        let mut line = std::mem::replace(&mut self.0, rest);
        line.pop();
        Some(line)
    }
}
