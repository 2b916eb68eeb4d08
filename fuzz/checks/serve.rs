//! What must hold for any bytes that a client sends to `fairbat serve`.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use fairbat::serve::{Patience, ServeSettings, Server, UploadLimits};
use socket2::SockRef;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

/// How long an answer is waited for. A file that has just been stored is served only
/// seconds later.
const PATIENCE: Duration = Duration::from_millis(300);

/// The content of a file that is not served.
const SECRET: &[u8] = b"qzjxkvwp-not-served";

/// Panics if an answer is none, if it has content of files that are not served, or if a
/// request changes something outside of the directory.
///
/// The first byte of the input chooses the server: `w` takes uploads. The rest is what a
/// client sends, where `\n` ends a line.
pub(crate) fn check(data: &[u8]) {
    let Some((choice, rest)) = data.split_first() else {
        return;
    };
    let scene = SCENE.lock().unwrap_or_else(PoisonError::into_inner);
    let answer = scene.exchange(
        match choice {
            b'w' => scene.writable,
            _ => scene.readable,
        },
        &request(rest),
    );
    let is_ours = |bytes: &[u8]| bytes.windows(SECRET.len()).any(|part| part == SECRET);
    assert!(
        !is_ours(&answer) || is_ours(rest),
        "it serves what is outside"
    );
    let status = answer
        .strip_prefix(b"HTTP/1.1 ")
        .or(answer.strip_prefix(b"HTTP/1.0 "));
    assert!(answer.is_empty() || status.is_some(), "{answer:?}");
    let is_failure = status.is_some_and(|status| status.starts_with(b"500"));
    assert!(!is_failure, "{}", String::from_utf8_lossy(&answer));
    scene.check_outside();
    if *choice == b'w' {
        make_writable(&scene.directory.path().join("writable"));
    }
}

/// The bytes that a client sends: the head has lines that end with CRLF.
fn request(text: &[u8]) -> Vec<u8> {
    let end = text.windows(2).position(|bytes| bytes == b"\n\n");
    let (head, body) = text.split_at(end.map_or(text.len(), |end| end + 2));
    let mut request = Vec::with_capacity(text.len() + 16);
    for &byte in head {
        if byte == b'\n' {
            request.push(b'\r');
        }
        request.push(byte);
    }
    request.extend_from_slice(body);
    request
}

struct Scene {
    runtime: Runtime,
    directory: TempDir,
    readable: SocketAddr,
    writable: SocketAddr,
}

static SCENE: LazyLock<Mutex<Scene>> = LazyLock::new(|| {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().expect("a runtime");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (readable, writable) = (
        directory.path().join("readable"),
        directory.path().join("writable"),
    );
    fs::write(directory.path().join("outside"), SECRET).expect("write a file");
    for root in [&readable, &writable] {
        fs::create_dir(root).expect("make a directory");
    }
    make_tree(&readable);
    fs::write(readable.join("file"), "0123456789").expect("write a file");
    make_writable(&writable);
    let readable = start(&runtime, &readable, None);
    let writable = start(
        &runtime,
        &writable,
        Some(UploadLimits {
            max_size: Some(10_000),
        }),
    );
    let scene = Scene {
        runtime,
        directory,
        readable,
        writable,
    };
    // It is served when later changes would show.
    while scene
        .exchange(readable, b"GET /file HTTP/1.0\r\n\r\n")
        .is_empty()
    {}
    Mutex::new(scene)
});

fn start(runtime: &Runtime, directory: &Path, uploads: Option<UploadLimits>) -> SocketAddr {
    let patience = Duration::from_secs(2);
    let settings = ServeSettings {
        directory: directory.to_owned(),
        listen: "127.0.0.1:0".parse().expect("an address"),
        background: false,
        sender: Default::default(),
        max_connections: 100,
        max_per_peer: 99,
        allowed_hosts: Vec::new(),
        token: None,
        tls: None,
        http3: false,
        patience: Patience {
            sending: patience,
            idle: patience,
            closing: patience,
            ..Patience::default()
        },
        uploads,
    };
    let server = runtime
        .block_on(Server::bind(&settings))
        .expect("a free port");
    let address = server.address();
    runtime.spawn(server.run());
    address
}

/// Links that lead out, and what the server keeps for itself.
fn make_tree(root: &Path) {
    fs::create_dir(root.join("directory")).expect("make a directory");
    symlink("../outside", root.join("out")).expect("make a link");
    symlink("../..", root.join("directory/up")).expect("make a link");
    symlink("/", root.join("slash")).expect("make a link");
    fs::write(root.join("empty"), "").expect("write a file");
}

/// Makes the tree that takes uploads, unless it is as it was.
fn make_writable(root: &Path) {
    let mut names: Vec<_> = entries(root);
    names.extend(entries(&root.join("directory")));
    names.retain(|name| name != ".fairbat-upload");
    names.sort();
    let is_empty = fs::metadata(root.join("empty")).is_ok_and(|empty| empty.len() == 0);
    if is_empty && names == ["directory", "empty", "out", "slash", "up"] {
        return;
    }
    for name in entries(root)
        .into_iter()
        .filter(|name| name != ".fairbat-upload")
    {
        let path = root.join(name);
        let metadata = fs::symlink_metadata(&path).expect("look at an entry");
        match metadata.is_dir() {
            true => fs::remove_dir_all(path).expect("remove a directory"),
            false => fs::remove_file(path).expect("remove a file"),
        }
    }
    make_tree(root);
}

fn entries(directory: &Path) -> Vec<std::ffi::OsString> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    entries
        .map(|entry| entry.expect("an entry").file_name())
        .collect()
}

impl Scene {
    /// All that a server answers to these bytes.
    fn exchange(&self, address: SocketAddr, request: &[u8]) -> Vec<u8> {
        self.runtime.block_on(async {
            let mut stream = TcpStream::connect(address)
                .await
                .expect("the server listens");
            // Closing resets the connection, so that the machine does not run out of ports.
            SockRef::from(&stream)
                .set_linger(Some(Duration::ZERO))
                .expect("set an option");
            let (mut reading, mut writing) = stream.split();
            let write = async {
                // The server may have answered already, and be gone.
                let _ = writing.write_all(request).await;
                let _ = writing.shutdown().await;
            };
            let mut answer = Vec::new();
            let read = reading.read_to_end(&mut answer);
            let both = async { tokio::join!(write, read) };
            let _ = tokio::time::timeout(PATIENCE, both).await;
            answer
        })
    }

    fn check_outside(&self) {
        let mut names = entries(self.directory.path());
        names.sort();
        assert_eq!(names, ["outside", "readable", "writable"]);
        let outside = fs::read(self.directory.path().join("outside")).expect("read a file");
        assert_eq!(outside, SECRET);
    }
}
