//! Coming and going, under connections that have one of them.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;

use dalbe::ebpf::EbpfUnavailable;
use dalbe::ebpf::setup::{InstallOutcome, SetupStatus, remove, status};
use libbpf_rs::query::LinkInfoIter;

use super::*;

const PART: EbpfPart = EbpfPart::CongestionControls;

/// The registrations that are pinned there, by the kernel's numbers.
fn registrations(version: &Path) -> BTreeSet<u32> {
    let names = entries(version).into_iter();
    let names = names.filter(|name| name.starts_with("fairbat_"));
    let id = |name: String| {
        let link = libbpf_rs::Link::open(version.join(name)).expect("a pinned link");
        link.info().expect("a link").id
    };
    names.map(id).collect()
}

/// Waits until the kernel has let go of these registrations.
fn assert_go(registrations: &BTreeSet<u32>) {
    wait_until("the kernel to let go", || {
        LinkInfoIter::default().all(|link| !registrations.contains(&link.id))
    });
}

/// A connection that is under control, and the socket of its end that sends.
fn controlled(congestion: &WeightedCongestion) -> (TcpStream, TcpStream, TcpSocket) {
    let (mut client, mut server) = loopback();
    let socket = socket_of(&client);
    congestion
        .set(&socket, &of_weight(CongestionLaw::Vegas, MIN_WEIGHT))
        .expect("its own");
    send(&mut client, &mut server);
    (client, server, socket)
}

fn packets(congestion: &WeightedCongestion, socket: &TcpSocket) -> u64 {
    let state = congestion.state(socket).expect("TCP");
    state.expect("under control").packets
}

#[test]
fn removal_leaves_no_trace() {
    in_own_namespace(|| {
        assert_eq!(
            status(directory(), PART).expect("readable"),
            SetupStatus::NotSetUp
        );
        assert!(matches!(
            WeightedCongestion::open(),
            Err(EbpfUnavailable::NotSetUp)
        ));
        assert!(!remove(directory(), PART).expect("nothing to remove"));

        assert_eq!(
            install(directory(), PART).expect("root"),
            InstallOutcome::New
        );
        assert_eq!(
            status(directory(), PART).expect("readable"),
            SetupStatus::SetUp
        );
        assert_eq!(
            install(directory(), PART).expect("root"),
            InstallOutcome::Already
        );
        let mode = |name: &str| {
            let found = fs::metadata(pins().join(name)).expect("pinned");
            found.permissions().mode() & 0o777
        };
        assert_eq!([mode("parameters"), mode("state")], [0o666, 0o444]);
        let names = names();
        assert_eq!(names.len(), 3);
        assert!(names.iter().all(|name| mode(name) == 0o600), "{names:?}");
        let registrations = registrations(&pins());
        assert_eq!(registrations.len(), 3);

        assert!(remove(directory(), PART).expect("root"));
        assert_go(&registrations);
        assert!(!Path::new("/run/fairbat").exists());
        assert!(matches!(
            WeightedCongestion::open(),
            Err(EbpfUnavailable::NotSetUp)
        ));
    });
}

#[test]
fn controls_end_with_the_namespace_of_their_setup() {
    let mut own = BTreeSet::new();
    in_own_namespace(|| {
        set_up(PART);
        own = registrations(&pins());
    });
    assert_go(&own);
}

#[test]
fn connections_keep_a_control_that_is_removed() {
    in_own_namespace(|| {
        set_up(PART);
        let (congestion, (mut client, mut server, socket)) = as_nobody(|| {
            let congestion = WeightedCongestion::open().expect("everybody may");
            let connection = controlled(&congestion);
            (congestion, connection)
        });
        let name = socket.sender().congestion().expect("TCP");
        let before = packets(&congestion, &socket);
        let registrations = registrations(&pins());
        assert!(remove(directory(), PART).expect("root"));
        // The kernel does that by itself, some time later.
        assert_go(&registrations);
        as_nobody(|| {
            send(&mut client, &mut server);
            assert_eq!(socket.sender().congestion().expect("TCP"), name);
            assert!(packets(&congestion, &socket) > before);
            // What it is to do can still be set, and it goes on by that.
            congestion
                .set(&socket, &of_weight(CongestionLaw::VegasPaper, 1.0))
                .expect("its own");
            send(&mut client, &mut server);

            // No other connection comes under its control, once the control's name is gone as
            // well. Another test's may have that name meanwhile.
            wait_until("another connection to be without control", || {
                let (mut other, mut other_end) = loopback();
                let other_socket = socket_of(&other);
                match congestion.set(&other_socket, &of_weight(CongestionLaw::Vegas, 1.0)) {
                    Err(error) => assert!(error.to_string().contains(&name), "{error}"),
                    Ok(()) => send(&mut other, &mut other_end),
                }
                congestion.state(&other_socket).expect("TCP").is_none()
            });
        });
    });
}

#[test]
fn an_upgrade_leaves_connections_with_old_controls_as_they_are() {
    in_own_namespace(|| {
        set_up(PART);
        let versions = directory().join("congestion");
        let old = WeightedCongestion::open().expect("set up");
        let (mut client, mut server, socket) = controlled(&old);
        let old_names = names();
        fs::rename(versions.join(version()), versions.join("v0")).expect("root");
        let old_registrations = registrations(&versions.join("v0"));
        assert_eq!(
            status(directory(), PART).expect("readable"),
            SetupStatus::OtherVersion { version: 0 }
        );
        let error = as_nobody(WeightedCongestion::open).expect_err("another version");
        let expected = matches!(
            error,
            EbpfUnavailable::OtherVersion {
                found: 0,
                needed: dalbe::ebpf::CONGESTION_VERSION
            }
        );
        assert!(expected, "{error:?}");
        assert!(error.to_string().contains("sudo fairbat setup"), "{error}");

        assert_eq!(
            install(directory(), PART).expect("root"),
            InstallOutcome::Replaced { version: 0 }
        );
        assert_eq!(entries(&versions), [version()]);
        let new_names = names();
        assert!(new_names.iter().all(|name| !old_names.contains(name)));

        // It goes on, and what it is to do can be changed, by who began it.
        let before = packets(&old, &socket);
        old.set(&socket, &of_weight(CongestionLaw::Vegas, 1.0))
            .expect("its own");
        send(&mut client, &mut server);
        assert!(packets(&old, &socket) > before);
        assert_eq!(
            socket.sender().congestion().expect("TCP"),
            old.name(CongestionLaw::Vegas)
        );
        // A new process has the new ones, for the same connection as well.
        let new = WeightedCongestion::open().expect("set up");
        assert!(
            new_names
                .iter()
                .any(|name| name == new.name(CongestionLaw::Vegas))
        );
        new.set(&socket, &of_weight(CongestionLaw::Vegas, 1.0))
            .expect("its own");
        assert_eq!(
            socket.sender().congestion().expect("TCP"),
            new.name(CongestionLaw::Vegas)
        );
        send(&mut client, &mut server);
        assert_go(&old_registrations);
    });
}

#[test]
fn an_incomplete_setup_is_completed() {
    in_own_namespace(|| {
        let versions = directory().join("congestion");
        set_up(PART);
        fs::rename(versions.join(version()), versions.join("unfinished")).expect("root");
        assert_eq!(
            status(directory(), PART).expect("readable"),
            SetupStatus::NotSetUp
        );
        let left = registrations(&versions.join("unfinished"));
        assert_eq!(
            install(directory(), PART).expect("root"),
            InstallOutcome::New
        );
        assert_go(&left);
        assert_eq!(entries(&versions), [version()]);

        fs::remove_file(pins().join(&names()[0])).expect("root");
        assert_eq!(
            status(directory(), PART).expect("readable"),
            SetupStatus::NotSetUp
        );
        assert!(as_nobody(WeightedCongestion::open).is_err());
        let left = registrations(&pins());
        assert_eq!(
            install(directory(), PART).expect("root"),
            InstallOutcome::New
        );
        assert_eq!(
            status(directory(), PART).expect("readable"),
            SetupStatus::SetUp
        );
        assert_go(&left);
        as_nobody(WeightedCongestion::open).expect("everybody may");
    });
}

#[test]
fn two_installations_have_names_of_their_own() {
    in_own_namespace(|| {
        let places = ["/run/first", "/run/second"].map(|path| Path::new(path).join("bpf"));
        let both = places.each_ref().map(|place| {
            fs::create_dir(place.parent().expect("a parent")).expect("root");
            assert_eq!(install(place, PART).expect("root"), InstallOutcome::New);
            WeightedCongestion::open_in(place).expect("set up")
        });
        for law in CongestionLaw::ALL {
            assert_ne!(both[0].name(law), both[1].name(law));
        }
        let (mut client, mut server, socket) = controlled(&both[1]);
        assert!(remove(&places[0], PART).expect("root"));
        // The other one is not touched.
        send(&mut client, &mut server);
        assert_eq!(
            status(&places[1], PART).expect("readable"),
            SetupStatus::SetUp
        );
        let (.., other) = controlled(&both[1]);
        assert_eq!(
            other.sender().congestion().expect("TCP"),
            socket.sender().congestion().expect("TCP")
        );
    });
}
