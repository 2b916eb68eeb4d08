//! What runs in the kernel, in a real one: set up by root, used by somebody
//! else.
//!
//! Each test has a mount namespace of its own, with an empty `/run` in it, so
//! that it sees nothing but what it has set up itself, and leaves none of it
//! behind. Congestion controls have names of the whole machine; those of tests
//! are numbered.
#![cfg(feature = "bpf")]
#![allow(
    clippy::disallowed_methods,
    reason = "tests wait for a real kernel, by the real clock"
)]

mod at_once;
mod congestion;
mod link;
mod observer;

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use dalbe::ebpf::setup::install;
use dalbe::ebpf::{EbpfPart, PIN_DIRECTORY};
use dalbe::socket::TcpSocket;
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{Gid, Uid};
use rustix::thread::{
    UnshareFlags, set_thread_groups, set_thread_res_gid, set_thread_res_uid, unshare_unsafe,
};

/// Debian's `nobody` and `nogroup`.
const NOBODY: u32 = 65_534;

/// Runs a test in a mount namespace of its own, on a thread which the
/// namespace ends with; without root says so and does not.
#[allow(unsafe_code, reason = "rustix calls unsharing unsafe")]
fn in_own_namespace(test: impl FnOnce() + Send) {
    let thread = thread::current();
    let name = thread.name().unwrap_or("a test");
    run(|| {
        // SAFETY: descriptors stay shared; what is unshared is the working
        // directory and the mounts of this thread, which holds neither.
        let own = unsafe { unshare_unsafe(UnshareFlags::NEWNS | UnshareFlags::FS) };
        if own == Err(Errno::PERM) {
            let _ = writeln!(std::io::stderr(), "SKIPPED: {name}: needs root");
            return;
        }
        own.expect("a namespace");
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        mount_change("/", private).expect("mounts of our own");
        mount(
            "run",
            "/run",
            "tmpfs",
            MountFlags::empty(),
            Some(c"mode=0755"),
        )
        .expect("an empty /run");
        test();
    });
}

/// Runs this as somebody without any privilege.
fn as_nobody<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    run(|| {
        let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
        // Of this thread alone; capabilities go with the user.
        set_thread_groups(&[]).expect("root may");
        set_thread_res_gid(group, group, group).expect("root may");
        set_thread_res_uid(user, user, user).expect("root may");
        work()
    })
}

/// On a thread of its own.
fn run<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(work).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Where all is set up that everybody uses.
fn directory() -> &'static Path {
    Path::new(PIN_DIRECTORY)
}

/// Sets a part up there.
fn set_up(part: EbpfPart) {
    install(directory(), part).expect("root may set it up");
}

/// A connection over the loopback interface: client and server.
fn loopback() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("IPv4 loopback");
    let client = TcpStream::connect(listener.local_addr().expect("bound")).expect("loopback");
    let (server, _) = listener.accept().expect("a pending connection");
    (client, server)
}

/// The socket of a stream, by a duplicate as the product does it.
fn socket_of(stream: &TcpStream) -> TcpSocket {
    let copy: OwnedFd = stream.as_fd().try_clone_to_owned().expect("a descriptor");
    TcpSocket::from_fd(copy)
}

/// Sends so many bytes from one end to the other.
fn transfer(from: &mut TcpStream, to: &mut TcpStream, bytes: usize) {
    thread::scope(|scope| {
        scope.spawn(|| from.write_all(&vec![7; bytes]).expect("sent"));
        let mut left = vec![0; bytes];
        to.read_exact(&mut left).expect("received");
    });
}

/// Waits until this holds; panics, naming it, when it does not.
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "in vain for: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// The names in a directory, without the kernel's own (`maps.debug`).
fn entries(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("readable");
    let name = |entry: std::io::Result<fs::DirEntry>| {
        let name = entry.expect("readable").file_name();
        name.into_string().expect("our names are UTF-8")
    };
    let mut names: Vec<String> = entries.map(name).filter(|n| !n.contains('.')).collect();
    names.sort();
    names
}
