//! kill -9 of the agent while it pushes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fairbat_agent::sync::Delete;
use fairbat_tests::bin::agent_binary;
use fairbat_tests::poll::wait_until;
use fairbat_tests::stores::{FaultProxy, S3, S3Kind};
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};

use crate::agent::Agent;
use crate::round_trip::{clean, dir, s3};
use crate::tree::expect_same;

const KILLS: usize = 12;

/// Fast enough for a test, and slow enough to be killed many times, byte/s.
const RATE: &str = "8M";

const SEED: u64 = 11;

/// What is on its way when a process is killed has to be sent again: a part, and
/// a small file on each connection.
const LOST_BY_A_KILL: u64 = 6 * 1024 * 1024;

/// Writes a configuration with a job that pushes `source` through `proxy` to
/// `server`; everything of the agent's own is in `work`.
pub(crate) fn configure(
    work: &Path,
    source: &Path,
    server: &S3,
    proxy: &FaultProxy,
    rate: Option<&str>,
) -> PathBuf {
    let limit = rate.map_or(String::new(), |rate| format!("limit_rate = {rate:?}\n"));
    let config = work.join("agent.toml");
    let text = format!(
        "[agent]\nstate = {state:?}\nsocket = {socket:?}\nlisten = false\n{limit}\
         [stores.s3]\ntype = \"s3\"\nendpoint = {endpoint:?}\nregion = {region:?}\n\
         bucket = {bucket:?}\nprefix = \"hosts/alpha\"\n\
         [[jobs]]\nname = \"home\"\nsource = {source:?}\ndestination = \"s3:home\"\nevery = \"1h\"\n",
        state = work.join("state"),
        socket = work.join("socket"),
        endpoint = proxy.url(),
        region = server.region(),
        bucket = server.bucket(),
    );
    fs::write(&config, text).expect("write a configuration");
    config
}

pub(crate) fn start(config: &Path, log: &Path, server: &S3) -> Child {
    let log = fs::File::options()
        .create(true)
        .append(true)
        .open(log)
        .expect("open a log");
    Command::new(agent_binary())
        .args(["run", "--config"])
        .arg(config)
        .env("AWS_ACCESS_KEY_ID", server.access_key())
        .env("AWS_SECRET_ACCESS_KEY", server.secret_key())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("start the agent")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_that_is_killed_goes_on_where_it_was() {
    println!("seed {SEED}");
    let mut rng = StdRng::seed_from_u64(SEED);
    let (work, source) = (dir(), dir());
    let mut total = 0;
    for (i, mebibytes) in [40, 25, 6, 1, 1, 0].into_iter().enumerate() {
        let mut content = vec![0; mebibytes * 1024 * 1024 + i];
        rng.fill_bytes(&mut content);
        total += content.len() as u64;
        fs::write(source.path().join(format!("f{i}")), content).expect("write a file");
    }
    let server = S3::start(S3Kind::Moto);
    let proxy = FaultProxy::start(server.address());
    let config = configure(work.path(), source.path(), &server, &proxy, Some(RATE));
    let log = work.path().join("log");
    let is_done = || fs::read_to_string(&log).is_ok_and(|log| log.contains("done task=\"home\""));

    let mut kills = 0;
    while kills < KILLS && !is_done() {
        let mut agent = start(&config, &log, &server);
        tokio::time::sleep(Duration::from_millis(rng.random_range(300..1_200))).await;
        agent.kill().expect("kill the agent");
        agent.wait().expect("wait for the agent");
        kills += 1;
    }
    assert!(kills > 4, "{kills} kills");
    let mut agent = start(&config, &log, &server);
    wait_until("everything is pushed", Duration::from_secs(60), || {
        is_done()
    });
    agent.kill().expect("kill the agent");
    agent.wait().expect("wait for the agent");

    let sent = proxy.body_bytes("PUT");
    let most = total + (kills as u64 + 1) * LOST_BY_A_KILL;
    assert!(sent <= most, "{sent} bytes sent of {total}, {kills} kills");
    let reader = Agent::new(
        &s3(&server, &server.endpoint()),
        &work.path().join("reader"),
    );
    let pending = reader.store.pending("home").await.expect("list uploads");
    assert_eq!(pending, [], "no upload is left unfinished");
    let pulled = dir();
    clean(reader.pull(pulled.path(), Delete::Never).await);
    expect_same(source.path(), pulled.path());
}
