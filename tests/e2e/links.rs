//! What already stands under the names of a run: a link is followed to the
//! file that the user means, a device is not taken for a file, and nothing
//! outside the run's own files is ever written.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use fairbat_tests::bin::Fairbat;
use fairbat_tests::content::Content;
use fairbat_tests::expect::{assert_absent, assert_content, assert_only, names_in};
use fairbat_tests::fault::FaultServer;
use fairbat_tests::outcome::Outcome;
use fairbat_tests::special::Special;
use fairbat_tests::version::Version;
use fairbat_tests::workdir::Workdir;

const FILE: Content = Content::new(210, 600_000);
const VICTIM: Content = Content::new(211, 100_000);
const RATE: u64 = 100_000;

fn serve() -> FaultServer {
    let server = FaultServer::start();
    server.serve("/file", Version::new(&FILE));
    slow_down(&server);
    server
}

/// Has `/slow` come at [`RATE`].
fn slow_down(server: &FaultServer) {
    let version = Version::new(&FILE);
    server.script("/slow", move |request| version.answer(request).rate(RATE));
}

fn get(work: &Workdir, url: &str) -> Fairbat {
    work.get()
        .args(["--file-allocation", "none", "-x", "1", "-o", "x"])
        .arg(url)
}

fn link(target: impl AsRef<Path>, path: &Path) {
    symlink(target, path).expect("linked");
}

#[track_caller]
fn assert_link(path: &Path, target: impl AsRef<Path>) {
    let found = fs::read_link(path);
    assert!(
        found.as_ref().is_ok_and(|found| found == target.as_ref()),
        "{} is no longer the link: {found:?}",
        path.display()
    );
}

/// Panics unless the run was refused because of what is on the disk, before
/// anything but the first byte was asked for.
#[track_caller]
fn assert_refused(outcome: &Outcome, server: &FaultServer, why: &[&str]) {
    outcome.expect_code(6).expect_said(why);
    assert_eq!(outcome.event("error")["kind"], "disk", "{outcome}");
    let requests = server.requests();
    let data = requests.iter().filter(|r| !r.asks_for_one_byte());
    assert_eq!(data.count(), 0, "fetched what has no place: {outcome}");
}

#[test]
fn a_device_a_pipe_and_a_socket_are_not_taken_for_files() {
    for special in Special::ALL {
        for linked in [false, true] {
            let server = serve();
            let (work, elsewhere) = (Workdir::new(), Workdir::new());
            let (name, thing) = (work.join("x"), elsewhere.join("thing"));
            let at = if linked { &thing } else { &name };
            if !special.make(at) {
                continue;
            }
            if linked {
                link(&thing, &name);
            }
            let outcome = get(&work, &server.url("/file")).run();
            if linked {
                assert_link(&name, &thing);
                assert_only(elsewhere.path(), &["thing"]);
            }
            special.assert_at(at);
            assert_only(work.path(), &["x"]);
            assert_refused(
                &outcome,
                &server,
                &["regular file", "device", "pipe", "fifo", "socket"],
            );
        }
    }
}

#[test]
fn a_link_to_a_file_stays_and_the_file_gets_the_content() {
    let server = serve();
    // Straight, relative to where the link is, and over a second link.
    for chain in [&["a/b/real"][..], &["b/real"], &["b/next", "real"]] {
        let work = Workdir::new();
        fs::create_dir_all(work.join("a/b")).expect("created");
        VICTIM.write_to(&work.join("a/b/real")).expect("written");
        let first = work.join(chain[0]);
        let (name, to) = match chain[0] {
            "a/b/real" => ("x", first.as_path()),
            relative => ("a/x", Path::new(relative)),
        };
        link(to, &work.join(name));
        if let Some(second) = chain.get(1) {
            link(second, &work.join("a/b/next"));
        }
        let real = work.join("a/b/real");
        let get = work
            .get()
            .args(["--file-allocation", "none", "-x", "1", "-o", name])
            .arg(server.url("/slow"));
        slow_down(&server);
        let mut run = get.spawn();
        run.wait_for_part(&real, FILE.len() / 3);
        assert_content(&real, &VICTIM);
        let mut beside = vec!["real", "real.part", "real.part.fairbat"];
        if chain.len() > 1 {
            beside.push("next");
        }
        assert_only(&work.join("a/b"), &beside);
        run.signal("INT");
        run.wait().expect_code(130);

        server.serve("/slow", Version::new(&FILE));
        let again = get.run();
        again.expect_code(0);
        assert!(again.resumed_bytes() > 0, "{again}");
        assert_link(&work.join(name), to);
        assert_content(&real, &FILE);
        beside.retain(|name| !name.contains(".part"));
        assert_only(&work.join("a/b"), &beside);
        // Nothing beside the link either.
        assert_eq!(names_in(work.path()).len(), 1 + usize::from(name == "x"));
        assert_eq!(
            names_in(&work.join("a")).len(),
            1 + usize::from(name != "x")
        );
    }
}

#[test]
fn a_link_to_a_directory_is_refused() {
    let server = serve();
    let (work, elsewhere) = (Workdir::new(), Workdir::new());
    link(elsewhere.path(), &work.join("x"));
    let outcome = get(&work, &server.url("/file")).run();
    outcome.expect_code_in(&[2, 6]).expect_said(&["directory"]);
    assert_link(&work.join("x"), elsewhere.path());
    assert_only(work.path(), &["x"]);
    assert_only(elsewhere.path(), &[]);
}

#[test]
fn a_link_to_nothing_is_refused() {
    let (work, elsewhere) = (Workdir::new(), Workdir::new());
    let nothing = elsewhere.join("nothing");
    for to in [nothing.as_path(), Path::new("x")] {
        let server = serve();
        let _ = fs::remove_file(work.join("x"));
        link(to, &work.join("x"));
        let outcome = get(&work, &server.url("/file")).run();
        assert_link(&work.join("x"), to);
        assert_only(work.path(), &["x"]);
        assert_only(elsewhere.path(), &[]);
        assert_refused(&outcome, &server, &["link"]);
    }
}

/// Leaves `x.part` and its journal behind, then puts a link to `victim` in
/// the place of the part.
fn plant_part(work: &Workdir, server: &FaultServer, victim: &Path) {
    let mut run = get(work, &server.url("/slow")).spawn();
    run.wait_for_part(&work.join("x"), FILE.len() / 3);
    run.signal("INT");
    run.wait().expect_code(130);
    fs::remove_file(work.join("x.part")).expect("removed");
    link(victim, &work.join("x.part"));
}

/// Panics unless the run either made the file or said what is in its way.
#[track_caller]
fn assert_made_or_refused(outcome: &Outcome, work: &Workdir) {
    match outcome.code {
        Some(0) => work.assert_holds(&[("x", &FILE)]),
        _ => {
            outcome.expect_code(6).expect_said(&["x.part"]);
            assert_absent(&work.join("x"));
        }
    }
}

#[test]
fn a_part_that_is_a_link_leads_nowhere() {
    for with_journal in [false, true] {
        let server = serve();
        let (work, elsewhere) = (Workdir::new(), Workdir::new());
        let victim = elsewhere.join("victim");
        VICTIM.write_to(&victim).expect("written");
        if with_journal {
            plant_part(&work, &server, &victim);
        } else {
            link(&victim, &work.join("x.part"));
        }
        let outcome = get(&work, &server.url("/slow")).run();
        assert_only(elsewhere.path(), &["victim"]);
        assert_content(&victim, &VICTIM);
        assert_made_or_refused(&outcome, &work);
    }
}

#[test]
fn a_part_that_is_a_link_to_nothing_makes_nothing() {
    for with_journal in [false, true] {
        let server = serve();
        let (work, elsewhere) = (Workdir::new(), Workdir::new());
        let nothing = elsewhere.join("nothing");
        if with_journal {
            plant_part(&work, &server, &nothing);
        } else {
            link(&nothing, &work.join("x.part"));
        }
        let outcome = get(&work, &server.url("/slow")).run();
        assert_only(elsewhere.path(), &[]);
        assert_made_or_refused(&outcome, &work);
    }
}

#[test]
fn a_part_that_is_a_link_under_a_servers_name_leads_nowhere() {
    let server = serve();
    let (work, elsewhere) = (Workdir::new(), Workdir::new());
    VICTIM.write_to(&elsewhere.join("victim")).expect("written");
    for to in [elsewhere.join("victim"), elsewhere.join("nothing")] {
        let _ = fs::remove_file(work.join("file.part"));
        link(to, &work.join("file.part"));
        let outcome = work.get().arg(server.url("/file")).run();
        outcome.expect_code_in(&[0, 6]);
        assert_only(elsewhere.path(), &["victim"]);
        assert_content(&elsewhere.join("victim"), &VICTIM);
        if outcome.code == Some(0) {
            let done = outcome.event("done");
            assert_content(&work.join(done["path"].as_str().expect("a path")), &FILE);
        }
    }
}

#[test]
fn what_stands_where_a_new_journal_is_made_is_replaced_not_followed() {
    let server = serve();
    let (work, elsewhere) = (Workdir::new(), Workdir::new());
    let victim = elsewhere.join("victim");
    VICTIM.write_to(&victim).expect("written");
    let fresh = work.join("x.part.fairbat.new");
    let run = || {
        get(&work, &server.url("/file")).run().expect_code(0);
        work.assert_holds(&[("x", &FILE)]);
        assert_only(elsewhere.path(), &["victim"]);
        assert_content(&victim, &VICTIM);
        fs::remove_file(work.join("x")).expect("removed");
    };
    // What a run leaves that is killed in that moment.
    fs::write(&fresh, "half a jour").expect("written");
    run();
    for to in [victim.clone(), elsewhere.join("nothing")] {
        link(to, &fresh);
        run();
    }
}

#[test]
fn a_journal_that_is_a_link_is_replaced_not_followed() {
    let server = serve();
    let (work, elsewhere) = (Workdir::new(), Workdir::new());
    let victim = elsewhere.join("victim");
    VICTIM.write_to(&victim).expect("written");
    link(&victim, &work.join("x.part.fairbat"));
    let outcome = get(&work, &server.url("/file")).run();
    assert_only(elsewhere.path(), &["victim"]);
    assert_content(&victim, &VICTIM);
    match outcome.code {
        Some(0) => work.assert_holds(&[("x", &FILE)]),
        _ => drop(outcome.expect_code(6).expect_said(&["x.part.fairbat"])),
    }
}

#[test]
fn a_pipe_under_a_working_name_does_not_hold_the_run_up() {
    for name in ["x.part", "x.part.fairbat", "x.part.fairbat.new"] {
        let server = serve();
        let work = Workdir::new();
        assert!(Special::Pipe.make(&work.join(name)));
        let outcome = get(&work, &server.url("/file"))
            .timeout(Duration::from_secs(10))
            .run();
        match outcome.code {
            Some(0) => assert_content(&work.join("x"), &FILE),
            _ => drop(outcome.expect_code(6).expect_said(&[name])),
        }
    }
}
