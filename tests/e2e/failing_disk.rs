//! A disk that loses bytes: the kernel says so once, and whatever was written
//! before is not believed afterwards.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use fairbat_tests::content::Content;
use fairbat_tests::expect::assert_absent;
use fairbat_tests::fault::FaultServer;
use fairbat_tests::version::Version;
use fairbat_tests::workdir::Workdir;

/// Builds what makes the first sync of a part file fail.
fn failing_disk(work: &Workdir) -> PathBuf {
    let library = work.join("failing_disk.so");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/e2e/failing_disk.c"))
        .arg("-ldl")
        .status()
        .expect("a C compiler, which linking needs as well");
    assert!(built.success());
    library
}

/// `size` bytes at `rate`: one that ends before the first checkpoint, and one
/// that does not.
#[track_caller]
fn check(size: u64, rate: u64) {
    let content = Content::new(size, size);
    let server = FaultServer::start();
    let version = Version::new(&content);
    server.script("/file", move |request| version.answer(request).rate(rate));
    let work = Workdir::new();
    let tools = Workdir::new();
    let outcome = work
        .get()
        .args(["--chunk-size", "256K", "-o", "file", &server.url("/file")])
        .env("LD_PRELOAD", failing_disk(&tools))
        .run();
    outcome.expect_code(6);
    assert_absent(&work.join("file"));
    let journal = fs::read_to_string(work.join("file.part.fairbat")).expect("the journal");
    assert!(journal.contains("\"synced\":[]"), "{journal}");

    let again = work.get().args(["-o", "file", &server.url("/file")]).run();
    again.expect_code(0);
    assert_eq!(again.event("file")["resumed_bytes"], 0, "{again}");
    work.assert_holds(&[("file", &content)]);
}

#[test]
fn bytes_lost_in_a_checkpoint_are_fetched_again() {
    check(2_500_000, 500_000);
}

#[test]
fn bytes_lost_in_the_last_sync_are_fetched_again() {
    check(400_000, 4_000_000);
}
