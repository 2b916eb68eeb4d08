//! Kills and full disks at random moments of uploads. Whatever happens, a name
//! shows a whole file, an upload that was answered is there, and `fairbat put`
//! ends well as soon as it can: by itself when the server is back, and when it is
//! run again after the disk was full.
//!
//! A few of them run with the other tests. Many take minutes:
//!
//! ```text
//! FAIRBAT_KILLS=250 FAIRBAT_FULL_DISKS=100 FAIRBAT_SEED=19 \
//!     cargo test -p fairbat-tests --test e2e -- --ignored --nocapture serve::crashes
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use fairbat_tests::bin::{Fairbat, Running};
use fairbat_tests::tmpfs::TmpFs;
use fairbat_tests::workdir::Workdir;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::{Content, SOON, Serving, own_address, wait_until};

/// Names that are written over and over.
const NAMES: [&str; 3] = ["one", "two", "below/three"];

/// Sizes of the files, bytes.
const SIZES: std::ops::Range<u64> = 1_000_000..2_500_000;

/// Size of an upload that is begun and held, bytes: more than the space that a server
/// reserves at first.
const HELD: usize = 2_000_000;

/// Room for all the files, an upload, and little more, bytes.
const DISK: u64 = 12 << 20;

/// How long a server has an unfinished file at least, about.
const AMID: Duration = Duration::from_millis(5);

/// Uploads whose times count for the next moment.
const RECENT: usize = 9;

/// A long run has one event in the midst of an upload among this many, or more.
const RAREST: u64 = 5;

/// How long a long run may take.
const LONG: Duration = Duration::from_secs(3600);

/// Files that are replaced at random, and what each of them has to hold.
struct Shelf {
    random: StdRng,
    /// What `fairbat put` sends is here.
    work: Workdir,
    served: PathBuf,
    stored: BTreeMap<&'static str, Content>,
    made: u64,
    /// How long the last uploads took that nothing disturbed.
    recent: VecDeque<Duration>,
}

impl Shelf {
    /// A shelf in a directory that is served at `url`.
    fn new(seed: u64, served: &Path, url: &str) -> Self {
        println!("seed {seed}");
        let mut shelf = Self {
            random: StdRng::seed_from_u64(seed),
            work: Workdir::new(),
            served: served.to_owned(),
            stored: BTreeMap::new(),
            made: 0,
            recent: VecDeque::new(),
        };
        for name in NAMES {
            let content = shelf.make();
            shelf.upload(name, url);
            shelf.stored.insert(name, content);
        }
        shelf.check();
        shelf
    }

    /// Makes the next version of some file.
    fn make(&mut self) -> Content {
        self.made += 1;
        let size = self.random.random_range(SIZES);
        let content = Content::new(1900 + self.made, size);
        content.write_to(&self.work.join("file")).expect("written");
        content
    }

    /// Begins to upload it, and tries for as long as it takes.
    fn put(&self, name: &str, url: &str) -> Running {
        let patient = ["--retry", "inf", "--retry-max-wait", "100ms"];
        Fairbat::put(self.work.path())
            .args(patient)
            .args(["file", &format!("{url}{name}")])
            .spawn()
    }

    /// Uploads it while nothing disturbs.
    #[track_caller]
    #[allow(clippy::disallowed_methods, reason = "how long an upload takes")]
    fn upload(&mut self, name: &str, url: &str) {
        let began = Instant::now();
        self.put(name, url).wait().expect_code(0);
        self.recent.truncate(RECENT - 1);
        self.recent.push_front(began.elapsed());
    }

    /// Waits for a random moment of an upload: every other time for one at which the
    /// server has an unfinished file, else for any part of the usual time.
    fn wait(&mut self, put: &Running) {
        if self.random.random_bool(0.5) {
            wait_until("the body to come", SOON, || {
                self.unfinished() > 0 || is_answered(put)
            });
            return sleep(AMID.mul_f64(self.random.random_range(0.0..1.0)));
        }
        let mut recent: Vec<_> = self.recent.iter().collect();
        recent.sort();
        let usual = *recent[recent.len() / 2];
        sleep(usual.mul_f64(self.random.random_range(0.0..1.2)));
    }

    /// Begins an upload, and waits until the server has an unfinished file of it.
    fn begin(&self, server: &Serving) -> TcpStream {
        let mut stream = server.connect();
        let head = format!(
            "PUT /{} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {HELD}\r\n\r\nbegin",
            NAMES[0]
        );
        stream.write_all(head.as_bytes()).expect("sent");
        wait_until("an unfinished file", SOON, || self.unfinished() == 1);
        stream
    }

    /// Checks every file. `name` may hold the new content already, and must if its
    /// upload has been answered.
    #[track_caller]
    fn check_while(&self, name: &str, content: &Content, is_answered: bool) {
        for (stored, old) in &self.stored {
            let found = fs::read(self.served.join(stored)).expect("it is there");
            let is_old = found == old.all();
            let is_right = match *stored == name {
                true => found == content.all() || is_old && !is_answered,
                false => is_old,
            };
            assert!(is_right, "{stored} is lost: {} bytes", found.len());
        }
    }

    /// Checks that every file is as it was stored.
    #[track_caller]
    fn check(&self) {
        for (name, content) in &self.stored {
            self.check_while(name, content, true);
        }
    }

    fn unfinished(&self) -> usize {
        fs::read_dir(self.served.join(".fairbat-upload")).map_or(0, Iterator::count)
    }

    #[track_caller]
    fn wait_until_clean(&self) {
        wait_until("what was unfinished to be gone", SOON, || {
            self.unfinished() == 0
        });
    }
}

/// Whether a `put` has said that its file is there.
fn is_answered(put: &Running) -> bool {
    put.events().iter().any(|event| event["event"] == "done")
}

/// A number from the environment.
fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect(name))
}

/// Serves a directory at this address.
fn serve(served: &Path, listen: &str) -> Serving {
    Serving::of(served, |run| {
        run.args(["--writable", "--listen", listen]).timeout(LONG)
    })
}

/// Kills the server, or at times the client, while files are uploaded. The first kill is
/// amid an upload for sure. Returns the number of those that were by chance.
fn kill(kills: u64, seed: u64) -> u64 {
    let served = Workdir::new();
    let mut server = serve(served.path(), &own_address());
    let (url, listen) = (server.url.clone(), server.address.to_string());
    let mut shelf = Shelf::new(seed, served.path(), &url);
    let held = shelf.begin(&server);
    server.kill();
    assert_eq!(shelf.unfinished(), 1, "not amid an upload");
    shelf.check();
    server = serve(served.path(), &listen);
    shelf.check();
    shelf.wait_until_clean();
    drop(held);
    let (mut amid, mut clients) = (0, 0);
    for _ in 0..kills {
        let name = NAMES[shelf.random.random_range(0..NAMES.len())];
        let content = shelf.make();
        let mut put = shelf.put(name, &url);
        let is_server = shelf.random.random_bool(0.8);
        shelf.wait(&put);
        if is_server {
            server.kill();
            amid += u64::from(shelf.unfinished() > 0);
            shelf.check_while(name, &content, is_answered(&put));
            server = serve(served.path(), &listen);
            put.wait().expect_code(0);
        } else {
            put.signal("KILL");
            wait_until("it to end", SOON, || !put.is_running());
            clients += 1;
            shelf.check_while(name, &content, is_answered(&put));
            shelf.upload(name, &url);
        }
        shelf.stored.insert(name, content);
        shelf.check();
        shelf.wait_until_clean();
    }
    println!(
        "{kills} kills, {clients} of them of the client, {amid} of a server with an unfinished \
         file; nothing was lost, and nothing was half"
    );
    amid
}

/// Fills the disk while files are uploaded, and makes room again. The server goes on. The
/// first time is amid an upload for sure. Returns how many uploads were refused by
/// chance; `None` without the rights to mount a disk.
fn fill(times: u64, seed: u64) -> Option<u64> {
    let disk = TmpFs::mount(DISK)?;
    let mut server = serve(disk.path(), &own_address());
    let url = server.url.clone();
    let mut shelf = Shelf::new(seed, disk.path(), &url);
    let ballast = disk.path().join("ballast");
    let full = || {
        let mut file = File::create(&ballast).expect("created");
        while file.write_all(&[0; 4096]).is_ok() {}
        file
    };
    let room = |file| {
        fs::remove_file(&ballast).expect("removed");
        drop::<File>(file);
    };
    let mut held = shelf.begin(&server);
    let file = full();
    held.write_all(&[b'x'; HELD - 5]).expect("sent");
    let mut status = [0; 13];
    held.read_exact(&mut status).expect("an answer");
    assert_eq!(&status, b"HTTP/1.1 507 ");
    shelf.check();
    room(file);
    shelf.wait_until_clean();
    let mut refused = 0_u64;
    for _ in 0..times {
        let name = NAMES[shelf.random.random_range(0..NAMES.len())];
        let content = shelf.make();
        let put = shelf.put(name, &url);
        shelf.wait(&put);
        let file = full();
        let outcome = put.wait();
        let is_stored = outcome.code == Some(0);
        if !is_stored {
            outcome.expect_code(5).expect_said(&["507"]);
            refused += 1;
        }
        shelf.check_while(name, &content, is_stored);
        room(file);
        if !is_stored {
            shelf.upload(name, &url);
        }
        shelf.stored.insert(name, content);
        shelf.check();
        shelf.wait_until_clean();
    }
    assert!(server.running.is_running(), "the server has ended");
    println!(
        "{times} full disks, {refused} of them refused an upload; nothing was lost, nothing was \
         half, and nothing was restarted"
    );
    Some(refused)
}

#[test]
fn a_few_kills_lose_nothing() {
    kill(8, 1901);
}

#[test]
fn a_few_full_disks_lose_nothing_and_need_no_restart() {
    fill(5, 1902);
}

#[test]
#[ignore = "takes minutes"]
fn many_kills_lose_nothing() {
    let kills = number("FAIRBAT_KILLS", 250);
    let amid = kill(kills, number("FAIRBAT_SEED", 19));
    assert!(amid >= kills / RAREST, "{amid} of {kills} amid an upload");
}

#[test]
#[ignore = "takes minutes"]
fn many_full_disks_lose_nothing_and_need_no_restart() {
    let times = number("FAIRBAT_FULL_DISKS", 100);
    if let Some(refused) = fill(times, number("FAIRBAT_SEED", 19)) {
        assert!(refused >= times / RAREST, "{refused} of {times} refused");
    }
}
