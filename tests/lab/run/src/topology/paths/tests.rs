use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use socket2::{Domain, Socket, Type};

use super::*;
use crate::topology;
use crate::topology::Topology;

const SCENARIO: &str = r#"
description = "two paths"
duration_s = 60
measure_from_s = 0

[[link]]
path = "wifi"
rate_mbit = 50
delay_ms = 1
queue = { packets = 100 }

[[link]]
path = "lte"
rate_mbit = 50
delay_ms = 2
queue = { packets = 100 }

[background]
congestion_control = "reno"
"#;

/// The two hosts with their paths; `None` without the rights for it.
fn joined() -> Option<Topology> {
    Host::for_test(0)?;
    let scenario: Scenario = toml::from_str(SCENARIO).unwrap();
    assert_eq!(scenario.check(), Ok(()));
    let hosts = topology::hosts(&scenario).unwrap();
    let sampling = Duration::from_millis(10);
    Some(Topology::join(&scenario, hosts, 1, sampling, Clock::start()).unwrap())
}

/// How a socket of the client is bound.
#[derive(Debug, Clone, Copy)]
enum Bound {
    No,
    To(Ipv4Addr),
    Device(&'static str),
}

fn connect(client: &Host, to: SocketAddr, bound: Bound) -> io::Result<TcpStream> {
    client.within(move || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        match bound {
            Bound::No => {}
            Bound::To(address) => socket.bind(&SocketAddr::from((address, 0)).into())?,
            Bound::Device(device) => socket.bind_device(Some(device.as_bytes()))?,
        }
        socket.connect_timeout(&to.into(), Duration::from_secs(5))?;
        Ok(socket.into())
    })
}

/// Has the server send so many bytes over a connection that is bound like this; the address
/// that it was sent to.
fn carry(topology: &Topology, bound: Bound, bytes: usize) -> io::Result<IpPair> {
    let [server, client] = topology.hosts() else {
        panic!("there are two hosts");
    };
    let address = server.address(Class::Background);
    let listener = server.within(move || TcpListener::bind((address, 0)))?;
    let mut receiving = connect(client, listener.local_addr()?, bound)?;
    let (mut sending, from) = listener.accept()?;
    let sent = std::thread::spawn(move || sending.write_all(&vec![7; bytes]));
    let mut received = Vec::new();
    receiving.read_to_end(&mut received)?;
    sent.join().expect("it does not panic")?;
    assert_eq!(received.len(), bytes);
    Ok(IpPair {
        seen: from,
        own: receiving.local_addr()?,
    })
}

/// The address of a client as its server sees it, and as itself does.
#[derive(Debug)]
struct IpPair {
    seen: SocketAddr,
    own: SocketAddr,
}

#[test]
fn what_is_bound_to_a_path_goes_over_it_both_ways() {
    let Some(topology) = joined() else {
        return;
    };
    let at = |path| topology.hosts()[1].at_path(path).address(Class::Background);
    let mut expected = [0, 0];
    for (bound, path, bytes) in [
        (Bound::No, 0, 1_000),
        (Bound::Device("lte"), 1, 20_000),
        (Bound::To(at(1)), 1, 40_000),
        (Bound::Device("wifi"), 0, 80_000),
        (Bound::To(at(0)), 0, 160_000),
    ] {
        let addresses = carry(&topology, bound, bytes).unwrap();
        assert_eq!(addresses.seen.ip(), at(path), "{bound:?}");
        assert_eq!(addresses.own, addresses.seen);
        expected[path] += bytes as u64;
    }
    let links = topology.finish().unwrap();
    for (link, expected) in links.iter().zip(expected) {
        let carried = link.forward.counters.background_payload;
        assert!(
            (expected..expected * 11 / 10).contains(&carried),
            "{carried}: {expected}"
        );
        assert!(link.backward.counters.delivered > 10);
    }
}

#[test]
fn the_foreground_and_the_background_have_addresses_at_each_path() {
    let Some(topology) = joined() else {
        return;
    };
    let [server, client] = topology.hosts() else {
        panic!("there are two hosts");
    };
    for (class, path) in Class::ALL
        .into_iter()
        .flat_map(|class| [(class, 0), (class, 1)])
    {
        let address = server.address(class);
        let listener = server.within(move || TcpListener::bind((address, 0)).unwrap());
        let own = client.at_path(path).address(class);
        let to = listener.local_addr().unwrap();
        let _connected = connect(client, to, Bound::To(own)).unwrap();
        let (_, from) = listener.accept().unwrap();
        assert_eq!(from.ip(), own);
        assert_eq!(Class::of(from.ip()), Some(class));
    }
}

#[test]
fn a_path_that_comes_back_has_all_that_it_had() {
    let Some(topology) = joined() else {
        return;
    };
    let scenario: Scenario = toml::from_str(SCENARIO).unwrap();
    let [server, client] = topology.hosts() else {
        panic!("there are two hosts");
    };
    let paths = Paths::new(&scenario, server, client).unwrap();
    let routes = || {
        let all = client.ip("route show table all").unwrap();
        let mut all: Vec<_> = all
            .lines()
            .filter(|line| !line.contains(':'))
            .map(str::to_owned)
            .collect();
        all.sort();
        all
    };
    let before = routes();
    let at_wifi = Bound::To(client.at_path(0).address(Class::Background));
    paths.leave(&paths.all[0]).unwrap();
    for bound in [at_wifi, Bound::Device("wifi")] {
        carry(&topology, bound, 1000).expect_err("the path is away");
    }
    // Who does not choose goes over what there is.
    let addresses = carry(&topology, Bound::No, 1000).unwrap();
    assert_eq!(
        addresses.seen.ip(),
        client.at_path(1).address(Class::Background)
    );
    paths.come_back(&paths.all[0]).unwrap();
    assert_eq!(routes(), before);
    for bound in [at_wifi, Bound::Device("wifi"), Bound::No] {
        carry(&topology, bound, 1000).unwrap();
    }
}

#[test]
fn a_connection_lives_through_a_departure_of_its_path() {
    let Some(topology) = joined() else {
        return;
    };
    let scenario: Scenario = toml::from_str(SCENARIO).unwrap();
    let [server, client] = topology.hosts() else {
        panic!("there are two hosts");
    };
    let paths = Paths::new(&scenario, server, client).unwrap();
    let address = server.address(Class::Background);
    let listener = server.within(move || TcpListener::bind((address, 0)).unwrap());
    let to = listener.local_addr().unwrap();
    let mut receiving = connect(client, to, Bound::Device("lte")).unwrap();
    let (mut sending, _) = listener.accept().unwrap();
    paths.leave(&paths.all[1]).unwrap();
    // It is on its way when the device is down.
    sending.write_all(&[7; 1000]).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    paths.come_back(&paths.all[1]).unwrap();
    receiving
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    receiving.read_exact(&mut [0; 1000]).unwrap();
    let links = topology.finish().unwrap();
    assert!(links[1].forward.counters.lost > 0);
}
