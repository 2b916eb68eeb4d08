//! Why a request changed nothing: a line of text and a status.

use std::io;

use http::StatusCode;
use rustix::io::Errno;

use crate::blocking::LostThread;
use crate::serve::files::NotServed;

/// Why a request changed nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("this is no name: segments that are empty, . or .., or have a slash name nothing")]
    NoName,
    #[error("the server may not write there")]
    Forbidden,
    #[error("the way there leads out of the directory that is served, or into another file system")]
    Outside,
    #[error("there is nothing of this name")]
    Absent,
    #[error(
        "only GET, HEAD, PUT, DELETE, MOVE and MKCOL are understood, and POST for uploads in parts"
    )]
    OtherMethod,
    #[error("there is something of this name already")]
    Exists,
    #[error("there is a directory of this name")]
    Directory,
    #[error("something on the way there is no directory")]
    NoDirectory,
    #[error("the directory is not empty")]
    NotEmpty,
    #[error("what is there is neither a file nor a directory")]
    Special,
    #[error("a condition of the request does not hold")]
    Failed,
    #[error("files may have {0} bytes at most (--max-upload)")]
    TooLarge(u64),
    #[error("the file system takes no file of this size")]
    TooLargeForDisk,
    #[error(
        "a part needs an upload to belong to: send the whole file without Content-Range, or begin \
         with POST and the query ?parts"
    )]
    Part,
    #[error("an upload in parts begins with the length N of the file: Content-Range: bytes */N")]
    NoTotal,
    #[error("a part needs Content-Range: bytes A-B/{0}, for the file has {0} bytes")]
    NotOfFile(u64),
    #[error("the body does not have the {0} bytes that Content-Range names; they do not count")]
    OtherLength(u64),
    #[error("there is no such upload: it is complete or was given up, or the server began anew")]
    UnknownUpload,
    #[error("a newer request sends some of these bytes; those of this request do not count")]
    Overtaken,
    #[error("the upload takes no more parts: it is being completed, or was given up")]
    Closed,
    #[error("too many parts of this upload are under way")]
    ManyParts,
    #[error(
        "an upload in parts has no digest of the whole file: send Content-Digest with each part, \
         and neither Repr-Digest nor Digest with this request"
    )]
    WholeDigest,
    #[error("these bytes are missing: {0}")]
    Missing(String),
    #[error("send the file itself, without Content-Encoding")]
    Encoded,
    #[error("{0} is malformed")]
    Malformed(&'static str),
    #[error(
        "the body has the {algorithm} {found}, not the one that the request states; the body \
         does not count"
    )]
    Corrupt {
        algorithm: &'static str,
        /// In hexadecimal digits.
        found: String,
    },
    #[error("the body broke off; none of it counts")]
    Broken,
    #[error("too little came for too long; none of it counts")]
    Silent,
    #[error("this request has no body")]
    Body,
    #[error("Destination has to be a URL of this server")]
    NoDestination,
    #[error("Destination is on another server")]
    Elsewhere,
    #[error("only files are moved")]
    NoFile,
    #[error("source and destination are the same")]
    Same,
    #[error("there are too many uploads at once, or too many of this client")]
    Crowded,
    #[error("what is there changes all the time, or too many files are open")]
    Busy,
    #[error("the disk is full, or a quota is used up")]
    Full,
    #[error("the server's disk fails: {0}")]
    Disk(io::Error),
}

impl Refusal {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::NoName
            | Self::Part
            | Self::NoTotal
            | Self::NotOfFile(_)
            | Self::OtherLength(_)
            | Self::WholeDigest
            | Self::Malformed(_)
            | Self::Corrupt { .. }
            | Self::Broken
            | Self::NoDestination => StatusCode::BAD_REQUEST,
            Self::Forbidden | Self::Outside | Self::Same => StatusCode::FORBIDDEN,
            Self::Absent | Self::UnknownUpload => StatusCode::NOT_FOUND,
            Self::OtherMethod | Self::Exists => StatusCode::METHOD_NOT_ALLOWED,
            Self::Silent => StatusCode::REQUEST_TIMEOUT,
            Self::Directory
            | Self::NoDirectory
            | Self::NotEmpty
            | Self::Special
            | Self::NoFile
            | Self::Overtaken
            | Self::Closed
            | Self::Missing(_) => StatusCode::CONFLICT,
            Self::Failed => StatusCode::PRECONDITION_FAILED,
            Self::TooLarge(_) | Self::TooLargeForDisk => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Encoded | Self::Body => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Elsewhere => StatusCode::BAD_GATEWAY,
            Self::Crowded | Self::ManyParts | Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::Full => StatusCode::INSUFFICIENT_STORAGE,
            Self::Disk(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Self::Absent,
            Errno::NOTDIR => Self::NoDirectory,
            Errno::ISDIR => Self::Directory,
            Errno::NOTEMPTY | Errno::EXIST => Self::NotEmpty,
            Errno::XDEV | Errno::LOOP => Self::Outside,
            Errno::NAMETOOLONG | Errno::INVAL | Errno::ILSEQ => Self::NoName,
            Errno::ACCESS | Errno::PERM | Errno::ROFS => Self::Forbidden,
            Errno::NOSPC | Errno::DQUOT => Self::Full,
            Errno::FBIG => Self::TooLargeForDisk,
            Errno::AGAIN | Errno::MFILE | Errno::NFILE | Errno::NOMEM => Self::Busy,
            other => Self::Disk(other.into()),
        }
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(errno) => errno.into(),
            None => Self::Disk(error),
        }
    }
}

impl From<NotServed> for Refusal {
    fn from(reason: NotServed) -> Self {
        match reason {
            NotServed::Absent => Self::Absent,
            NotServed::Forbidden => Self::Forbidden,
            NotServed::Busy => Self::Busy,
            NotServed::Broken(error) => Self::Disk(error),
        }
    }
}

impl From<LostThread> for Refusal {
    fn from(lost: LostThread) -> Self {
        Self::Disk(lost.into())
    }
}
