//! Agents that are killed, and disks that are full, at random moments of many short
//! pushes. A few of them run with the other tests, and many, which takes minutes, with
//! `make crash`. Other numbers and seeds:
//!
//! ```text
//! cargo build -p fairbat-cli -p fairbat-agent
//! FAIRBAT_CRASHES=125 FAIRBAT_CRASH_SEED=7 \
//!     cargo test -p fairbat-tests --test agent -- --ignored --nocapture crashes
//! ```
//!
//! After each of them: the state opens, each object in the store is some whole version of
//! its file, and a pull brings all that was in step and has not changed since. Now and
//! then a push may end. Then a pull brings exactly the source.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fairbat_agent::sync::Delete;
use fairbat_tests::bin::agent_binary;
use fairbat_tests::poll::wait_until;
use fairbat_tests::stores::{S3, S3Kind};
use fairbat_tests::tmpfs::TmpFs;
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::agent::{Agent, StoreAccess, local_store};
use crate::round_trip::{clean, dir, s3};
use crate::service::{SOON, write_keys};
use crate::tree::expect_same;

const MIB: u64 = 1024 * 1024;

/// Crashes with the other tests.
const FEW: usize = 5;

/// So many crashes apart, a push may end.
const CRASHES_UNTIL_REST: usize = 8;

/// A file of this length is sent in parts.
const LARGE: usize = 6 * 1024 * 1024;

fn number(variable: &str, default: u64) -> u64 {
    let text = std::env::var(variable).ok();
    text.map_or(default, |text| text.parse().expect(variable))
}

fn crashes() -> usize {
    number("FAIRBAT_CRASHES", 125) as usize
}

fn rng() -> StdRng {
    let seed = number("FAIRBAT_CRASH_SEED", 7);
    println!("seed {seed}");
    StdRng::seed_from_u64(seed)
}

/// The source of a job, and all that its files have ever been.
struct Source {
    directory: TempDir,
    rng: StdRng,
    next: usize,
    /// The digests of all versions of each file.
    versions: BTreeMap<PathBuf, BTreeSet<[u8; 32]>>,
    /// Files that were in step once and have not changed since.
    settled: BTreeMap<PathBuf, [u8; 32]>,
}

impl Source {
    fn new(rng: StdRng) -> Self {
        let mut source = Self {
            directory: dir(),
            rng,
            next: 0,
            versions: BTreeMap::new(),
            settled: BTreeMap::new(),
        };
        source.write("large".into(), LARGE);
        for _ in 0..30 {
            source.add();
        }
        source
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn write(&mut self, file: PathBuf, size: usize) {
        let mut content = vec![0; size];
        self.rng.fill_bytes(&mut content);
        let path = self.path().join(&file);
        fs::create_dir_all(path.parent().expect("a parent")).expect("make a directory");
        fs::write(path, &content).expect("write a file");
        self.settled.remove(&file);
        let versions = self.versions.entry(file).or_default();
        versions.insert(Sha256::digest(content).into());
    }

    fn add(&mut self) {
        let file = format!("d{}/f{}", self.next % 5, self.next);
        self.next += 1;
        let size = self.rng.random_range(0..60_000);
        self.write(file.into(), size);
    }

    /// Changes some files, adds some and removes one.
    fn change(&mut self) {
        let mut files: Vec<_> = files(self.path()).into_keys().collect();
        files.retain(|file| file != Path::new("large"));
        let removed = files.swap_remove(self.rng.random_range(0..files.len()));
        fs::remove_file(self.path().join(&removed)).expect("remove a file");
        self.settled.remove(&removed);
        for _ in 0..3 {
            let file = files.swap_remove(self.rng.random_range(0..files.len()));
            let size = self.rng.random_range(0..60_000);
            self.write(file, size);
        }
        self.add();
        if self.path().join("large").exists() && self.rng.random_bool(0.2) {
            self.write("large".into(), LARGE);
        }
    }

    /// Asserts that the files of a store are whole versions, and that nothing is lost.
    fn check(&self, found: &BTreeMap<PathBuf, [u8; 32]>) {
        for (file, digest) in found {
            let versions = self.versions.get(file);
            let is_whole = versions.is_some_and(|versions| versions.contains(digest));
            assert!(is_whole, "{file:?} is no version that there was");
        }
        for (file, digest) in &self.settled {
            assert_eq!(found.get(file), Some(digest), "{file:?} was in step");
        }
    }
}

/// The files below a directory without those of the agent's own, and their digests.
fn files(root: &Path) -> BTreeMap<PathBuf, [u8; 32]> {
    let mut found = BTreeMap::new();
    let mut directories = vec![PathBuf::new()];
    while let Some(directory) = directories.pop() {
        // The root may not be there yet.
        for entry in fs::read_dir(root.join(&directory)).into_iter().flatten() {
            let entry = entry.expect("an entry");
            let path = directory.join(entry.file_name());
            match entry.file_type().expect("a type").is_dir() {
                true if entry.file_name() == ".fairbat" => {}
                true => directories.push(path),
                false => {
                    let content = fs::read(root.join(&path)).expect("read a file");
                    found.insert(path, Sha256::digest(content).into());
                }
            }
        }
    }
    found
}

/// An agent with one job, its store, and somebody else who reads the store.
struct World {
    place: TempDir,
    source: Source,
    /// Where the store has the files of the job.
    stored: PathBuf,
    reader: Agent,
}

impl World {
    /// `state` is a directory for the agent, `table` its store and `access` how others
    /// reach the store.
    fn new(state: &Path, table: &str, access: &StoreAccess, stored: PathBuf) -> Self {
        let (place, source) = (dir(), Source::new(rng()));
        let text = format!(
            "[agent]\nstate = {state:?}\nsocket = {socket:?}\nlisten = false\n\
             [stores.backup]\n{table}\n\
             [[jobs]]\nname = \"home\"\nsource = {source:?}\ndestination = \"backup:home\"\n\
             delete = \"mirror\"\nmax_delete = \"100%\"\n",
            socket = place.path().join("socket"),
            source = source.path(),
        );
        fs::write(place.path().join("agent.toml"), text).expect("write a configuration");
        let reader = Agent::new(access, &place.path().join("reader"));
        Self {
            place,
            source,
            stored,
            reader,
        }
    }

    fn start(&self) -> RunningAgent {
        let log = self.place.path().join("log");
        let log = fs::File::options().create(true).append(true).open(log);
        let child = Command::new(agent_binary())
            .args(["run", "--config"])
            .arg(self.place.path().join("agent.toml"))
            .env_remove("NOTIFY_SOCKET")
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.expect("open a log"))
            .spawn();
        RunningAgent(child.expect("start the agent"))
    }

    fn log(&self) -> String {
        fs::read_to_string(self.place.path().join("log")).unwrap_or_default()
    }

    /// Asks the agent; `None` while it does not listen or does not do it.
    fn ask(&self, method: &str, path: &str, body: &str) -> Option<Value> {
        let mut stream = UnixStream::connect(self.place.path().join("socket")).ok()?;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let is_done = head.starts_with("HTTP/1.1 200");
        serde_json::from_str(body).ok().filter(|_| is_done)
    }

    fn order_run(&self) -> bool {
        self.ask("POST", "/v1/run", "{\"job\":\"home\"}").is_some()
    }

    /// The job, as the agent tells of it.
    fn job(&self) -> Option<Value> {
        let status = self.ask("GET", "/v1/status", "")?;
        let mut tasks = status["tasks"].as_array()?.iter();
        tasks.find(|task| task["id"] == "home").cloned()
    }

    /// Lets the agent push until the store is in step, and checks that it is.
    async fn rest(&mut self, agent: &mut RunningAgent) {
        let succeeded = || {
            self.job()
                .and_then(|job| job["totals"]["succeeded"].as_u64())
        };
        let mut before = None;
        let is_in_step = || {
            let ended = agent.0.try_wait().expect("look at the agent");
            assert!(ended.is_none(), "{ended:?}: {}", self.log());
            before = before.or_else(|| succeeded().filter(|_| self.order_run()));
            before.is_some_and(|before| succeeded() > Some(before))
        };
        wait_until("a push to end well", SOON, is_in_step);
        self.source.settled = files(self.source.path());
        assert_eq!(files(&self.stored), self.source.settled);
        let pulled = dir();
        clean(self.reader.pull(pulled.path(), Delete::Never).await);
        expect_same(self.source.path(), pulled.path());
    }

    /// Checks what is in the store, and what a pull makes of it.
    async fn check(&self) {
        self.source.check(&files(&self.stored));
        let pulled = dir();
        // It may say that a push is under way.
        self.reader.pull(pulled.path(), Delete::Never).await;
        self.source.check(&files(pulled.path()));
    }

    /// Kills agents so often, each at some moment before the end of its push.
    #[allow(clippy::disallowed_methods, reason = "the moment of a kill is a time")]
    async fn kill(&mut self, kills: usize) {
        let mut longest = Duration::from_secs(2);
        for kill in 0..kills {
            self.source.change();
            if kill % CRASHES_UNTIL_REST == 0 {
                let begin = Instant::now();
                let mut agent = self.start();
                self.rest(&mut agent).await;
                longest = begin.elapsed();
                println!("{kill} kills; a push takes {longest:?}");
                drop(agent);
                self.source.change();
            }
            let life = longest.mul_f64(self.source.rng.random_range(0.0..1.0));
            let (begin, agent) = (Instant::now(), self.start());
            let mut is_ordered = false;
            while begin.elapsed() < life {
                is_ordered = is_ordered || self.order_run();
                std::thread::sleep(Duration::from_millis(1));
            }
            drop(agent);
            self.check().await;
        }
        let mut agent = self.start();
        self.rest(&mut agent).await;
        drop(agent);
        println!("{kills} kills: nothing lost, nothing half");
    }
}

/// An agent, until it is dropped: then it is killed.
struct RunningAgent(Child);

impl Drop for RunningAgent {
    fn drop(&mut self) {
        self.0.kill().expect("kill the agent");
        self.0.wait().expect("wait for the agent");
    }
}

async fn kill_beside_a_directory(kills: usize) {
    let (state, store) = (dir(), dir());
    let table = format!("type = \"local\"\npath = {:?}", store.path());
    let stored = store.path().join("home");
    let mut world = World::new(state.path(), &table, &local_store(store.path()), stored);
    world.kill(kills).await;
    let pending = world.reader.store.pending("home").await;
    assert_eq!(
        pending.expect("list the uploads"),
        [],
        "nothing unfinished is left"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_few_kills_while_a_directory_is_the_store() {
    kill_beside_a_directory(FEW).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn kills_while_a_directory_is_the_store() {
    kill_beside_a_directory(crashes()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn kills_while_s3_is_the_store() {
    let (state, keys) = (dir(), dir());
    let server = S3::start(S3Kind::S3sFs);
    let file = keys.path().join("keys");
    write_keys(&file, &server, server.secret_key());
    let table = format!(
        "type = \"s3\"\nendpoint = {:?}\nregion = {:?}\nbucket = {:?}\nprefix = \"hosts/alpha\"\n\
         credentials = {file:?}",
        server.endpoint(),
        server.region(),
        server.bucket(),
    );
    let objects = server.bucket_directory().expect("objects are files");
    let access = s3(&server, &server.endpoint());
    let stored = objects.join("hosts/alpha/home");
    let mut world = World::new(state.path(), &table, &access, stored);
    // This server says of an upload that it has completed that access is denied. Parts are
    // the business of `kills` and `many_kills`, with another server.
    fs::remove_file(world.source.path().join("large")).expect("remove a file");
    world.kill(crashes()).await;
}

/// Fills a disk until `free` bytes are left.
fn fill(disk: &TmpFs, free: u64) {
    let path = disk.path().join("filler");
    let mut filler = fs::File::create(&path).expect("make a file");
    let piece = vec![1; 64 * 1024];
    while filler.write_all(&piece).is_ok() {}
    let length = filler.metadata().expect("look at a file").len();
    filler
        .set_len(length.saturating_sub(free))
        .expect("cut a file");
}

/// Returns how many pushes failed; `None` where nothing can be mounted.
async fn fill_disks(crashes: usize) -> Option<usize> {
    let (state, store) = (TmpFs::mount(24 * MIB)?, TmpFs::mount(48 * MIB)?);
    let root = store.path().join("store");
    fs::create_dir(&root).expect("make a directory");
    let table = format!("type = \"local\"\npath = {root:?}");
    let stored = root.join("home");
    let mut world = World::new(state.path(), &table, &local_store(&root), stored);
    let mut agent = world.start();
    world.rest(&mut agent).await;
    let mut failed = 0;
    for crash in 0..crashes {
        // What is left is enough for nothing, for a part of a push, or for all of it.
        let (name, disk, most) = match crash % 2 {
            0 => ("the state's disk", &state, 16 * 1024),
            _ => ("the store's disk", &store, 64 * 1024),
        };
        world.source.change();
        let rng = &mut world.source.rng;
        let (free, is_before) = (rng.random_range(0..most), rng.random_bool(0.75));
        let moment = Duration::from_millis(rng.random_range(0..200));
        let ended = || world.job().map(|job| job["last"]["ended"].clone());
        let before = ended();
        if is_before {
            fill(disk, free);
        }
        let is_ordered = world.order_run();
        if !is_before {
            std::thread::sleep(moment);
            fill(disk, free);
        }
        if is_ordered {
            wait_until("the push to end", SOON, || {
                let now = ended();
                now.is_some() && now != before
            });
        }
        let last = world.job().expect("the agent answers")["last"].clone();
        failed += usize::from(last["ok"] != true);
        println!("{crash}: {free} bytes left on {name}: {}", last["problem"]);
        world.check().await;
        fs::remove_file(disk.path().join("filler")).expect("remove a file");
        // The same agent goes on.
        world.rest(&mut agent).await;
    }
    drop(agent);
    let log = world.log().lines().count();
    println!("{crashes} full disks, {failed} pushes failed, {log} lines of log");
    Some(failed)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_few_disks_that_are_full() {
    if let Some(failed) = fill_disks(FEW).await {
        assert!(failed > 0, "no disk was full");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn disks_that_are_full() {
    let crashes = crashes();
    if let Some(failed) = fill_disks(crashes).await {
        assert!(
            failed > crashes / 4,
            "most disks were not full: {failed} of {crashes}"
        );
    }
}
