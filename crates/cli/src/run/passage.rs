//! A stream of the command that passes through fairbat, which reads in it how far along the
//! command is.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{fcntl_dupfd_cloexec, ioctl_fionread};

use super::progress::ProgressReader;
use crate::args::ProgressFormat;

/// What has been written when the command ends is passed on before fairbat ends, unless whoever
/// reads it takes longer than this.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is read at once, bytes: what a pipe holds (pipe(7)).
const BUFFER: usize = 64 * 1024;

/// The stream. Each of the two processes has it: if one ends, the other one passes it on.
#[derive(Debug)]
pub(super) struct Passage {
    format: ProgressFormat,
    from: PipeReader,
    /// For the command, until it is started.
    given: Option<PipeWriter>,
    /// Where the command would write.
    to: File,
    progress: Arc<Passed>,
}

/// How much has passed, bytes.
#[derive(Debug, Default)]
struct Passed {
    read: Mutex<u64>,
    written: AtomicU64,
    /// Whether nothing will pass any more.
    is_over: AtomicBool,
}

impl Passage {
    /// Of the stream that this format is written to.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub(super) fn new(format: ProgressFormat) -> io::Result<Self> {
        let (from, given) = io::pipe()?;
        let to: OwnedFd = match format {
            ProgressFormat::ResticJson | ProgressFormat::Rsync => {
                fcntl_dupfd_cloexec(io::stdout(), 3)?
            }
            ProgressFormat::RcloneJson => fcntl_dupfd_cloexec(io::stderr(), 3)?,
        };
        Ok(Self {
            format,
            from,
            given: Some(given),
            to: to.into(),
            progress: Arc::default(),
        })
    }

    /// The command writes into it.
    pub(super) fn lead(&mut self, command: &mut Command) {
        let Some(given) = self.given.take() else {
            return;
        };
        match self.format {
            ProgressFormat::ResticJson | ProgressFormat::Rsync => command.stdout(given),
            ProgressFormat::RcloneJson => command.stderr(given),
        };
    }

    /// Somebody else starts the command.
    pub(super) fn leave(&mut self) {
        self.given = None;
    }

    /// Passes on what the command writes, in a thread of its own, and calls `told` with the share
    /// of the work that is done. In the end it calls `closed`: nobody writes any more, or nobody
    /// reads.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub(super) fn pass(
        &self,
        mut told: impl FnMut(f64) + Send + 'static,
        closed: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let (mut from, mut to) = (self.from.try_clone()?, self.to.try_clone()?);
        let passed = Arc::clone(&self.progress);
        let mut reader = ProgressReader::new(self.format);
        thread::spawn(move || {
            let mut buffer = vec![0; BUFFER];
            let ended = loop {
                match passed.pass_some(&mut from, &mut to, &mut buffer) {
                    Ok(0) => break Ok(()),
                    Ok(read) => reader.read(&buffer[..read]).into_iter().for_each(&mut told),
                    Err(error) => break Err(error),
                }
            };
            passed.is_over.store(true, Ordering::SeqCst);
            drop((from, to));
            // Whoever read it may have enough.
            if let Err(error) = ended
                && error.kind() != io::ErrorKind::BrokenPipe
            {
                tracing::error!("what the command writes cannot be passed on: {error}");
            }
            closed();
        });
        Ok(())
    }

    /// Waits until all that was written before is passed on.
    pub(super) fn drain(&self) {
        let until = now() + PATIENCE;
        let all = self.progress.read_and_waiting(&self.from);
        while self.progress.written.load(Ordering::SeqCst) < all
            && !self.progress.is_over.load(Ordering::SeqCst)
            && now() < until
        {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Passed {
    /// Passes on what is there; returns how many bytes, 0 at the end.
    fn pass_some(
        &self,
        from: &mut PipeReader,
        to: &mut File,
        buffer: &mut [u8],
    ) -> io::Result<usize> {
        poll(&mut [PollFd::new(from, PollFlags::IN)], None)?;
        let read = {
            let mut all = self.read();
            let read = from.read(buffer)?;
            *all += read as u64;
            read
        };
        write_all(to, &buffer[..read])?;
        self.written.fetch_add(read as u64, Ordering::SeqCst);
        Ok(read)
    }

    /// What has been read, and what waits to be.
    fn read_and_waiting(&self, from: &PipeReader) -> u64 {
        // No read comes between the two.
        let all = self.read();
        *all + ioctl_fionread(from).unwrap_or(0)
    }

    fn read(&self) -> MutexGuard<'_, u64> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes all of it, also to a pipe that somebody has told not to wait.
fn write_all(to: &mut File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                poll(&mut [PollFd::new(to, PollFlags::OUT)], None)?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[allow(
    clippy::disallowed_methods,
    reason = "the shell, which waits for whoever reads"
)]
fn now() -> Instant {
    Instant::now()
}
