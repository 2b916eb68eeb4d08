//! Either process of `fairbat run` may be killed at any time: the command goes on, connects
//! anew, and its connections are free.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fairbat_tests::bin::Running;
use fairbat_tests::content::Content;
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::poll::{wait_for, wait_until};
use fairbat_tests::workdir::Workdir;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::run;
use super::watched::{connections, is_held, number};

/// Runs whose second process is killed.
const WORKER_KILLS: u32 = 20;

/// When a run is killed, in ms after its start.
const MOMENTS: std::ops::Range<u64> = 20..2500;

/// Within this time a command has begun beside many others. How soon is not what is tested.
const BEGUN_AFTER: Duration = Duration::from_secs(60);

/// Within this time all must be free.
const FREE_AFTER: Duration = Duration::from_secs(10);

/// Loads one file for a long time, and a short one ten times a second; writes how often that
/// has succeeded, and what has failed. It ends when `stop` is there.
const CLIENT: &str = "\
import os, sys, threading, time, urllib.request as u
long, short = sys.argv[1:]
open('pid', 'w').write(str(os.getpid()) + '\\n')
def load():
    with u.urlopen(long) as body:
        while body.read(8192) and not os.path.exists('stop'): pass
threading.Thread(target=load, daemon=True).start()
n = 0
while not os.path.exists('stop'):
    try:
        u.urlopen(short, timeout=20).read(); n += 1
        open('new', 'w').write(str(n) + '\\n'); os.rename('new', 'count')
    except Exception as e:
        open('failed', 'a').write(repr(e) + '\\n')
    time.sleep(0.1)
";

/// One command under `fairbat run`.
struct Scene {
    work: Workdir,
    running: Running,
}

impl Scene {
    fn start(nginx: &Nginx) -> Self {
        let work = Workdir::new();
        let (long, short) = (nginx.url("file"), nginx.url("short"));
        let command = ["python3", "-c", CLIENT, &long, &short];
        let running = run(&work, &["--include-local"], &command).spawn();
        Self { work, running }
    }

    fn count(&self) -> u64 {
        read(&self.work.join("count")).unwrap_or(0)
    }

    /// The process of the command; `None` if it was never started.
    fn command(&self) -> Option<i32> {
        read(&self.work.join("pid"))
    }

    /// Waits until it has connected three times since it had so often, and nothing is held.
    fn assert_goes_on_and_is_free(&self, before: u64) {
        let begin = Instant::now();
        wait_until("new connections", FREE_AFTER, || self.count() > before + 3);
        let command = self.command().expect("it has counted");
        wait_until("its connections to be free", FREE_AFTER, || {
            let found = connections(command);
            !found.is_empty() && !found.iter().any(is_held)
        });
        assert!(begin.elapsed() < FREE_AFTER);
        let failed = fs::read_to_string(self.work.join("failed"));
        assert!(failed.is_err(), "{failed:?}");
    }

    /// The second process of the run.
    fn worker(&self) -> i32 {
        let front = number(&self.running);
        wait_for("the second process", FREE_AFTER, || child_of(front))
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = fs::write(self.work.join("stop"), "");
        if let Some(command) = self.command() {
            wait_until("the command to end", FREE_AFTER, || !is_there(command));
        }
    }
}

/// A server with a file that takes long and one that does not.
fn server() -> Nginx {
    let file = Content::new(9, 40_000_000);
    let nginx = Nginx::with_file(&file, |config: &mut Config| {
        config.limit_rate = Some(400_000);
    });
    nginx.put("short", &Content::new(10, 1000));
    nginx
}

/// Kills so many runs at random moments, two of three of them not before their command has
/// begun, however slow the machine is.
fn kill_at_random(kills: u32, seed: u64) {
    let nginx = server();
    eprintln!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let begin = Instant::now();
    let mut scenes: Vec<_> = (0..kills)
        .map(|_| {
            let moment = Instant::now() + Duration::from_millis(random.random_range(MOMENTS));
            (moment, Scene::start(&nginx))
        })
        .collect();
    eprintln!("started after {:?}", begin.elapsed());
    scenes.sort_by_key(|(moment, _)| *moment);
    for (index, (moment, scene)) in scenes.iter_mut().enumerate() {
        std::thread::sleep(moment.saturating_duration_since(Instant::now()));
        if index % 3 != 0 {
            wait_until("the command to begin", BEGUN_AFTER, || {
                scene.command().is_some()
            });
        }
        scene.running.signal("KILL");
    }
    for (_, scene) in &scenes {
        // A run that was killed before it had started the command has none.
        if scene.command().is_some() {
            scene.assert_goes_on_and_is_free(scene.count());
        }
    }
}

#[test]
fn killed_10_times_at_random_the_command_connects_anew_and_is_free() {
    kill_at_random(10, 23);
}

#[test]
#[ignore = "takes a minute"]
fn killed_50_times_at_random_the_command_connects_anew_and_is_free() {
    kill_at_random(50, 22);
}

#[test]
fn without_its_second_process_the_first_one_answers_and_frees() {
    let nginx = server();
    let mut scene = Scene::start(&nginx);
    wait_until("connections", BEGUN_AFTER, || scene.count() > 3);
    kill(scene.worker());
    scene.assert_goes_on_and_is_free(scene.count());
    assert!(scene.running.is_running(), "it ends with the command");
    fs::write(scene.work.join("stop"), "").expect("write a file");
    wait_until("fairbat to end", FREE_AFTER, || !scene.running.is_running());
}

#[test]
fn whenever_its_second_process_is_killed_the_first_one_stands_in() {
    let nginx = server();
    let seed = 23;
    eprintln!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let mut scenes: Vec<_> = (0..WORKER_KILLS)
        .map(|_| {
            let moment = Instant::now() + Duration::from_millis(random.random_range(MOMENTS));
            (moment, Scene::start(&nginx))
        })
        .collect();
    scenes.sort_by_key(|(moment, _)| *moment);
    for (moment, scene) in &scenes {
        std::thread::sleep(moment.saturating_duration_since(Instant::now()));
        kill(scene.worker());
    }
    for (_, scene) in &mut scenes {
        // A command that was never started is told by the exit status. Another one may take its
        // time to begin.
        wait_until(
            "the command to begin, or fairbat to end",
            BEGUN_AFTER,
            || scene.command().is_some() || !scene.running.is_running(),
        );
        if scene.command().is_some() {
            scene.assert_goes_on_and_is_free(scene.count());
        }
    }
}

#[test]
fn a_stopped_run_lets_the_command_connect() {
    let nginx = server();
    let mut scene = Scene::start(&nginx);
    wait_until("connections", BEGUN_AFTER, || scene.count() > 3);
    scene.running.signal("STOP");
    let before = scene.count();
    wait_until("new connections", FREE_AFTER, || scene.count() > before + 3);
    scene.running.signal("CONT");
}

fn read<T: std::str::FromStr>(path: &Path) -> Option<T> {
    let text = fs::read_to_string(path).ok()?;
    text.strip_suffix('\n')?.parse().ok()
}

fn is_there(process: i32) -> bool {
    let stat = fs::read_to_string(PathBuf::from(format!("/proc/{process}/stat")));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

fn child_of(parent: i32) -> Option<i32> {
    let all = dalbe::process::descendants([parent]).expect("read /proc");
    all.into_iter().find(|child| {
        let status = fs::read_to_string(format!("/proc/{child}/status")).unwrap_or_default();
        status.contains(&format!("PPid:\t{parent}\n"))
    })
}

fn kill(process: i32) {
    let process = rustix::process::Pid::from_raw(process).expect("a process");
    rustix::process::kill_process(process, rustix::process::Signal::KILL).expect("kill it");
}
