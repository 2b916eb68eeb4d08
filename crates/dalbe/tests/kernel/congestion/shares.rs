//! What weights do to connections of a process without privilege.

use std::net::Shutdown;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::link::Link;

/// A queue of 30 ms: 60 kB at 16 Mbit/s.
const QUEUE: &str = "rate 16mbit burst 6000 limit 60000";

/// What is counted at a time, and how often until the shares have settled: a
/// law that heeds losses alone may wait some seconds for one.
const COUNTED: Duration = Duration::from_secs(2);
const TIMES: usize = 20;
/// So many in a row are judged together: even equal flows take turns, for some
/// seconds each.
const SETTLED: usize = 5;

/// A window that is told to fall has fallen when so many times its packets have arrived, or never;
/// and how long to wait for those.
const WINDOWS: u64 = 30;
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection that sends as much as it may.
struct Flow {
    server: TcpStream,
    client: TcpStream,
    received: AtomicU64,
}

impl Flow {
    fn over(link: &Link) -> Self {
        let (client, server) = link.connection();
        Self {
            server,
            client,
            received: AtomicU64::new(0),
        }
    }

    fn socket(&self) -> TcpSocket {
        socket_of(&self.server)
    }

    /// Both ends at work, until what is returned is dropped.
    #[must_use]
    fn run<'scope>(&'scope self, scope: &'scope thread::Scope<'scope, '_>) -> Running<'scope> {
        scope.spawn(|| while (&self.server).write_all(&[7; 10_000]).is_ok() {});
        scope.spawn(|| {
            let mut buffer = [0; 10_000];
            while let Ok(count @ 1..) = (&self.client).read(&mut buffer) {
                self.received.fetch_add(count as u64, Ordering::Relaxed);
            }
        });
        Running(self)
    }
}

/// A scope waits for its threads, also when the test has failed in it.
struct Running<'scope>(&'scope Flow);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        for end in [&self.0.server, &self.0.client] {
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

/// Looks every millisecond until there is something.
fn until<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let from = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(from.elapsed() < Duration::from_secs(20), "in vain: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// What each of the flows gets in the same time, bytes.
fn shares(flows: &[Flow; 2]) -> [u64; 2] {
    let received = || {
        flows
            .each_ref()
            .map(|flow| flow.received.load(Ordering::Relaxed))
    };
    let before = received();
    thread::sleep(COUNTED);
    let after = received();
    [after[0] - before[0], after[1] - before[1]]
}

/// Waits until flow `nth` has more than twice the other's share over some counts, and in the last
/// of them, so that its window is that of such a flow. Returns whether that happened, and all
/// shares until then.
fn comes_to_have_more(flows: &[Flow; 2], nth: usize) -> (bool, Vec<[u64; 2]>) {
    let mut counted = Vec::new();
    for _ in 0..TIMES {
        let shares = shares(flows);
        counted.push(shares);
        let last = counted
            .last_chunk::<SETTLED>()
            .unwrap_or(&[[0; 2]; SETTLED]);
        let sum = |nth: usize| last.iter().map(|shares| shares[nth]).sum::<u64>();
        if sum(nth) > 2 * sum(1 - nth) && shares[nth] > 2 * shares[1 - nth] {
            return (true, counted);
        }
    }
    (false, counted)
}

/// Two connections of one process, one of which is told more, then the other:
/// each time that one comes to have clearly more of the path, and the other has
/// made room after some round trips.
fn who_is_told_more_has_more(more: &CongestionParameters, less: &CongestionParameters) {
    in_own_namespace(|| {
        set_up(EbpfPart::CongestionControls);
        let name = format!("{:?}", more.law).to_lowercase();
        let link = Link::with_bridge(&name, QUEUE);
        let flows = [Flow::over(&link), Flow::over(&link)];
        as_nobody(|| {
            let congestion = WeightedCongestion::open().expect("everybody may");
            let sockets = flows.each_ref().map(Flow::socket);
            let set = |wishes: [&CongestionParameters; 2]| {
                for (socket, wish) in sockets.iter().zip(wishes) {
                    congestion.set(socket, wish).expect("its own");
                }
            };
            let state = |socket: &TcpSocket| {
                let state = congestion.state(socket).expect("TCP");
                state.expect("under control")
            };
            set([more, less]);
            let counted = thread::scope(|scope| {
                let _running = flows.each_ref().map(|flow| flow.run(scope));
                let first = comes_to_have_more(&flows, 0);
                let before = state(&sockets[0]);
                set([less, more]);
                let changed = Instant::now();
                // A window falls by round trips, which are longer where processors are taken.
                let last = before.packets + WINDOWS * u64::from(before.cwnd);
                let has_made_room = loop {
                    let now = state(&sockets[0]);
                    if now.cwnd <= before.cwnd / 2 {
                        break true;
                    } else if now.packets > last || changed.elapsed() > PATIENCE {
                        break false;
                    }
                    thread::sleep(Duration::from_millis(5));
                };
                (first, has_made_room, comes_to_have_more(&flows, 1))
            });
            let (first, has_made_room, second) = &counted;
            assert!(first.0 && *has_made_room && second.0, "{counted:?}");
        });
    });
}

#[test]
fn vegas_gives_the_greater_weight_more() {
    let of = |w| of_weight(CongestionLaw::Vegas, w);
    who_is_told_more_has_more(&of(1.0), &of(MIN_WEIGHT));
}

#[test]
fn cubic_gives_the_greater_weight_more() {
    let of = |w| of_weight(CongestionLaw::CubicPhantom, w);
    who_is_told_more_has_more(&of(1.0), &of(MIN_WEIGHT));
}

#[test]
fn cdg_gives_the_greater_scale_more() {
    // The scale that follows from w is too small on a path as short as this, and
    // on a longer one a flow that comes late takes the other's queue for a part
    // of it: what w does is measured in the lab (sender-weights).
    let of = |w, g_ms| CongestionParameters {
        g_ms: Some(g_ms),
        ..of_weight(CongestionLaw::Cdg, w)
    };
    who_is_told_more_has_more(&of(1.0, 1_000.0), &of(MIN_WEIGHT, 1.0));
}

#[test]
fn a_lease_that_nobody_renews_ends_with_full_weight() {
    in_own_namespace(|| {
        set_up(EbpfPart::CongestionControls);
        let link = Link::with_bridge("lease", QUEUE);
        let flows = [Flow::over(&link), Flow::over(&link)];
        as_nobody(|| {
            let congestion = WeightedCongestion::open().expect("everybody may");
            let least = of_weight(CongestionLaw::Vegas, MIN_WEIGHT);
            let lease = Some(Duration::from_secs(1));
            let [leased, other] = flows.each_ref().map(Flow::socket);
            congestion.lease(&leased, &least, lease).expect("its own");
            congestion.set(&other, &least).expect("its own");
            let (has_more, counted) = thread::scope(|scope| {
                let _running = flows.each_ref().map(|flow| flow.run(scope));
                comes_to_have_more(&flows, 0)
            });
            assert!(has_more, "{counted:?}");
        });
    });
}

/// A flow that has yielded and gets the full weight begins as a new one does. Without slow
/// start, it would need about twice as many packets for this window.
const OPENED: u32 = 10;
const PACKETS: u64 = 40;

#[test]
fn a_flow_that_no_longer_yields_begins_with_slow_start() {
    in_own_namespace(|| {
        set_up(EbpfPart::CongestionControls);
        let link = Link::with_bridge("begins", QUEUE);
        let [own, rival] = [Flow::over(&link), Flow::over(&link)];
        as_nobody(|| {
            let congestion = WeightedCongestion::open().expect("everybody may");
            let socket = own.socket();
            let set = |w| {
                let wish = of_weight(CongestionLaw::Vegas, w);
                congestion.set(&socket, &wish).expect("its own");
            };
            let state = || congestion.state(&socket).expect("TCP");
            let begins = || {
                set(MIN_WEIGHT);
                // There is none before the first round trip.
                let before = until("the flow yields", || state().filter(|it| it.cwnd <= 3));
                set(1.0);
                until("the window opens", || {
                    let now = state().expect("it has yielded");
                    let packets = now.packets - before.packets;
                    (now.cwnd >= OPENED || packets > PACKETS).then_some((now.cwnd, packets))
                })
            };
            let seen = thread::scope(|scope| {
                let _running = [&own, &rival].map(|flow| flow.run(scope));
                // A loss in the full queue of the rival may end it early.
                [(); 5].map(|()| begins())
            });
            let opened = seen.iter().filter(|it| it.0 >= OPENED);
            assert!(opened.count() >= 3, "windows, packets: {seen:?}");
        });
    });
}
