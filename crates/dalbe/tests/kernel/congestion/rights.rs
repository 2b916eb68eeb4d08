//! What another user can do to sockets that are not its own: nothing.

use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use libbpf_rs::ErrorKind;
use libbpf_rs::libbpf_sys::BPF_F_RDONLY;

use super::*;

/// A user who is nobody in particular, and not `nobody`.
const SOMEBODY_ELSE: u32 = 65_533;

/// Where the other process finds the number of our descriptor.
const DESCRIPTOR: &str = "FAIRBAT_TEST_DESCRIPTOR";

#[test]
fn another_user_cannot_change_our_sockets() {
    in_own_namespace(|| {
        set_up(EbpfPart::CongestionControls);
        let own = std::env::current_exe().expect("this test");
        fs::copy(own, "/run/test").expect("root");
        let congestion = WeightedCongestion::open().expect("set up");
        let (mut client, mut server) = loopback();
        let socket = socket_of(&client);
        congestion
            .set(&socket, &of_weight(CongestionLaw::Cdg, 0.5))
            .expect("its own");
        transfer(&mut client, &mut server, 10_000);

        let output = Command::new("/run/test")
            .args(["--ignored", "--exact", "congestion::rights::the_other_user"])
            .env_clear()
            .env(DESCRIPTOR, socket.as_fd().as_raw_fd().to_string())
            .uid(SOMEBODY_ELSE)
            .gid(SOMEBODY_ELSE)
            .output()
            .expect("a copy of this test");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}");
        assert!(said.contains("1 passed"), "{said}");

        let parameters = map("parameters");
        let entry = entry(&parameters, socket.as_fd().as_raw_fd()).expect("its own");
        let entry = entry.expect("it was set");
        assert_eq!([number(&entry, 0), number(&entry, 4)], [3, 32_768]);
        congestion
            .set(&socket, &of_weight(CongestionLaw::Cdg, 1.0))
            .expect("its own");
        transfer(&mut client, &mut server, 10_000);
    });
}

/// In a process of its own.
#[test]
#[ignore = "is started by another_user_cannot_change_our_sockets"]
fn the_other_user() {
    let theirs = std::env::var(DESCRIPTOR).expect("started by the other test");
    let theirs: i32 = theirs.parse().expect("a number");
    let parameters = map("parameters");
    let pin = |name: &str| pins().join(name);

    // Numbers of descriptors are those of this process, which has no socket.
    for descriptor in (0..64).chain([theirs]) {
        let key = descriptor.to_ne_bytes();
        assert!(entry(&parameters, descriptor).is_err(), "{descriptor}");
        let update = parameters.update(&key, &[1; 32], MapFlags::ANY);
        assert!(update.is_err(), "{descriptor}");
        assert!(parameters.delete(&key).is_err(), "{descriptor}");
    }
    // Its own it may address, so that it is not for lack of a map.
    let (client, _server) = loopback();
    let own = client.as_raw_fd();
    parameters
        .update(&own.to_ne_bytes(), &[1; 32], MapFlags::ANY)
        .expect("its own");
    assert!(entry(&parameters, own).expect("its own").is_some());

    // Nobody can freeze it, for all.
    parameters.freeze().expect_err("it is everybody's");
    parameters
        .update(&own.to_ne_bytes(), &[1; 32], MapFlags::ANY)
        .expect("its own");

    // Nobody can go through all entries.
    assert_eq!(parameters.keys().count(), 0);

    // What the kernel tells is for reading.
    let refused = MapHandle::from_pinned_path(pin("state")).expect_err("to be read only");
    assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
    let state = MapHandle::from_pinned_path_with_file_flags(pin("state"), BPF_F_RDONLY);
    let state = state.expect("everybody may read it");
    let value = vec![0; state.value_size() as usize];
    let update = state.update(&own.to_ne_bytes(), &value, MapFlags::ANY);
    assert_eq!(
        update.expect_err("read only").kind(),
        ErrorKind::PermissionDenied
    );
    let freeze = state.freeze().expect_err("read only");
    assert_eq!(freeze.kind(), ErrorKind::PermissionDenied);

    // What is pinned stays as it is, and where it is.
    for name in entries(&pins()) {
        let path = pin(&name);
        let refused = [
            fs::remove_file(&path),
            fs::rename(&path, path.with_file_name("other")),
            fs::set_permissions(&path, fs::metadata(&path).expect("there").permissions()),
            fs::create_dir(path.with_file_name("new")),
        ];
        for error in refused.map(|result| result.expect_err("it is root's")) {
            assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied, "{name}");
        }
    }
    for name in names() {
        let refused = libbpf_rs::Link::open(pin(&name)).expect_err("it is root's");
        assert_eq!(refused.kind(), ErrorKind::PermissionDenied, "{name}");
    }
}
