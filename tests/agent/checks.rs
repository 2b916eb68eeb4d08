//! What happens to objects in a store is noticed, said, and mended: damage, losses, and
//! manifests that someone else has written.

mod hostile;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fairbat_agent::sync::MANIFEST_PAUSES;
use fairbat_tests::bin::agent_binary;
use fairbat_tests::stores::{S3, S3Kind};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, RngExt, SeedableRng};
use serde_json::Value;

use crate::service::{Place, Service, write_keys};
use crate::tree::expect_same;

const SEED: u64 = 19;

/// A job, its source, and the directory where its store has the objects.
struct Scene {
    place: Place,
    /// The directory of the bucket or of the local store.
    store: PathBuf,
    source: PathBuf,
    /// Kept for its process.
    _server: Option<S3>,
}

impl Scene {
    /// With a directory as the store.
    fn local(more: &str) -> Self {
        let place = Place::new();
        let store = place.join("store");
        fs::create_dir(&store).expect("make a directory");
        let stores = format!("[stores.disk]\ntype = \"local\"\npath = {store:?}\n");
        Self::of(place, store, None, &stores, more)
    }

    /// With an S3 server whose objects are files.
    fn s3(more: &str) -> Self {
        let (place, server) = (Place::new(), S3::start(S3Kind::S3sFs));
        let store = server.bucket_directory().expect("objects are files");
        let keys = place.join("keys");
        write_keys(&keys, &server, server.secret_key());
        let stores = format!(
            "[stores.disk]\ntype = \"s3\"\nendpoint = {:?}\nregion = {:?}\nbucket = {:?}\n\
             credentials = {keys:?}\n",
            server.endpoint(),
            server.region(),
            server.bucket(),
        );
        Self::of(place, store, Some(server), &stores, more)
    }

    fn of(place: Place, store: PathBuf, server: Option<S3>, stores: &str, more: &str) -> Self {
        let source = place.join("source");
        fs::create_dir(&source).expect("make a directory");
        let jobs = format!(
            "[[jobs]]\nname = \"home\"\nsource = {source:?}\ndestination = \"disk:home\"\n{more}\n\
             [[jobs]]\nname = \"other\"\nsource = {:?}\ndestination = \"disk:other\"\n\
             [[jobs]]\nname = \"back\"\ndirection = \"pull\"\nsource = \"disk:home\"\n\
             destination = {:?}\n",
            place.join("other"),
            place.join("pulled"),
        );
        place.configure("", &format!("{stores}{jobs}"));
        let other = place.join("other");
        fs::create_dir(&other).expect("make a directory");
        fs::write(other.join("f"), "of another job").expect("write a file");
        Self {
            place,
            store,
            source,
            _server: server,
        }
    }

    /// Fills the source with small files, some in directories.
    fn fill(&self, files: usize) {
        println!("seed {SEED}");
        let mut rng = StdRng::seed_from_u64(SEED);
        for i in 0..files {
            let directory = self.source.join(format!("d{}", i % 17));
            fs::create_dir_all(&directory).expect("make a directory");
            let mut content = vec![0; rng.random_range(1..3_000)];
            rng.fill_bytes(&mut content);
            fs::write(directory.join(format!("f{i}")), content).expect("write a file");
        }
    }

    /// A file of the store, by its key.
    fn object(&self, key: &str) -> PathBuf {
        self.store.join(key)
    }

    fn pointer(&self) -> PathBuf {
        self.object("home/.fairbat/manifest/current.json")
    }

    /// What `fairbat-agent COMMAND --config ... ARGS` says, with `input`. It ends so.
    fn agent(&self, code: i32, command: &str, args: &[&str], input: &str) -> String {
        let mut child = Command::new(agent_binary())
            .arg(command)
            .arg("--config")
            .arg(self.place.join("agent.toml"))
            .args(args)
            .env("NO_COLOR", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start the agent");
        let mut stdin = child.stdin.take().expect("a pipe");
        // A command that reads nothing may have ended.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        let ended = child.wait_with_output().expect("wait for the agent");
        let said = String::from_utf8_lossy(&[ended.stdout, ended.stderr].concat()).into_owned();
        assert_eq!(
            ended.status.code(),
            Some(code),
            "{command} {args:?}: {said}"
        );
        said
    }

    /// What `check --store` says of the job.
    fn check(&self, code: i32) -> String {
        self.agent(code, "check", &["--store", "home"], "")
    }
}

/// The last check of a job.
fn check_of(service: &Service<'_>, job: &str) -> Value {
    service.task(job).expect("it is there")["check"].clone()
}

/// Flips a bit, truncates or deletes one in a hundred of these files. Returns their
/// names below `root`.
fn spoil(root: &Path, paths: &mut [PathBuf]) -> BTreeSet<String> {
    let mut rng = StdRng::seed_from_u64(SEED);
    paths.sort();
    paths.shuffle(&mut rng);
    let few = paths.len() / 100;
    for (i, path) in paths[..few].iter().enumerate() {
        let mut content = fs::read(path).expect("read an object");
        match i % 3 {
            0 => {
                let at = rng.random_range(0..content.len());
                content[at] ^= 1 << rng.random_range(0..8);
                fs::write(path, content).expect("write an object");
            }
            1 => {
                content.truncate(rng.random_range(0..content.len()));
                fs::write(path, content).expect("write an object");
            }
            _ => fs::remove_file(path).expect("delete an object"),
        }
    }
    paths[..few]
        .iter()
        .map(|path| {
            let name = path.strip_prefix(root).expect("below");
            name.display().to_string()
        })
        .collect()
}

/// All files below a directory, but for the agent's own.
pub(crate) fn files_below(root: &Path) -> Vec<PathBuf> {
    let (mut files, mut directories) = (Vec::new(), vec![root.to_owned()]);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).expect("read a directory") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true if path.ends_with(".fairbat") => {}
                true => directories.push(path),
                false => files.push(path),
            }
        }
    }
    files
}

/// `check --store` finds all damage, the next run mends what the source has, and says
/// what it cannot.
fn damage_is_found_and_mended(scene: &Scene, files: usize) {
    scene.fill(files);
    let service = scene.place.start();
    service.order(&["start", "home", "--wait"]);
    scene.check(0);
    let root = scene.object("home");
    let damaged = spoil(&root, &mut files_below(&root));
    assert!(damaged.len() >= files / 100);

    scene.check(3);
    let log = scene.place.log();
    for name in &damaged {
        assert!(log.contains(name), "{name} is not in the log: {log}");
    }
    let check = check_of(&service, "home");
    assert_eq!(check["damaged"], damaged.len(), "{check:#}");
    assert_eq!(check["last"]["files"]["failed"], damaged.len(), "{check:#}");

    let found = format!(
        "home: {} files are missing or damaged in the store",
        damaged.len()
    );
    let told = service.order(&["status", "home"]);
    assert!(told.contains(&found), "{told}");

    // Of one of them, the source has nothing any more.
    let gone = damaged.first().expect("some");
    fs::remove_file(scene.source.join(gone)).expect("remove a file");
    let unmended = format!("{gone}: the store has no intact copy, and the source has none");
    let advice = "put the file back where it was, or let the job delete it";
    for _ in 0..2 {
        service
            .fairbat(&["start", "home", "--wait"])
            .expect_code(3)
            .expect_said(&[&unmended, advice]);
    }
    let check = check_of(&service, "home");
    assert_eq!(check["damaged"], 1, "{check:#}");
    assert_eq!(check["damaged_files"][0], gone.as_str(), "{check:#}");
    let log = scene.place.log();
    let said = log
        .lines()
        .rfind(|line| line.contains("the source has none"));
    assert!(
        said.is_some_and(|line| line.contains(gone.as_str())),
        "{log}"
    );
    let again = scene.check(3);
    assert!(again.contains(gone.as_str()), "{again}");

    // The agent is not needed for that.
    service.kill();
    let again = scene.agent(3, "check", &["--store"], "");
    assert!(again.contains(gone.as_str()), "{again}");
    // What comes back is sent, and all is well.
    fs::write(scene.source.join(gone), "found again").expect("write a file");
    let service = scene.place.start();
    service.order(&["start", "home", "--wait"]);
    assert_eq!(check_of(&service, "home")["damaged"], 0);
    scene.check(0);
    let back = scene.place.join("restored");
    let to = back.display().to_string();
    service.order(&["restore", "home", "--wait", "--to", &to]);
    expect_same(&scene.source, &back);
}

#[test]
fn damage_in_a_directory_is_found_and_mended() {
    damage_is_found_and_mended(&Scene::local(""), 600);
}

#[test]
fn damage_in_a_bucket_is_found_and_mended() {
    damage_is_found_and_mended(&Scene::s3(""), 400);
}

#[test]
fn what_a_mirror_deletes_need_not_be_mended() {
    let scene = Scene::local("delete = \"mirror\"\nmax_delete = 5");
    scene.fill(20);
    let service = scene.place.start();
    service.order(&["start", "home", "--wait"]);
    fs::remove_file(scene.object("home/d3/f3")).expect("delete an object");
    scene.check(3);
    fs::remove_file(scene.source.join("d3/f3")).expect("remove a file");
    service.order(&["start", "home", "--wait"]);
    assert_eq!(check_of(&service, "home")["damaged"], 0);
    scene.check(0);
}

#[test]
fn a_restore_of_what_is_damaged_says_at_once_how_to_mend_it() {
    let scene = Scene::local("");
    scene.fill(20);
    let service = scene.place.start();
    service.order(&["start", "home", "--wait"]);
    let content = fs::read(scene.object("home/d3/f3")).expect("read an object");
    let flipped: Vec<_> = content.iter().map(|byte| !byte).collect();
    fs::write(scene.object("home/d3/f3"), flipped).expect("write an object");
    fs::remove_file(scene.object("home/d4/f4")).expect("delete an object");
    let to = scene.place.join("restored").display().to_string();
    let restore = ["restore", "home", "--wait", "--to", &to];
    let advice = "`fairbat-agent check --store JOB` and then `fairbat start JOB`";
    for command in [&restore[..], &["start", "back", "--wait"]] {
        let outcome = service.fairbat(command);
        outcome.expect_code(3);
        for said in ["d3/f3", "d4/f4", advice] {
            assert!(outcome.stderr.contains(said), "{said}: {outcome}");
        }
        assert!(outcome.elapsed < MANIFEST_PAUSES[0], "{outcome}");
    }
    // What it says helps.
    scene.check(3);
    service.order(&["start", "home", "--wait"]);
    service.order(&["start", "back", "--wait"]);
    expect_same(&scene.source, &scene.place.join("pulled"));
}

#[test]
fn a_check_comes_by_itself_and_finds_what_is_missing_or_has_another_size() {
    let scene = Scene::local("check = \"*-*-* *:*:0/2\"\ncheck_bytes_per_day = 1");
    scene.fill(50);
    let service = scene.place.start();
    service.order(&["start", "home", "--wait"]);
    fs::remove_file(scene.object("home/d3/f3")).expect("delete an object");
    fs::write(scene.object("home/d4/f4"), "").expect("write an object");
    let task = service.wait_for_task("two are damaged", "home", |task| {
        task["check"]["damaged"] == 2
    });
    assert_eq!(task["check"]["last"]["ok"], false, "{task:#}");
    service.order(&["start", "home", "--wait"]);
    service.wait_for_task("a check without finds", "home", |task| {
        task["check"]["last"]["ok"] == true && task["check"]["damaged"] == 0
    });
    assert_eq!(
        fs::read(scene.object("home/d4/f4")).expect("read an object"),
        fs::read(scene.source.join("d4/f4")).expect("read a file"),
    );
}

#[test]
fn a_check_reads_no_more_content_than_its_days_allow() {
    let scene = Scene::local("check = \"*-*-* *:*:*\"\ncheck_bytes_per_day = \"20K\"");
    scene.fill(200);
    let service = scene.place.start();
    service.order(&["start", "home", "--wait"]);
    // The first check reads what a week has saved up: about half of it.
    let task = service.wait_for_task("a check", "home", |task| {
        task["check"]["completed"].is_string()
    });
    let bytes = task["check"]["bytes"].as_u64().expect("a number");
    assert!((100_000..=7 * 20 * 1024).contains(&bytes), "{task:#}");
}

#[test]
fn a_manifest_that_is_damaged_or_gone_is_written_anew() {
    let scene = Scene::local("");
    scene.fill(20);
    let service = scene.place.start();
    service.order(&["start", "home", "--wait"]);
    let manifest = || {
        let files = files_below(&scene.object("home/.fairbat/manifest"));
        let is_base = |path: &&PathBuf| path.display().to_string().ends_with("-base.jsonl.gz");
        files.iter().find(is_base).expect("a base").clone()
    };
    let spoils: [&dyn Fn(); 4] = [
        &|| fs::remove_file(manifest()).expect("delete a manifest"),
        &|| fs::write(manifest(), "nothing").expect("write a manifest"),
        &|| fs::remove_file(scene.pointer()).expect("delete the pointer"),
        &|| fs::write(scene.pointer(), "{}").expect("write the pointer"),
    ];
    for spoil in spoils {
        spoil();
        let found = scene.check(3);
        assert!(found.contains("home: .fairbat/manifest: "), "{found}");
        assert!(found.contains("20 files are intact, 0 are not"), "{found}");
        assert!(!found.contains("error:"), "said once: {found}");
        service.order(&["start", "home", "--wait"]);
        let task = service.task("home").expect("it is there");
        assert_eq!(task["last"]["files"]["moved"], 0, "{task:#}");
        scene.check(0);
        service.order(&["start", "back", "--wait"]);
    }
    expect_same(&scene.source, &scene.place.join("pulled"));
}
