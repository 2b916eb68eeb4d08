//! A list that may outgrow memory. Beyond a few megabytes it is written to a temporary
//! file. It is read once, in order.

use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::SpooledTempFile;

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

impl<T: Serialize + DeserializeOwned> Spool<T> {
    pub(crate) fn new() -> Self {
        Self {
            file: BufWriter::new(SpooledTempFile::new(MAX_IN_MEMORY)),
            items: PhantomData,
        }
    }

    pub(crate) fn push(&mut self, item: &T) -> io::Result<()> {
        let bytes = postcard::to_stdvec(item).map_err(io::Error::other)?;
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        self.file.write_all(&length.to_le_bytes())?;
        self.file.write_all(&bytes)
    }

    pub(crate) fn finish(self) -> io::Result<Spooled<T>> {
        let mut file = self
            .file
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        Ok(Spooled {
            file: BufReader::new(file),
            items: PhantomData,
        })
    }
}

impl<T: DeserializeOwned> Iterator for Spooled<T> {
    type Item = io::Result<T>;

    fn next(&mut self) -> Option<io::Result<T>> {
        let mut length = [0; 4];
        match self.file.read_exact(&mut length) {
            Ok(()) => Some(self.item(u32::from_le_bytes(length))),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
            Err(error) => Some(Err(error)),
        }
    }
}

impl<T: DeserializeOwned> Spooled<T> {
    fn item(&mut self, length: u32) -> io::Result<T> {
        let mut bytes = vec![0; length as usize];
        self.file.read_exact(&mut bytes)?;
        postcard::from_bytes(&bytes).map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out_in_order_also_beyond_memory() {
        let item = |i: u32| (i, vec![i as u8; 10_000]);
        let mut spool = Spool::new();
        for i in 0..2_000 {
            spool.push(&item(i)).unwrap();
        }
        let mut count = 0;
        for (i, read) in spool.finish().unwrap().enumerate() {
            assert_eq!(read.unwrap(), item(i as u32));
            count += 1;
        }
        assert_eq!(count, 2_000);
        assert!(Spool::<u8>::new().finish().unwrap().next().is_none());
    }
}
