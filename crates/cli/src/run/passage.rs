//! A stream of the command that passes through fairbat, which reads in it how far along the
//! command is.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{fcntl_dupfd_cloexec, ioctl_fionread};

use super::progress::ProgressReader;
use crate::args::ProgressFormat;

/// What has been written when the command ends is passed on before fairbat ends, unless whoever
/// reads it takes longer than this.
const PATIENCE: Duration = Duration::from_secs(5);

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
    /// Whether something is on its way.
    is_passing: Arc<AtomicBool>,
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
            is_passing: Arc::default(),
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
        let is_passing = Arc::clone(&self.is_passing);
        let mut reader = ProgressReader::new(self.format);
        thread::spawn(move || {
            let mut buffer = vec![0; BUFFER];
            while let Ok(read) = pass_some(&mut from, &mut to, &mut buffer, &is_passing) {
                if read == 0 {
                    break;
                }
                reader.read(&buffer[..read]).into_iter().for_each(&mut told);
            }
            is_passing.store(false, Ordering::SeqCst);
            drop((from, to));
            closed();
        });
        Ok(())
    }

    /// Waits until all that was written is passed on.
    pub(super) fn drain(&self) {
        let until = now() + PATIENCE;
        // In this order: what is not in the pipe any more is on its way, or has been passed on.
        while (ioctl_fionread(&self.from).is_ok_and(|waiting| waiting > 0)
            || self.is_passing.load(Ordering::SeqCst))
            && now() < until
        {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Passes on what is there; returns how many bytes, 0 at the end.
fn pass_some(
    from: &mut PipeReader,
    to: &mut File,
    buffer: &mut [u8],
    is_passing: &AtomicBool,
) -> io::Result<usize> {
    is_passing.store(false, Ordering::SeqCst);
    poll(&mut [PollFd::new(from, PollFlags::IN)], None)?;
    is_passing.store(true, Ordering::SeqCst);
    let read = from.read(buffer)?;
    to.write_all(&buffer[..read])?;
    Ok(read)
}

#[allow(
    clippy::disallowed_methods,
    reason = "the shell, which waits for whoever reads"
)]
fn now() -> Instant {
    Instant::now()
}
