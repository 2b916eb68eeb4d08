//! Names from servers and URLs: they stay in the directory, they never
//! replace a file unasked, and only what the user named is replaced.

use std::fs;
use std::path::{Path, PathBuf};

use fairbat_tests::content::Content;
use fairbat_tests::expect::{assert_content, names_in};
use fairbat_tests::fault::FaultServer;
use fairbat_tests::message::Reply;
use fairbat_tests::version::Version;
use fairbat_tests::workdir::Workdir;

const FILE: Content = Content::new(60, 200_000);
const OTHER: Content = Content::new(61, 150_000);

/// Serves `FILE` under `/file` with this Content-Disposition.
fn serve_as(disposition: &str) -> FaultServer {
    let server = FaultServer::start();
    let version = Version::new(&FILE);
    let disposition = disposition.to_owned();
    server.script("/file", move |request| {
        version
            .answer(request)
            .header("Content-Disposition", &disposition)
    });
    server
}

/// Every file below a directory.
fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else {
            files.push(path);
        }
    }
    files
}

#[test]
fn content_disposition_names_the_file() {
    for (disposition, name) in [
        ("attachment; filename=\"report 1.bin\"", "report 1.bin"),
        ("attachment; filename=plain.bin", "plain.bin"),
        ("inline; filename=\"inline.bin\"", "inline.bin"),
        (
            "attachment; filename=\"x.bin\"; filename*=UTF-8''%C3%A4.bin",
            "ä.bin",
        ),
        ("ATTACHMENT; FILENAME=\"case.bin\"", "case.bin"),
        ("attachment; filename=\"a\\\"b.bin\"", "a\"b.bin"),
        ("attachment", "file"),
        ("nonsense;;;=", "file"),
    ] {
        let server = serve_as(disposition);
        let work = Workdir::new();
        work.get().arg(server.url("/file")).run().expect_code(0);
        assert_eq!(names_in(work.path()), [name], "{disposition}");
        work.assert_holds(&[(name, &FILE)]);
    }
}

#[test]
fn names_from_a_server_never_leave_the_directory() {
    let long = format!("attachment; filename=\"{}\"", "n".repeat(300));
    let hostile = [
        "attachment; filename=\"../../etc/x\"",
        "attachment; filename=../../etc/x",
        "attachment; filename*=UTF-8''..%2F..%2Fetc%2Fx",
        "attachment; filename*=UTF-8''%2e%2e%2f%2e%2e%2fx",
        "attachment; filename=\"/tmp/fairbat-must-not-write-here\"",
        "attachment; filename=\"..\\\\..\\\\x\"",
        "attachment; filename=\"..\"",
        "attachment; filename=\".\"",
        "attachment; filename=\"\"",
        "attachment; filename=\"/\"",
        "attachment; filename=\"x/\"",
        "attachment; filename*=UTF-8''a%00b",
        "attachment; filename*=UTF-8''a%0Ab%1B%5B2J",
        "attachment; filename*=UTF-8''%FF%FE",
        "attachment; filename=\"sub/x\"",
        "attachment; filename=\"~/x\"",
        "attachment; filename=\"-rf\"",
        long.as_str(),
    ];
    for disposition in hostile {
        let server = serve_as(disposition);
        let work = Workdir::new();
        let deep = work.join("a/b/c");
        fs::create_dir_all(&deep).expect("created");
        let outcome = work
            .get()
            .arg("-d")
            .arg(&deep)
            .arg(server.url("/file"))
            .run();
        assert_eq!(outcome.code, Some(0), "{disposition}: {outcome}");
        let files = files_below(work.path());
        assert_eq!(files.len(), 1, "{disposition}: {files:?}");
        assert_eq!(files[0].parent(), Some(deep.as_path()), "{disposition}");
        let name = files[0].file_name().expect("a name").to_string_lossy();
        assert!(
            !name.chars().any(char::is_control),
            "{disposition}: {name:?}"
        );
        assert_content(&files[0], &FILE);
    }
    assert!(!Path::new("/tmp/fairbat-must-not-write-here").exists());
}

#[test]
fn names_from_a_url_never_leave_the_directory() {
    for path in [
        "/..%2F..%2Fx",
        "/%2e%2e%2fx",
        "/%2Fetc%2Fx",
        "/a%00b",
        "/%2e%2e",
        "/x%0a",
    ] {
        let server = FaultServer::start();
        server.serve(path, Version::new(&FILE));
        let work = Workdir::new();
        let deep = work.join("a/b/c");
        fs::create_dir_all(&deep).expect("created");
        let outcome = work.get().arg("-d").arg(&deep).arg(server.url(path)).run();
        let files = files_below(work.path());
        // A URL that is normalised away before it is asked for may be refused.
        assert_eq!(
            files.len(),
            usize::from(outcome.code == Some(0)),
            "{path}: {files:?}"
        );
        for file in files {
            assert_eq!(file.parent(), Some(deep.as_path()), "{path}");
            assert_content(&file, &FILE);
        }
    }
}

#[test]
fn two_urls_with_the_same_name_give_two_files() {
    let server = FaultServer::start();
    server.serve("/a/file", Version::new(&FILE));
    server.serve("/b/file", Version::new(&OTHER));
    let work = Workdir::new();
    let outcome = work
        .get()
        .arg(server.url("/a/file"))
        .arg(server.url("/b/file"))
        .run();
    outcome.expect_code(0);
    let first_is_file = FILE
        .first_difference(&work.join("file"))
        .expect("read")
        .is_none();
    let (first, second) = if first_is_file {
        (&FILE, &OTHER)
    } else {
        (&OTHER, &FILE)
    };
    work.assert_holds(&[("file", first), ("file.1", second)]);
    // Each `done` says which file is whose.
    for done in outcome.events_named("done") {
        let content = if done["url"] == server.url("/a/file") {
            &FILE
        } else {
            &OTHER
        };
        let path = done["path"].as_str().expect("a path");
        assert_content(&work.join(path), content);
    }
}

#[test]
fn an_existing_file_is_never_replaced_unasked() {
    let server = FaultServer::start();
    server.serve("/file", Version::new(&FILE));
    let work = Workdir::new();
    OTHER.write_to(&work.join("file")).expect("written");
    work.get().arg(server.url("/file")).run().expect_code(0);
    work.assert_holds(&[("file", &OTHER), ("file.1", &FILE)]);

    fs::remove_file(work.join("file.1")).expect("removed");
    OTHER.write_to(&work.join("file.1")).expect("written");
    work.get().arg(server.url("/file")).run().expect_code(0);
    work.assert_holds(&[("file", &OTHER), ("file.1", &OTHER), ("file.2", &FILE)]);
}

#[test]
fn a_link_under_the_name_is_neither_followed_nor_replaced() {
    let server = FaultServer::start();
    server.serve("/file", Version::new(&FILE));
    let (work, outside) = (Workdir::new(), Workdir::new());
    let target = outside.join("target");
    std::os::unix::fs::symlink(&target, work.join("file")).expect("linked");
    work.get().arg(server.url("/file")).run().expect_code(0);
    assert_eq!(names_in(work.path()), ["file", "file.1"]);
    assert_content(&work.join("file.1"), &FILE);
    assert_eq!(names_in(outside.path()), [""; 0]);
}

#[test]
fn a_directory_under_the_name_is_left_alone() {
    let server = FaultServer::start();
    server.serve("/file", Version::new(&FILE));
    let work = Workdir::new();
    fs::create_dir(work.join("file")).expect("created");
    work.get().arg(server.url("/file")).run().expect_code(0);
    assert_eq!(names_in(work.path()), ["file", "file.1"]);
    assert_content(&work.join("file.1"), &FILE);
    assert_eq!(names_in(&work.join("file")), [""; 0]);
}

#[test]
fn a_named_output_replaces_the_file() {
    let server = FaultServer::start();
    server.serve("/file", Version::new(&FILE));
    let work = Workdir::new();
    OTHER.write_to(&work.join("out")).expect("written");
    work.get()
        .args(["-o", "out", &server.url("/file")])
        .run()
        .expect_code(0);
    work.assert_holds(&[("out", &FILE)]);
}

#[test]
fn a_named_output_stays_the_old_file_until_the_new_one_is_complete() {
    let server = FaultServer::start();
    let version = Version::new(&FILE);
    server.script("/file", move |request| version.answer(request).rate(50_000));
    let work = Workdir::new();
    OTHER.write_to(&work.join("out")).expect("written");
    let mut run = work
        .get()
        .args(["--file-allocation", "none", "-o", "out"])
        .arg(server.url("/file"))
        .spawn();
    run.wait_for_part(&work.join("out"), 50_001);
    assert_content(&work.join("out"), &OTHER);
    assert!(run.is_running());
    run.wait().expect_code(0);
    work.assert_holds(&[("out", &FILE)]);
}

#[test]
fn a_named_output_survives_a_failure() {
    let server = FaultServer::start();
    server.script("/file", |_| Reply::status(404));
    let work = Workdir::new();
    OTHER.write_to(&work.join("out")).expect("written");
    work.get()
        .args(["-o", "out", &server.url("/file")])
        .run()
        .expect_code(1);
    work.assert_holds(&[("out", &OTHER)]);
}

#[test]
fn a_named_output_wins_over_the_servers_name() {
    let server = serve_as("attachment; filename=\"theirs\"");
    let work = Workdir::new();
    work.get()
        .args(["-o", "mine", &server.url("/file")])
        .run()
        .expect_code(0);
    work.assert_holds(&[("mine", &FILE)]);
}
