//! Metalink documents (RFC 5854): what a file is, and where it is to be had.
//!
//! What identifies the file is its hash. Without one a Metalink is a list of servers, about
//! which nothing is known. Torrents, signatures, languages and descriptions are skipped.

mod fetch;
mod read;

use url::Url;

pub(crate) use self::fetch::described;
pub use self::fetch::fetch;
pub use self::read::parse;
use crate::file_name::safe_name;
use crate::settings::{Checksum, PieceHashes};
use crate::xml::XmlError;

/// Largest document, bytes.
pub const MAX_LENGTH: usize = 32 << 20;

/// Files of one document.
const MAX_FILES: usize = 10_000;

/// URLs of one file. Those of the lowest priority are skipped.
const MAX_URLS: usize = 100;

/// Longest path on Linux, bytes, with the zero at its end (`linux/limits.h`).
const PATH_MAX: usize = 4096;

/// A file of a Metalink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetalinkFile {
    /// Its name: a relative path with `/` between the parts, each of which is a
    /// [`FileName`](crate::file_name::FileName).
    pub name: String,
    /// Size, bytes.
    pub size: Option<u64>,
    /// Its SHA-256, or its SHA-512 if it has none.
    pub checksum: Option<Checksum>,
    /// Hashes of its parts.
    pub pieces: Option<PieceHashes>,
    /// Where it is to be had, by priority and then in the order of the document. URLs of other
    /// schemes, as `ftp`, are skipped.
    pub urls: Vec<Url>,
    /// The types of its hashes, if no hash is of a type with which it can be compared.
    pub unknown_hashes: Vec<String>,
}

/// Why a document is no Metalink, or cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetalinkError {
    /// It is longer than [`MAX_LENGTH`].
    #[error("it is longer than {MAX_LENGTH} bytes")]
    TooLong,
    /// It is no XML, or only a part of a document.
    #[error(transparent)]
    Xml(#[from] XmlError),
    /// It is XML of another kind.
    #[error("it is no Metalink: its outermost element is {0:?}, and not metalink")]
    Other(String),
    /// Its outermost element is of another namespace.
    #[error(
        "it is no Metalink: its outermost element is not in the namespace \
             urn:ietf:params:xml:ns:metalink"
    )]
    Namespace,
    /// It is a Metalink of version 3.
    #[error("it is a Metalink of version 3, and only version 4 (RFC 5854, .meta4) is known")]
    Version3,
    /// No file is in it, or too many.
    #[error("it has {0} files; 1 to {MAX_FILES} are allowed")]
    Files(usize),
    /// A file has no name.
    #[error("one of its files has no name")]
    NoName,
    /// The name of a file is not safe to write to.
    #[error(
        "the name {0:?} of a file cannot be used: it has to be a relative path of visible names, \
         of which none is too long or ends in .part"
    )]
    Name(String),
    /// Two files have the same name.
    #[error("two files have the name {0:?}")]
    SameName(String),
    /// A size or a length is no number.
    #[error("{file}: the {what} {text:?} is no number of bytes")]
    Number {
        /// Name of the file.
        file: String,
        /// What it is of.
        what: &'static str,
        /// What stands there.
        text: String,
    },
    /// A hash cannot be one.
    #[error("{file}: a hash of the type {algorithm} is not right: {text:?}")]
    Hash {
        /// Name of the file.
        file: String,
        /// Its type.
        algorithm: String,
        /// What stands there.
        text: String,
    },
    /// There are more or fewer hashes of parts than parts.
    #[error("{file}: {found} hashes of pieces, where its size makes {expected} pieces")]
    Pieces {
        /// Name of the file.
        file: String,
        /// Hashes in the document.
        found: usize,
        /// Pieces of the file.
        expected: u64,
    },
    /// A URL cannot be one.
    #[error("{file}: {text:?} is no URL")]
    Url {
        /// Name of the file.
        file: String,
        /// What stands there.
        text: String,
    },
    /// A file has no URL that can be used.
    #[error("{0}: it has no http or https URL")]
    NoUrl(String),
}

/// Whether a name is a relative path that stays where it is put (RFC 5854, section 4.1.2.1), and
/// each part of it a name that a server may suggest. What a server suggests is changed until it is
/// safe. A path is refused, for files of a Metalink may be meant to lie beside each other.
fn is_safe_name(name: &str) -> bool {
    let is_safe = |part: &str| safe_name(part).is_some_and(|safe| safe.as_str() == part);
    name.len() < PATH_MAX && name.split('/').all(is_safe)
}

#[cfg(test)]
mod tests;
