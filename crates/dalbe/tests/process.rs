//! Other programs: what they do is told, and their sockets are reached.
#![allow(
    clippy::disallowed_methods,
    reason = "tests watch real processes, by the real clock"
)]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use dalbe::process::{ForeignProcess, Inherited, Intent, LastNotice, descendants, launch, split};

/// The connects over TCP that are told of a command, each as its descriptor, with its exit
/// status. Others do not count: bash may ask the name service by a local socket as it begins.
fn told(command: Command) -> (Vec<i32>, Option<i32>) {
    let (heard, connects) = mpsc::channel();
    let inherited = Inherited::take(&[], false).expect("/proc");
    let (second, _other) = UnixStream::pair().expect("a pair");
    let child = launch(command, &inherited, second, move |listener| {
        let listener = listener.expect("a listener");
        let last = LastNotice::new().expect("memory");
        while let Some(notice) = listener.next(&last).expect("notices") {
            if let Intent::Connect(descriptor) = notice.intent {
                let process = ForeignProcess::open(notice.process).expect("a child");
                let socket = process.socket(descriptor).expect("a child's");
                if socket.local_addr().is_ok() {
                    heard.send(descriptor).expect("the test listens");
                }
            }
            listener.go_on(&notice);
        }
    });
    let status = child.expect("it starts").wait().expect("it ends");
    (connects.iter().collect(), status.code())
}

#[test]
fn a_connect_is_told_with_its_descriptor_and_goes_on() {
    let server = TcpListener::bind("127.0.0.1:0").expect("listen");
    let address = server.local_addr().expect("an address");
    let served = std::thread::spawn(move || {
        let (mut stream, _) = server.accept().expect("a connection");
        stream.write_all(b"hello").expect("send");
    });
    let mut bash = Command::new("bash");
    let script = format!(
        "exec 7<>/dev/tcp/127.0.0.1/{}; read -r -N5 word <&7; [ $word = hello ]",
        address.port()
    );
    bash.args(["-c", &script]);
    let (connects, status) = told(bash);
    served.join().expect("it has served");
    assert_eq!(status, Some(0));
    assert_eq!(connects, [3], "it moves the descriptor to 7 later");
}

#[test]
fn a_socket_of_a_child_is_the_childs_own() {
    let server = TcpListener::bind("127.0.0.1:0").expect("listen");
    let mut child = Command::new("bash");
    let port = server.local_addr().expect("an address").port();
    let script = format!("exec 7<>/dev/tcp/127.0.0.1/{port}; echo ready; read -r <&7");
    let mut child = child
        .args(["-c", &script])
        .stdout(Stdio::piped())
        .spawn()
        .expect("start bash");
    let mut stdout = child.stdout.take().expect("piped");
    let (mut stream, _) = server.accept().expect("a connection");
    stdout.read_exact(&mut [0; 6]).expect("it is ready");

    let number = child.id().cast_signed();
    let own = i32::try_from(std::process::id()).expect("a process");
    assert!(descendants([own]).expect("/proc").contains(&number));
    let process = ForeignProcess::open(number).expect("a child");
    assert!(!process.has_ended());
    let sockets = process.sockets().expect("a child's");
    assert!(sockets.iter().any(|(descriptor, _)| *descriptor == 7));
    let socket = process.socket(7).expect("a child's");
    let peer = socket.peer_addr().expect("connected");
    assert_eq!(peer, server.local_addr().expect("an address"));
    let again = process.socket(7).expect("a child's");
    assert_eq!(socket.cookie().ok(), again.cookie().ok());
    drop((socket, again));
    assert!(process.socket(99).is_err());

    stream.write_all(b"\n").expect("send");
    assert!(child.wait().expect("it ends").success());
    assert!(process.has_ended());
    assert!(process.socket(7).is_err());
}

#[test]
fn a_duplicate_that_is_dropped_does_not_delay_the_end_of_a_connection() {
    let server = TcpListener::bind("127.0.0.1:0").expect("listen");
    let address = server.local_addr().expect("an address");
    let client = TcpStream::connect(address).expect("connect");
    let (served, _) = server.accept().expect("a connection");
    let own = i32::try_from(std::process::id()).expect("a process");
    let process = ForeignProcess::open(own).expect("this one");
    let duplicate = process.socket(client.as_raw_fd()).expect("its own");
    drop(client);
    let set_patience = |time: u64| {
        let time = Duration::from_millis(time);
        served.set_read_timeout(Some(time)).expect("a socket");
    };
    set_patience(300);
    assert!(
        (&served).read(&mut [0; 1]).is_err(),
        "the duplicate keeps it open"
    );
    // A busy machine takes some time, and the kernel's own timers for sockets take longer.
    set_patience(5000);
    drop(duplicate);
    assert_eq!((&served).read(&mut [0; 1]).expect("the end"), 0);
}

#[test]
fn a_process_with_threads_is_not_split() {
    // A test runs in a thread beside the first.
    let refused = split().expect_err("there are threads");
    assert!(refused.to_string().contains("threads"), "{refused}");
}
