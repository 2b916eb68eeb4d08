//! The key of a job, which shows that its manifests come from those who know it.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use hmac::{Hmac, KeyInit, Mac};
use rustix::fs::OFlags;
use sha2::Sha256;
use tempfile::NamedTempFile;

use super::digest::Digest256;
use crate::owner::give_to_owner_of_directory;

/// Longest text of a key file, bytes. A key has 64 digits and a line feed.
const MAX_TEXT: u64 = 128;

/// What to do about a key file that has no key.
pub const DAMAGED_KEY_HINT: &str = "delete the file, and import your copy of the key, or what \
    `fairbat-agent key JOB` prints on another machine that has it: `fairbat-agent key JOB \
    --import`; if there is none, the next push makes a new key, writes the manifests anew and \
    sends no file again, and the machines that pull need the new key";

/// A key for HMAC-SHA-256 (RFC 2104). A file has it as 64 hexadecimal digits.
#[derive(Clone, PartialEq, Eq)]
pub struct JobKey([u8; 32]);

impl JobKey {
    /// Makes a new key.
    #[must_use]
    #[allow(
        clippy::disallowed_methods,
        reason = "a secret, made once and then stored"
    )]
    pub fn generate() -> Self {
        Self(rand::random())
    }

    /// Reads the text of a key file.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`]: it is not 64 hexadecimal digits.
    pub fn parse(text: &str) -> io::Result<Self> {
        let digest: Result<Digest256, _> = text.trim().to_owned().try_into();
        let wrong = |_| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "a key has 64 hexadecimal digits",
            )
        };
        Ok(Self(digest.map_err(wrong)?.0))
    }

    /// Reads a key file; `None` if there is none. Blocking.
    ///
    /// # Errors
    /// The file cannot be read, or has no key.
    pub fn read(file: &Path) -> io::Result<Option<Self>> {
        let opened = match File::open(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let mut text = String::new();
        opened.take(MAX_TEXT).read_to_string(&mut text)?;
        Self::parse(&text).map(Some)
    }

    /// Writes a key file, which only its owner can read. It is there as a whole or not
    /// at all. Blocking.
    ///
    /// # Errors
    /// The file cannot be written, or exists already ([`io::ErrorKind::AlreadyExists`]).
    pub fn write(&self, file: &Path) -> io::Result<()> {
        let directory = file.parent().unwrap_or(Path::new("."));
        let around = directory.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(around)?;
        let made = std::fs::DirBuilder::new().mode(0o700).create(directory);
        // A link would lead root's file elsewhere.
        let opened = File::options()
            .read(true)
            .custom_flags((OFlags::DIRECTORY | OFlags::NOFOLLOW).bits().cast_signed())
            .open(directory)?;
        match made {
            Ok(()) => give_to_owner_of_directory(directory, &opened)?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        // Also if a link takes its place meanwhile.
        let directory = Path::new("/proc/self/fd").join(opened.as_raw_fd().to_string());
        let file = directory.join(file.file_name().unwrap_or_default());
        // Temporary files have mode 0600.
        let mut new = NamedTempFile::new_in(&directory)?;
        give_to_owner_of_directory(&file, new.as_file())?;
        writeln!(new, "{}", self.to_hex())?;
        new.as_file().sync_all()?;
        new.persist_noclobber(file)?;
        opened.sync_all()
    }

    /// The text of its file.
    #[must_use]
    pub fn to_hex(&self) -> String {
        String::from(Digest256(self.0))
    }

    pub(crate) fn sign(&self, message: &[u8]) -> Digest256 {
        Digest256(self.mac(message).finalize().into_bytes().into())
    }

    /// Compares in constant time.
    pub(crate) fn has_signed(&self, message: &[u8], authenticator: &Digest256) -> bool {
        self.mac(message).verify_slice(&authenticator.0).is_ok()
    }

    fn mac(&self, message: &[u8]) -> Hmac<Sha256> {
        let mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        mac.chain_update(message)
    }
}

impl fmt::Debug for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JobKey(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_comes_back_from_a_file_that_only_its_owner_reads() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("keys/home");
        assert_eq!(JobKey::read(&file).unwrap(), None);
        let key = JobKey::generate();
        key.write(&file).unwrap();
        assert_eq!(JobKey::read(&file).unwrap(), Some(key.clone()));
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
        let again = JobKey::generate().write(&file).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        assert!(!format!("{key:?}").contains(&key.to_hex()));
        for wrong in ["", "12", &"g".repeat(64), &"0".repeat(65)] {
            std::fs::write(&file, wrong).unwrap();
            let error = JobKey::read(&file).unwrap_err();
            assert!(error.to_string().contains("64"), "{error}");
        }
    }

    #[test]
    fn authenticators_are_those_of_rfc_4231() {
        // Test case 3, with a key that is as long as ours only by its padding: HMAC fills
        // keys up with zeros.
        let mut key = [0; 32];
        key[..20].fill(0xaa);
        let signed = JobKey(key).sign(&[0xdd; 50]);
        let expected = "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe";
        assert_eq!(String::from(signed), expected);
        assert!(JobKey(key).has_signed(&[0xdd; 50], &signed));
        assert!(!JobKey(key).has_signed(&[0xdd; 49], &signed));
        assert!(!JobKey::generate().has_signed(&[0xdd; 50], &signed));
    }
}
