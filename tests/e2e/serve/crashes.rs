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

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use fairbat_tests::bin::{Fairbat, Running};
use fairbat_tests::tmpfs::TmpFs;
use fairbat_tests::workdir::Workdir;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::{Content, SOON, Serving, wait_until};

/// Names that are written over and over.
const NAMES: [&str; 3] = ["one", "two", "below/three"];

/// Sizes of the files, bytes.
const SIZES: std::ops::Range<u64> = 1_000_000..2_500_000;

/// Room for all the files, an upload, and little more, bytes.
const DISK: u64 = 12 << 20;

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
    /// How long an upload takes that nothing disturbs.
    usual: Duration,
}

impl Shelf {
    /// A shelf in a directory that is served at `url`.
    #[allow(clippy::disallowed_methods, reason = "how long an upload takes")]
    fn new(seed: u64, served: &Path, url: &str) -> Self {
        println!("seed {seed}");
        let mut shelf = Self {
            random: StdRng::seed_from_u64(seed),
            work: Workdir::new(),
            served: served.to_owned(),
            stored: BTreeMap::new(),
            made: 0,
            usual: Duration::ZERO,
        };
        for name in NAMES {
            let content = shelf.make();
            let began = Instant::now();
            let put = shelf.put(name, url);
            put.wait().expect_code(0);
            shelf.usual = began.elapsed();
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

    /// Waits for a random part of the time that an upload takes.
    fn wait(&mut self) {
        sleep(self.usual.mul_f64(self.random.random_range(0.0..1.2)));
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

/// Kills the server, or at times the client, while files are uploaded.
fn kill(kills: u64, seed: u64) {
    let served = Workdir::new();
    let mut server = serve(served.path(), "127.0.0.1:0");
    let (url, listen) = (server.url.clone(), server.address.to_string());
    let mut shelf = Shelf::new(seed, served.path(), &url);
    let (mut amid, mut clients) = (0, 0);
    for _ in 0..kills {
        let name = NAMES[shelf.random.random_range(0..NAMES.len())];
        let content = shelf.make();
        let mut put = shelf.put(name, &url);
        let is_server = shelf.random.random_bool(0.8);
        shelf.wait();
        if is_server {
            server.running.signal("KILL");
            wait_until("it to end", SOON, || !server.running.is_running());
            amid += u64::from(shelf.unfinished() > 0);
            shelf.check_while(name, &content, is_answered(&put));
            server = serve(served.path(), &listen);
        } else {
            put.signal("KILL");
            wait_until("it to end", SOON, || !put.is_running());
            clients += 1;
            shelf.check_while(name, &content, is_answered(&put));
            put = shelf.put(name, &url);
        }
        put.wait().expect_code(0);
        shelf.stored.insert(name, content);
        shelf.check();
        shelf.wait_until_clean();
    }
    println!(
        "{kills} kills, {clients} of them of the client, {amid} of a server with an unfinished \
         file; nothing was lost, and nothing was half"
    );
}

/// Fills the disk while files are uploaded, and makes room again. The server goes on.
fn fill(times: u64, seed: u64) {
    let Some(disk) = TmpFs::mount(DISK) else {
        return;
    };
    let mut server = serve(disk.path(), "127.0.0.1:0");
    let url = server.url.clone();
    let mut shelf = Shelf::new(seed, disk.path(), &url);
    let ballast = disk.path().join("ballast");
    let mut refused = 0_u64;
    for _ in 0..times {
        let name = NAMES[shelf.random.random_range(0..NAMES.len())];
        let content = shelf.make();
        let put = shelf.put(name, &url);
        shelf.wait();
        let mut file = File::create(&ballast).expect("created");
        while file.write_all(&[0; 4096]).is_ok() {}
        let outcome = put.wait();
        let is_stored = outcome.code == Some(0);
        if !is_stored {
            outcome.expect_code(5).expect_said(&["507"]);
            refused += 1;
        }
        shelf.check_while(name, &content, is_stored);
        fs::remove_file(&ballast).expect("removed");
        drop(file);
        if !is_stored {
            shelf.put(name, &url).wait().expect_code(0);
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
    kill(number("FAIRBAT_KILLS", 250), number("FAIRBAT_SEED", 19));
}

#[test]
#[ignore = "takes minutes"]
fn many_full_disks_lose_nothing_and_need_no_restart() {
    fill(
        number("FAIRBAT_FULL_DISKS", 100),
        number("FAIRBAT_SEED", 19),
    );
}
