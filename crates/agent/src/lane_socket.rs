//! The socket of the machine's lane: other processes take part in the agent's lanes through it.
//! Everybody may open it, for it gives permits only. What passes is in [`fairbat::machine`].

use std::io;
use std::time::Duration;

use fairbat::accept::{AcceptLimits, Accepted, Stopping, accept_until};
use fairbat::lane::wire::{LaneDemand, LaneGrant, MAX_MESSAGE};
use fairbat::lane::{Guest, Lane};
use fairbat::machine::{Answer, Hello, LEASE, LaneDirection, VERSION, line};
use fairbat::printable::printable;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;

use crate::connections::Connections;

/// Processes of one user that take part at once. More of them go on alone.
const MAX_OF_USER: usize = 64;

/// Processes that take part at once.
const MAX_GUESTS: usize = 512;

/// Longest name of a process that is used, characters.
const MAX_NAME: usize = 64;

/// Shortest time between two demands of a process.
const PACE: Duration = Duration::from_millis(2);

/// A process that says nothing for this time hangs, and loses what it has.
const SILENCE: Duration = Duration::from_secs(5);

/// A grant is told at least this often: well within the lease.
const REPEAT: Duration = Duration::from_secs(1);

/// The agent's lanes.
#[derive(Debug, Clone)]
pub struct Lanes {
    /// Of what is sent.
    pub push: Lane,
    /// Of what is received.
    pub pull: Lane,
}

impl Lanes {
    fn of(&self, direction: LaneDirection) -> &Lane {
        match direction {
            LaneDirection::Push => &self.push,
            LaneDirection::Pull => &self.pull,
        }
    }
}

/// Lets processes take part until `stop` completes. They then go on alone.
pub async fn serve(listener: UnixListener, lanes: Lanes, stop: impl Future<Output = ()>) {
    let users = Connections::at_most(MAX_OF_USER, MAX_GUESTS);
    let limits = AcceptLimits {
        server: "the lane of this machine",
        max_connections: Semaphore::MAX_PERMITS,
        grace: Duration::ZERO,
    };
    accept_until(
        listener,
        limits,
        stop,
        |accepted: Accepted<UnixListener>| {
            let (stream, stopping) = (accepted.stream, accepted.stopping);
            let (user, permit) = users.admit(&stream);
            let lanes = lanes.clone();
            Some(async move {
                let served = match permit {
                    Some(_permit) => take_part(stream, &lanes, stopping).await,
                    None => refuse(stream, "too many processes take part; go on alone").await,
                };
                if let Err(error) = served {
                    tracing::debug!(user, "a process in the lane: {error}");
                }
            })
        },
    )
    .await;
}

async fn refuse(mut stream: UnixStream, why: &str) -> io::Result<()> {
    let answer = line(&Answer::Refused(why.to_owned()))?;
    stream.write_all(&answer).await
}

/// Hears a process and answers, until it is gone.
///
/// # Errors
/// What it says cannot be meant, or it says nothing.
async fn take_part(stream: UnixStream, lanes: &Lanes, mut stopping: Stopping) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut heard = BufReader::new(read);
    let Some(hello) = hear::<Hello>(&mut heard).await? else {
        return Ok(());
    };
    if hello.version != VERSION {
        let why = format!(
            "the agent speaks version {VERSION} and this program version {}; \
             update the older one of them",
            hello.version
        );
        return write.write_all(&line(&Answer::Refused(why))?).await;
    }
    let lane = lanes.of(hello.direction);
    let name: String = hello.name.chars().take(MAX_NAME).collect();
    tracing::debug!(name = %printable(&name), "a process joins the lane");
    // Not to be taken for the host of a store.
    let guest = lane.invite(&format!("process {name}"));
    let mut changes = lane.changes();
    let mut told = None;
    let mut repeat = tokio::time::interval(REPEAT);
    let mut demands = std::pin::pin!(hear_all(heard, &guest));
    loop {
        tokio::select! {
            biased;
            () = stopping.wait() => return Ok(()),
            ended = &mut demands => return ended,
            _ = repeat.tick() => told = None,
            _ = changes.changed() => {}
        }
        tell(&guest, &mut told, &mut write).await?;
    }
}

/// Hears demands until there are no more.
async fn hear_all(mut heard: BufReader<OwnedReadHalf>, guest: &Guest) -> io::Result<()> {
    while let Some(demand) = hear::<LaneDemand>(&mut heard).await? {
        demand.check().map_err(io::Error::other)?;
        guest.hear(&demand);
        tokio::time::sleep(PACE).await;
    }
    Ok(())
}

/// Tells the grant, if it is not what was told last.
async fn tell(
    guest: &Guest,
    told: &mut Option<LaneGrant>,
    write: &mut OwnedWriteHalf,
) -> io::Result<()> {
    let Some(grant) = guest.grant(LEASE) else {
        return Ok(());
    };
    if told.is_some_and(|told| grant.is_same(&told)) {
        return Ok(());
    }
    *told = Some(grant);
    let answer = line(&Answer::Grant(grant))?;
    let written = tokio::time::timeout(SILENCE, write.write_all(&answer)).await;
    written.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// The next message; `None` at the end of the stream.
async fn hear<T: DeserializeOwned>(heard: &mut BufReader<OwnedReadHalf>) -> io::Result<Option<T>> {
    let mut text = Vec::new();
    let mut bounded = heard.take(MAX_MESSAGE as u64);
    let read = bounded.read_until(b'\n', &mut text);
    let read = tokio::time::timeout(SILENCE, read).await;
    if read.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))? == 0 {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(&text)?))
}
