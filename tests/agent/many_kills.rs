//! Fifty kills of a push of two gigabytes, and what they cost: for three mixes of
//! files. Takes minutes, so it runs with `make crash` only, or with optimised programs:
//!
//! ```text
//! cargo build --release -p fairbat-agent
//! FAIRBAT_AGENT_BIN=target/release/fairbat-agent \
//!     cargo test -p fairbat-tests --test agent -- --ignored --nocapture many_kills
//! ```
//!
//! The push goes as fast as it can, or with `FAIRBAT_KILLS_RATE=24M` that fast; an
//! agent lives for at most `FAIRBAT_KILLS_LIFE` milliseconds. What is repeated is
//! mostly the part that is on its way: half of one, 2.6 MB, for each kill while
//! something is being sent. The slower the path is, the nearer it comes to that,
//! for S3 takes no smaller parts.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fairbat_agent::sync::Delete;
use fairbat_tests::poll::wait_until;
use fairbat_tests::stores::{FaultProxy, S3, S3Kind};
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};

use crate::agent::Agent;
use crate::kills::{configure, start};
use crate::round_trip::{clean, dir, s3};
use crate::tree::expect_same;

const KILLS: usize = 50;

const SEED: u64 = 29;

const MB: usize = 1_000_000;

/// What is repeated, of all bytes, in percent: less than this.
const MOST: f64 = 5.0;

/// How long an agent lives at least, and at most unless it is said otherwise, ms.
const LIFE: (u64, u64) = (100, 900);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn of_few_big_files() {
    kill_many(
        "big",
        &[
            420 * MB,
            420 * MB + 1,
            420 * MB + 2,
            420 * MB + 3,
            420 * MB + 4,
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn of_files_of_a_few_parts() {
    kill_many("medium", &[13 * MB; 160]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn of_small_files() {
    kill_many("small", &[MB + 50_000; 2_000]).await;
}

#[allow(clippy::disallowed_methods, reason = "how long it took is told")]
async fn kill_many(name: &str, sizes: &[usize]) {
    let rate = std::env::var("FAIRBAT_KILLS_RATE").ok();
    let longest = std::env::var("FAIRBAT_KILLS_LIFE").ok();
    let longest = longest.map_or(LIFE.1, |text| text.parse().expect("milliseconds"));
    println!("{name}: seed {SEED}, rate {rate:?}, lives of up to {longest} ms");
    let mut rng = StdRng::seed_from_u64(SEED);
    let (work, source) = (dir(), dir());
    let mut lengths = BTreeMap::new();
    for (i, size) in sizes.iter().enumerate() {
        let mut content = vec![0; *size];
        rng.fill_bytes(&mut content);
        let file = format!("f{i:04}");
        fs::write(source.path().join(&file), content).expect("write a file");
        lengths.insert(format!("home/{file}"), *size as u64);
    }
    let total: u64 = lengths.values().sum();
    let server = S3::start(S3Kind::Moto);
    let proxy = FaultProxy::start(server.address());
    let config = configure(work.path(), source.path(), &server, &proxy, rate.as_deref());
    let reader = Agent::new(
        &s3(&server, &server.endpoint()),
        &work.path().join("reader"),
    );
    let is_over = Arc::new(AtomicBool::new(false));
    let (address, bucket) = (server.address(), server.bucket());
    let until = Arc::clone(&is_over);
    let watching = tokio::task::spawn_blocking(move || watch(address, bucket, &lengths, &until));

    let log = work.path().join("log");
    let began = Instant::now();
    let mut kills = 0;
    while kills < KILLS && !is_done(&log) {
        let mut agent = start(&config, &log, &server);
        tokio::time::sleep(Duration::from_millis(rng.random_range(LIFE.0..longest))).await;
        agent.kill().expect("kill the agent");
        agent.wait().expect("wait for the agent");
        kills += 1;
    }
    let at_last_kill = began.elapsed();
    let mut agent = start(&config, &log, &server);
    wait_until("everything is pushed", Duration::from_secs(900), || {
        is_done(&log)
    });
    agent.kill().expect("kill the agent");
    agent.wait().expect("wait for the agent");
    let took = began.elapsed();
    is_over.store(true, Ordering::Relaxed);
    let looks = watching.await.expect("no half file is seen");

    let puts = proxy.exchanges().into_iter();
    let puts = puts.filter(|seen| seen.method == "PUT");
    let (own, files): (Vec<_>, Vec<_>) = puts.partition(|seen| seen.target.contains("/.fairbat/"));
    let bytes = |puts: &[fairbat_tests::stores::Exchange]| -> u64 {
        puts.iter().map(|put| put.body_bytes).sum()
    };
    let repeated = bytes(&files) as f64 - total as f64;
    let percent = repeated / total as f64 * 100.0;
    let pending = reader.store.pending("home").await.expect("list uploads");
    println!(
        "{name}: {} files, {total} bytes; {kills} kills in {:.0} s of {:.0} s; {repeated} bytes \
         repeated: {percent:.2} %, {:.0} a kill; manifests {} bytes; orphans {}; {looks} looks \
         at the store, no half file",
        sizes.len(),
        at_last_kill.as_secs_f64(),
        took.as_secs_f64(),
        repeated / kills as f64,
        bytes(&own),
        pending.len(),
    );
    assert_eq!(pending, [], "no upload is left unfinished");
    let pulled = dir();
    clean(reader.pull(pulled.path(), Delete::Never).await);
    expect_same(source.path(), pulled.path());
    assert_eq!(kills, KILLS, "it was over too early");
    assert!(percent < MOST, "{percent:.2} % repeated");
}

/// Looks at the store all the time: each file is there as a whole or not at all.
fn watch(
    address: SocketAddr,
    bucket: &str,
    lengths: &BTreeMap<String, u64>,
    is_over: &AtomicBool,
) -> u64 {
    let mut looks = 0;
    while !is_over.load(Ordering::Relaxed) {
        let mut half = objects(address, bucket);
        half.retain(|(key, size)| lengths.get(key).is_some_and(|length| length != size));
        assert!(half.is_empty(), "{half:?}");
        looks += 1;
        std::thread::sleep(Duration::from_millis(300));
    }
    looks
}

/// The keys and lengths of the objects in a bucket of moto, which asks for no
/// signature.
fn objects(address: SocketAddr, bucket: &str) -> Vec<(String, u64)> {
    let mut found: Vec<(String, u64)> = Vec::new();
    loop {
        let after = found.last().map_or("", |(key, _)| key);
        let target = format!("/{bucket}?list-type=2&start-after={after}");
        let mut connection = TcpStream::connect(address).expect("the store listens");
        write!(
            connection,
            "GET {target} HTTP/1.0\r\nHost: {address}\r\n\r\n"
        )
        .expect("ask");
        let mut answer = String::new();
        connection.read_to_string(&mut answer).expect("an answer");
        assert!(answer.contains("ListBucketResult"), "{answer}");
        let element = |text: &str, name: &str| -> String {
            let (_, rest) = text.split_once(&format!("<{name}>")).expect(name);
            rest.split('<').next().unwrap_or_default().to_owned()
        };
        found.extend(answer.split("<Contents>").skip(1).map(|object| {
            let size = element(object, "Size").parse().expect("a length");
            (element(object, "Key"), size)
        }));
        if element(&answer, "IsTruncated") != "true" {
            return found;
        }
    }
}

fn is_done(log: &Path) -> bool {
    fs::read_to_string(log).is_ok_and(|log| log.contains("done task=\"home\""))
}
