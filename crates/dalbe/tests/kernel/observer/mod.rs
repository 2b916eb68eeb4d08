//! The observer.

mod cost;
mod counts;
mod options;
mod path;
mod setup;

use dalbe::ebpf::{ObservedInterval, Observer};

use super::*;

/// What was observed, once it is so many bytes.
fn observed(observer: &Observer, socket: &TcpSocket, bytes: u64) -> Vec<ObservedInterval> {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        let intervals = observer.arrivals(socket).expect("a TCP socket");
        let sum: u64 = intervals.iter().map(|interval| interval.bytes).sum();
        if sum >= bytes {
            return intervals;
        }
        assert!(Instant::now() < deadline, "{sum} of {bytes}: {intervals:?}");
        thread::sleep(Duration::from_millis(5));
    }
}
