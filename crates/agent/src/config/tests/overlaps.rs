//! Jobs that would write to the same place, or to what they read.

use super::*;

/// Two jobs: direction, source and destination of each.
fn two(jobs: [[&str; 3]; 2]) -> String {
    let mut text = format!(
        "{STORES}\n[stores.host]\ntype = \"s3\"\nbucket = \"backups\"\nprefix = \"hosts\"\n\
         [stores.root]\ntype = \"fairbat\"\nurl = \"https://NAS.example.org:443/\"\n"
    );
    for (name, [direction, source, destination]) in ["a", "b"].into_iter().zip(jobs) {
        text += &format!(
            "[[jobs]]\nname = {name:?}\ndirection = {direction:?}\nsource = {source:?}\n\
             destination = {destination:?}\n"
        );
    }
    text
}

#[test]
fn no_two_jobs_write_to_the_same_directory() {
    for (a, b) in [
        ("nas:a", "nas:a"),
        ("nas:a", "nas:a/b"),
        ("nas:a/b/c", "nas:a"),
        ("nas:", "nas:a"),
        // Stores that are parts of one.
        ("offsite:a", "host:alpha"),
        ("host:alpha/a/b", "offsite:a"),
        ("root:dav/a", "nas:a"),
    ] {
        let text = two([["push", "/a", a], ["push", "/b", b]]);
        assert_refused(&text, &["jobs `b` and `a`", "overlap"]);
    }
    for (a, b) in [
        ("nas:a", "nas:ab"),
        ("nas:a", "offsite:a"),
        ("nas:a/b", "nas:a/c"),
        ("offsite:a", "host:beta"),
        ("root:a", "nas:a"),
    ] {
        config(&two([["push", "/a", a], ["push", "/b", b]]));
    }
    for (a, b) in [("/a", "/a/b"), ("/a", "/a"), ("/", "/a")] {
        let text = two([["pull", "nas:a", a], ["pull", "nas:b", b]]);
        assert_refused(&text, &["jobs `b` and `a`"]);
    }
    config(&two([["pull", "nas:a", "/a"], ["pull", "nas:b", "/ab"]]));
    // There and back again is no contradiction.
    config(&two([["push", "/a", "nas:a"], ["pull", "nas:b", "/a/b"]]));
}

#[test]
fn no_job_writes_to_what_it_reads() {
    for (source, destination) in [
        ("/", "disk:a"),
        ("/mnt", "disk:a"),
        ("/mnt/backup", "disk:"),
        ("/mnt/backup/a/b", "disk:a"),
    ] {
        let lines = format!("source = {source:?}\ndestination = {destination:?}");
        assert_refused(
            &with_job(&lines),
            &["writes into its own source", "separate"],
        );
        let lines =
            format!("direction = \"pull\"\nsource = {destination:?}\ndestination = {source:?}");
        assert_refused(
            &with_job(&lines),
            &["writes into its own source", "separate"],
        );
    }
    config(&with_job(
        "source = \"/mnt/backup/a\"\ndestination = \"disk:b\"",
    ));
}
