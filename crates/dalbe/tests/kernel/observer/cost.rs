//! What the observer costs. Prints, asserts nothing: it is run by hand, with
//! `cargo test -p dalbe --test kernel -- --ignored --nocapture cost`.

use std::fs;

use libbpf_rs::query::ProgInfoIter;

use super::*;

/// Whether the kernel measures how long programs run.
const STATISTICS: &str = "/proc/sys/kernel/bpf_stats_enabled";

/// Packets, one at a time so that none are merged.
const PACKETS: usize = 30_000;

/// Calls of the program, and the time they took together, ns.
fn calls(program: u32) -> (u64, u64) {
    let info = ProgInfoIter::default().find(|info| info.id == program);
    let info = info.expect("it is loaded");
    (info.run_cnt, info.run_time_ns)
}

/// Sends packets over the loopback interface, and tells what a call took.
fn measure(what: &str, program: u32, watch: impl FnOnce(&TcpSocket)) {
    let (mut client, mut server) = loopback();
    let socket = socket_of(&client);
    watch(&socket);
    let before = calls(program);
    let mut packet = [7; 1_400];
    for _ in 0..PACKETS {
        server.write_all(&packet).expect("sent");
        client.read_exact(&mut packet).expect("received");
    }
    let after = calls(program);
    let (count, time) = (after.0 - before.0, after.1 - before.1);
    println!("{what}: {} ns per call, {count} calls", time / count.max(1));
}

#[test]
#[ignore = "prints what the observer costs"]
fn cost_of_a_packet_and_of_a_reading() {
    in_own_namespace(|| {
        set_up(EbpfPart::Observer);
        let link = libbpf_rs::Link::open(directory().join("observer/v1/link")).expect("pinned");
        let program = link.info().expect("a link").prog_id;
        let observer = Observer::open().expect("set up");
        let was = fs::read_to_string(STATISTICS).expect("a sysctl");
        fs::write(STATISTICS, "1").expect("root may");
        for _ in 0..3 {
            measure("not watched", program, |_| ());
            measure("watched, 20 ms", program, |socket| {
                let length = Duration::from_millis(20);
                observer.watch(socket, length).expect("its own socket");
            });
            measure("watched, 5 ms", program, |socket| {
                let length = Duration::from_millis(5);
                observer.watch(socket, length).expect("its own socket");
            });
        }
        fs::write(STATISTICS, was.trim()).expect("root may");

        let (mut client, mut server) = loopback();
        let socket = socket_of(&client);
        let length = Duration::from_millis(20);
        observer.watch(&socket, length).expect("its own socket");
        for _ in 0..40 {
            transfer(&mut server, &mut client, 10_000);
            thread::sleep(length);
        }
        let start = Instant::now();
        const READINGS: u32 = 10_000;
        let told: usize = (0..READINGS)
            .map(|_| observer.arrivals(&socket).expect("a TCP socket").len())
            .sum();
        let each = start.elapsed() / READINGS;
        println!(
            "a reading of {} intervals: {each:?}",
            told / READINGS as usize
        );
    });
}
