//! A list that may outgrow memory. Beyond a few megabytes it is written to a temporary
//! file. It is read once, in order.

use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::SpooledTempFile;

use super::report::RunProblem;

/// Longest list in memory, bytes.
const MAX_IN_MEMORY: usize = 4 * 1024 * 1024;

/// A list that is being written.
#[derive(Debug)]
pub(crate) struct Spool<T> {
    file: BufWriter<SpooledTempFile>,
    items: PhantomData<T>,
}

/// A finished list, which is an iterator.
#[derive(Debug)]
pub(crate) struct Spooled<T> {
    file: BufReader<SpooledTempFile>,
    items: PhantomData<T>,
}

impl<T> Default for Spool<T> {
    fn default() -> Self {
        Self {
            file: BufWriter::new(SpooledTempFile::new(MAX_IN_MEMORY)),
            items: PhantomData,
        }
    }
}

impl<T: Serialize + DeserializeOwned> Spool<T> {
    /// # Errors
    /// [`RunProblem::Disk`].
    pub(crate) fn push(&mut self, item: &T) -> Result<(), RunProblem> {
        let bytes = postcard::to_stdvec(item).map_err(failed)?;
        let length = u32::try_from(bytes.len()).map_err(failed)?;
        self.file.write_all(&length.to_le_bytes()).map_err(failed)?;
        self.file.write_all(&bytes).map_err(failed)
    }

    /// The list from its beginning.
    ///
    /// # Errors
    /// [`RunProblem::Disk`]; and each item may be one.
    pub(crate) fn read(self) -> Result<Spooled<T>, RunProblem> {
        let mut file = self.file.into_inner().map_err(failed)?;
        file.rewind().map_err(failed)?;
        Ok(Spooled {
            file: BufReader::new(file),
            items: PhantomData,
        })
    }
}

impl<T: DeserializeOwned> Iterator for Spooled<T> {
    type Item = Result<T, RunProblem>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut length = [0; 4];
        match self.file.read_exact(&mut length) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return None,
            Err(error) => return Some(Err(failed(error))),
            Ok(()) => {}
        }
        let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
        let read = self.file.read_exact(&mut bytes).map_err(failed);
        Some(read.and_then(|()| postcard::from_bytes(&bytes).map_err(failed)))
    }
}

fn failed(error: impl std::fmt::Display) -> RunProblem {
    RunProblem::Disk(format!("temporary files: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out_in_order_also_beyond_memory() {
        let item = |i: u32| (i, vec![i as u8; 10_000]);
        let mut spool = Spool::default();
        for i in 0..2_000 {
            spool.push(&item(i)).unwrap();
        }
        let mut count = 0;
        for (i, read) in spool.read().unwrap().enumerate() {
            assert_eq!(read.unwrap(), item(i as u32));
            count += 1;
        }
        assert_eq!(count, 2_000);
        assert!(Spool::<u8>::default().read().unwrap().next().is_none());
    }
}
