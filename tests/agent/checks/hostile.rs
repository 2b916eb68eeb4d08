//! Manifests that an attacker or a defect has written: one job fails with an error, and
//! where the key of the job is, nothing is taken from them.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{Scene, files_below};
use crate::tree::expect_same;

/// Pointers of a few bytes whose numbers ask for all memory there is.
const HOSTILE: [&str; 4] = [
    r#"{"fairbat":1,"writer":1,"base":0,"last":18446744073709551615}"#,
    r#"{"fairbat":1,"writer":1,"base":1,"last":99999999999}"#,
    r#"{"fairbat":1,"writer":1,"base":18446744073709551615,"last":18446744073709551615}"#,
    r#"{"fairbat":1,"writer":1,"base":1,"last":4000000000}"#,
];

#[test]
fn a_pointer_with_hostile_numbers_ends_one_job_and_no_other() {
    let scene = Scene::local("");
    scene.fill(3);
    let service = scene.place.start();
    fs::create_dir_all(scene.pointer().parent().expect("a parent")).expect("make a directory");
    for pointer in HOSTILE {
        fs::write(scene.pointer(), pointer).expect("write the pointer");
        for job in ["home", "back"] {
            let failed = service.fairbat(&["start", job, "--wait"]);
            assert_ne!(failed.code, Some(0), "{failed:?}");
            let task = service.task(job).expect("it is there");
            let problem = task["last"]["problem"].as_str().expect("a problem");
            assert!(problem.contains("current.json"), "{problem}");
        }
        service.order(&["start", "other", "--wait"]);
    }
    // A job that knows what it has sent writes the pointer anew.
    fs::remove_file(scene.pointer()).expect("delete the pointer");
    service.order(&["start", "home", "--wait"]);
    fs::write(scene.pointer(), HOSTILE[0]).expect("write the pointer");
    service.order(&["start", "home", "--wait"]);
    service.order(&["start", "back", "--wait"]);
    expect_same(&scene.source, &scene.place.join("pulled"));
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).expect("compress");
    encoder.finish().expect("compress")
}

/// Writes a sound base and so many empty deltas, and a pointer to them.
fn write_manifests(directory: &Path, deltas: u64, size: u64) {
    let own = directory.join(format!("{:016x}", 7));
    fs::create_dir_all(&own).expect("make a directory");
    let digest = |text: &str| {
        let digest = Sha256::digest(text.as_bytes());
        digest
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    let write = |name: String, kind: &str, sequence: u64, lines: &str, entries: u64| {
        let head = format!(
            "{{\"fairbat_manifest\":1,\"kind\":\"{kind}\",\"sequence\":{sequence},\
             \"created\":\"2026-01-02T03:04:05Z\"}}\n{lines}"
        );
        let end = format!(
            "{{\"end\":{{\"entries\":{entries},\"sha256\":\"{}\"}}}}\n",
            digest(&head)
        );
        fs::write(own.join(name), gzip(&(head + &end))).expect("write a manifest");
    };
    let file = |name: &str| {
        format!(
            "{{\"path\":\"{name}\",\"type\":\"file\",\"mode\":\"0644\",\"uid\":0,\"gid\":0,\
             \"mtime\":\"0.000000000\",\"size\":{size},\"sha256\":\"{}\"}}\n",
            digest("x")
        )
    };
    let lines = file("f") + &file("g") + &file("h");
    write(format!("{:010}-base.jsonl.gz", 1), "base", 1, &lines, 3);
    for sequence in 2..2 + deltas {
        let name = format!("{sequence:010}-delta.jsonl.gz");
        write(name, "delta", sequence, "", 0);
    }
    let pointer = format!(
        "{{\"fairbat\":1,\"writer\":7,\"base\":1,\"last\":{}}}",
        1 + deltas
    );
    fs::write(directory.join("current.json"), pointer).expect("write the pointer");
}

#[test]
fn too_many_deltas_and_too_large_files_are_refused_with_an_error() {
    let scene = Scene::local("");
    let service = scene.place.start();
    let directory = scene.object("home/.fairbat/manifest");
    let problem = || {
        let failed = service.fairbat(&["start", "back", "--wait"]);
        assert_ne!(failed.code, Some(0), "{failed:?}");
        let task = service.task("back").expect("it is there");
        task["last"]["problem"]
            .as_str()
            .expect("a problem")
            .to_owned()
    };
    write_manifests(&directory, 1_500, 1);
    let many = problem();
    assert!(many.contains("names manifests 1 to 1501"), "{many}");
    // Three such files have more bytes than a number.
    write_manifests(&directory, 0, u64::MAX / 2);
    let large = problem();
    assert!(large.contains("too many bytes"), "{large}");
    write_manifests(&directory, 0, u64::MAX);
    let large = problem();
    assert!(large.contains("\"size\""), "{large}");
    service.order(&["start", "other", "--wait"]);
    // As many as an agent writes are read.
    fs::write(scene.object("home/f"), "x").expect("write an object");
    fs::copy(scene.object("home/f"), scene.object("home/g")).expect("copy an object");
    fs::copy(scene.object("home/f"), scene.object("home/h")).expect("copy an object");
    write_manifests(&directory, 50, 1);
    service.order(&["start", "back", "--wait"]);
}

#[test]
fn manifests_of_someone_else_are_refused_where_the_key_is() {
    let scene = Scene::local("");
    scene.fill(5);
    let service = scene.place.start();
    scene.agent(1, "key", &["home"], "");
    service.order(&["start", "home", "--wait"]);
    let key = scene.agent(0, "key", &["home"], "");
    assert_eq!(key.trim().len(), 64, "{key}");
    let file = scene.place.join("state/keys/home");
    let mode = fs::metadata(&file).expect("the key").permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);

    // Without the key it works, with a warning.
    service.order(&["start", "back", "--wait"]);
    scene.place.wait_for_log("does not have the key", 1);
    scene.agent(1, "key", &["back", "--import"], "nonsense");
    scene.agent(0, "key", &["back", "--import"], &key);
    service.order(&["start", "back", "--wait"]);
    assert_eq!(
        scene.place.log().matches("does not have the key").count(),
        1
    );

    let genuine = fs::read_to_string(scene.pointer()).expect("read the pointer");
    let refused = |pointer: &str, why: &str| {
        fs::write(scene.pointer(), pointer).expect("write the pointer");
        let to = scene.place.join("nowhere").display().to_string();
        for args in [
            &["start", "back", "--wait"][..],
            &["restore", "home", "--wait", "--to", &to],
        ] {
            let failed = service.fairbat(args);
            assert_ne!(failed.code, Some(0), "{failed:?}");
            assert!(failed.stderr.contains(why), "{failed}");
        }
        let found = scene.check(3);
        assert!(found.contains(why), "{found}");
    };
    let json: Value = serde_json::from_str(&genuine).expect("JSON");
    let without = |name: &str| {
        let mut json = json.clone();
        json.as_object_mut().expect("an object").remove(name);
        json.to_string()
    };
    refused(&without("authenticator"), "no authenticator");
    refused(&without("manifests"), "wrong authenticator");
    let partial = genuine.replace("\"is_partial\":false", "\"is_partial\":true");
    refused(&partial, "wrong authenticator");
    // The right pointer, and another base.
    service.order(&["start", "other", "--wait"]);
    let mut other = files_below(&scene.object("other/.fairbat/manifest"));
    other.retain(|path| path.display().to_string().ends_with("-base.jsonl.gz"));
    let mut own = files_below(&scene.object("home/.fairbat/manifest"));
    own.retain(|path| path.display().to_string().ends_with("-base.jsonl.gz"));
    fs::copy(&other[0], own.last().expect("a base")).expect("replace the base");
    refused(&genuine, "not those that were authenticated");

    // A run writes them anew.
    service.order(&["start", "home", "--wait"]);
    service.order(&["start", "back", "--wait"]);
    scene.check(0);
    expect_same(&scene.source, &scene.place.join("pulled"));
}

#[test]
fn a_store_without_an_authenticator_gets_one_unless_the_job_says_otherwise() {
    let scene = Scene::local("authenticate = false");
    scene.fill(5);
    let service = scene.place.start();
    service.order(&["start", "home", "--wait"]);
    let pointer = || fs::read_to_string(scene.pointer()).expect("read the pointer");
    assert!(!pointer().contains("authenticator"), "{}", pointer());
    scene.check(0);
    assert!(!scene.place.join("state/keys/home").exists());
    service.kill();
    let config = scene.place.join("agent.toml");
    let text = fs::read_to_string(&config).expect("read the configuration");
    let text = text.replace("authenticate = false", "");
    fs::write(&config, text).expect("write the configuration");
    let service = scene.place.start();
    service.order(&["start", "home", "--wait"]);
    assert!(pointer().contains("authenticator"), "{}", pointer());
    let task = service.task("home").expect("it is there");
    assert_eq!(task["last"]["files"]["moved"], 0, "{task:#}");
    service.order(&["start", "back", "--wait"]);
    // A new machine that knows nothing takes all of it over.
    service.kill();
    fs::remove_dir_all(scene.place.join("state")).expect("lose the state");
    let service = scene.place.start();
    service.order(&["start", "home", "--wait"]);
    scene.place.wait_for_log("taking over", 1);
    let task = service.task("home").expect("it is there");
    assert_eq!(task["last"]["files"]["moved"], 0, "{task:#}");
}

#[test]
fn a_damaged_key_is_named_as_such_and_a_new_one_can_be_made() {
    let scene = Scene::local("");
    scene.fill(5);
    let service = scene.place.start();
    service.order(&["start", "home", "--wait"]);
    let key = scene.place.join("state/keys/home");
    fs::write(&key, "damaged").expect("write the key");
    let failed = service.fairbat(&["start", "home", "--wait"]);
    failed.expect_code(1);
    for said in [
        failed.stderr,
        scene.agent(1, "key", &["home"], ""),
        scene.check(1),
    ] {
        assert!(said.contains("64 hexadecimal digits"), "{said}");
        assert!(said.contains("hint: delete the file"), "{said}");
        assert!(!said.contains("the disk with the state"), "{said}");
        assert!(!said.contains("files are intact"), "{said}");
    }
    fs::remove_file(&key).expect("remove the key");
    service.order(&["start", "home", "--wait"]);
    let task = service.task("home").expect("it is there");
    assert_eq!(task["last"]["files"]["moved"], 0, "{task:#}");
    let made = scene.agent(0, "key", &["home"], "");
    scene.check(0);
    scene.agent(0, "key", &["back", "--import"], &made);
    service.order(&["start", "back", "--wait"]);
}
