//! S3-compatible stores with one bucket.
//!
//! Neither is S3 itself. Both refuse parts below 5 MiB but for the last, take
//! `If-None-Match: *` for PutObject and CompleteMultipartUpload, serve ranges,
//! and do not check the checksum of a part, neither `Content-MD5` nor
//! `x-amz-checksum-sha256`.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::server::{Server, data};
use crate::bin::s3_server_binary;
use crate::keeper;
use crate::target::python;

const BUCKET: &str = "bucket";
const ACCESS_KEY: &str = "test-access";
const SECRET_KEY: &str = "test-secret/with+signs";

/// Which store it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum S3Kind {
    /// s3s-fs, version 0.14: files in a directory, which survive a kill.
    ///
    /// Refuses wrong keys and unsigned requests, and a signed one without
    /// `x-amz-content-sha256` (400). Checks `Content-MD5` and
    /// `x-amz-checksum-*` of an object, but only when the object has been
    /// replaced already.
    ///
    /// - Keys are paths of files: `a` and `a/b` exclude each other (500), `//`
    ///   and `.` vanish, and keys above about 170 bytes are a 500.
    /// - It has no ListMultipartUploads (501).
    /// - ListParts has no ETags, no order and no pages. ListObjectsV2 has no
    ///   ETags, claims an `encoding-type` without encoding, and is a 500 when
    ///   a key has a control character that XML cannot carry.
    /// - CompleteMultipartUpload ignores ETags, wants the numbers 1, 2, 3 ...
    ///   without a gap, and forgets the upload also when it fails; what is
    ///   unknown or forgotten is AccessDenied (403), not NoSuchUpload.
    /// - GetObject ignores `If-Match` and `If-None-Match`.
    /// - PutObject makes a missing bucket.
    S3sFs,
    /// moto: all in memory, forgotten when it is killed.
    ///
    /// Takes any access key and signature, and refuses only to read unsigned.
    /// (It can check them, but only against keys that it makes itself, anew
    /// after each start.) Objects may have any key but for one with a line
    /// feed. Lists objects, parts and uploads in order, with ETags and pages.
    ///
    /// - It never checks `Content-MD5` or `x-amz-checksum-sha256`, and tells
    ///   no SHA-256 afterwards.
    /// - Every upload in ListMultipartUploads began in 2010.
    /// - UploadPart for an aborted upload is a 500; other requests are
    ///   NoSuchUpload.
    Moto,
}

impl S3Kind {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::S3sFs, Self::Moto];
}

/// A running store; ended when dropped.
#[derive(Debug)]
pub struct S3 {
    kind: S3Kind,
    server: Server,
}

impl S3 {
    /// Starts it, with an empty bucket.
    ///
    /// # Panics
    /// When it does not come up, with what it said.
    #[must_use]
    pub fn start(kind: S3Kind) -> Self {
        let server = Server::start(match kind {
            S3Kind::S3sFs => s3s_fs,
            S3Kind::Moto => moto,
        });
        let store = Self { kind, server };
        store.make_bucket();
        store
    }

    /// Its URL, without a path: `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Where it listens, for a proxy before it.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Name of its bucket, a part of the path and not of the host.
    #[must_use]
    pub fn bucket(&self) -> &'static str {
        BUCKET
    }

    /// The access key of its owner.
    #[must_use]
    pub fn access_key(&self) -> &'static str {
        ACCESS_KEY
    }

    /// The secret key of its owner.
    #[must_use]
    pub fn secret_key(&self) -> &'static str {
        SECRET_KEY
    }

    /// The region to sign for.
    #[must_use]
    pub fn region(&self) -> &'static str {
        "us-east-1"
    }

    /// Where the objects of the bucket are, if they are files.
    #[must_use]
    pub fn bucket_directory(&self) -> Option<PathBuf> {
        match self.kind {
            S3Kind::S3sFs => Some(self.server.data().join(BUCKET)),
            S3Kind::Moto => None,
        }
    }

    /// Kills it (SIGKILL), with all its connections.
    pub fn kill(&mut self) {
        self.server.kill();
    }

    /// Starts it again on its port, killing it first if it runs: with what it
    /// had, or for [`S3Kind::Moto`] with an empty bucket.
    pub fn restart(&mut self) {
        self.server.restart();
        self.make_bucket();
    }

    fn make_bucket(&self) {
        match self.bucket_directory() {
            Some(directory) => fs::create_dir_all(directory).expect("make the bucket"),
            None => make_unsigned(self.address()),
        }
    }
}

/// Makes the bucket in a store that asks for no signature.
fn make_unsigned(address: SocketAddr) {
    let mut stream = TcpStream::connect(address).expect("connect to the store");
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("set a timeout");
    let request = format!(
        "PUT /{BUCKET} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    );
    stream
        .write_all(request.as_bytes())
        .expect("ask for a bucket");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 "), "no bucket: {answer}");
}

fn s3s_fs(home: &Path, port: u16) -> Command {
    let mut command = keeper::command(s3_server_binary(), home);
    command.arg(data(home)).arg(port.to_string());
    command.args([ACCESS_KEY, SECRET_KEY]);
    command
}

fn moto(home: &Path, port: u16) -> Command {
    let python = python();
    let mut command = keeper::command(&python, home);
    command.args(["-m", "moto.server", "-H", "127.0.0.1", "-p"]);
    command.arg(port.to_string());
    command
}
