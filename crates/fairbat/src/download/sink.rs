//! From response body to disk: pieces are gathered and written in one go,
//! while the next ones are being received.

use std::sync::Arc;

use bytes::Bytes;
use tokio::task::JoinHandle;

use super::part::error::StoreError;
use super::part::file::PartFile;

/// Bytes that are gathered for one write. Large enough that handing them to
/// another thread costs nothing, small enough that a few connections stay
/// far below 64 MB.
const GATHER: usize = 1024 * 1024;

/// Writes one contiguous range, in order.
#[derive(Debug)]
pub(crate) struct Sink {
    part: Arc<PartFile>,
    /// Where the gathered bytes go.
    offset: u64,
    /// Everything before this offset is written.
    written: u64,
    gathered: Vec<Bytes>,
    gathered_bytes: usize,
    writing: Option<Writing>,
}

#[derive(Debug)]
struct Writing {
    /// Where it ends.
    end: u64,
    task: JoinHandle<Result<(), StoreError>>,
}

impl Sink {
    pub(crate) fn new(part: Arc<PartFile>, offset: u64) -> Self {
        Self {
            part,
            offset,
            written: offset,
            gathered: Vec::new(),
            gathered_bytes: 0,
            writing: None,
        }
    }

    /// Takes a piece; it is written by a later [`Sink::flush`].
    pub(crate) fn push(&mut self, piece: Bytes) {
        self.gathered_bytes += piece.len();
        self.gathered.push(piece);
    }

    pub(crate) fn is_full(&self) -> bool {
        self.gathered_bytes >= GATHER
    }

    /// The file offset up to which everything is written.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Starts writing what has been gathered, after the write before it has
    /// ended.
    pub(crate) async fn flush(&mut self) -> Result<(), StoreError> {
        self.wait().await?;
        if self.gathered_bytes > 0 {
            let part = Arc::clone(&self.part);
            let offset = self.offset;
            let buffers = std::mem::take(&mut self.gathered);
            self.offset += std::mem::take(&mut self.gathered_bytes) as u64;
            self.writing = Some(Writing {
                end: self.offset,
                task: tokio::task::spawn_blocking(move || part.write_at(offset, &buffers)),
            });
        }
        Ok(())
    }

    /// Writes everything.
    pub(crate) async fn finish(&mut self) -> Result<(), StoreError> {
        self.flush().await?;
        self.wait().await
    }

    async fn wait(&mut self) -> Result<(), StoreError> {
        // The handle stays in place while waiting, so that a cancelled wait
        // does not lose track of the write.
        let Some(writing) = &mut self.writing else {
            return Ok(());
        };
        let result = (&mut writing.task).await;
        let end = writing.end;
        self.writing = None;
        result.map_err(|panic| StoreError::io("write", self.part.target(), panic.into()))??;
        self.written = end;
        Ok(())
    }
}
