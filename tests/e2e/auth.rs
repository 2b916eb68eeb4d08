//! Credentials and headers: sent to the host they are for, shown to nobody.

use std::fs;

use fairbat_tests::bin::Fairbat;
use fairbat_tests::content::{Content, base64};
use fairbat_tests::fault::FaultServer;
use fairbat_tests::message::Reply;
use fairbat_tests::version::Version;
use fairbat_tests::workdir::Workdir;

const FILE: Content = Content::new(70, 200_000);

/// Serves `FILE` to whoever is `me` with the password `s3cret`.
fn serve() -> FaultServer {
    let server = FaultServer::start();
    let version = Version::new(&FILE);
    let right = format!("Basic {}", base64(b"me:s3cret"));
    server.script("/file", move |request| {
        if request.header("authorization") == Some(right.as_str()) {
            version.answer(request)
        } else {
            Reply::status(401).header("WWW-Authenticate", "Basic realm=\"test\"")
        }
    });
    server
}

#[test]
fn a_user_and_password_open_the_door() {
    let server = serve();
    let in_url = server.url("/file").replace("http://", "http://me:s3cret@");
    let encoded = server
        .url("/file")
        .replace("http://", "http://me:s%33cret@");
    for args in [
        vec!["-u", "me:s3cret", &server.url("/file")],
        vec!["--user=me:s3cret", &server.url("/file")],
        vec![in_url.as_str()],
        vec![encoded.as_str()],
    ] {
        let work = Workdir::new();
        let outcome = work.get().args(["--chunk-size", "64K"]).args(&args).run();
        outcome.expect_code(0);
        work.assert_holds(&[("file", &FILE)]);
        let shown = format!("{}{}", outcome.stdout, outcome.stderr);
        assert!(
            !shown.contains("s3cret") && !shown.contains("s%33cret"),
            "{outcome}"
        );
    }
}

#[test]
fn without_the_right_password_the_run_ends_and_says_so() {
    let server = serve();
    let netrc = Workdir::new();
    let entry = "machine example.com login me password s3cret\n";
    fs::write(netrc.join("netrc"), entry).expect("written");
    for args in [vec![], vec!["-u", "me:wr0ng"], vec!["-n"]] {
        let work = Workdir::new();
        let outcome = work
            .get()
            .args(&args)
            .env("NETRC", netrc.join("netrc"))
            .arg(server.url("/file"))
            .run();
        outcome.expect_code(1).expect_said(&["401"]);
        assert!(outcome.event("error")["hint"] != "", "no hint: {outcome}");
        assert!(!outcome.stderr.contains("wr0ng"), "{outcome}");
        work.assert_holds(&[]);
    }
}

#[test]
fn netrc_is_read_when_asked_for() {
    let server = serve();
    let entry = "machine example.com login x password y\n\
                 machine 127.0.0.1\n  login me\n  password s3cret\n";
    let home = Workdir::new();
    fs::write(home.join(".netrc"), entry).expect("written");
    fs::write(home.join("other"), entry).expect("written");

    for (args, env, code) in [
        (vec!["-n"], ("NETRC", home.join("other")), 0),
        (vec!["--netrc"], ("HOME", home.path().to_owned()), 0),
        // Not asked for: not used.
        (vec![], ("HOME", home.path().to_owned()), 1),
        // What the command line says is nearer.
        (
            vec!["-n", "-u", "me:wr0ng"],
            ("NETRC", home.join("other")),
            1,
        ),
    ] {
        let work = Workdir::new();
        let outcome = work
            .get()
            .args(&args)
            .env(env.0, &env.1)
            .arg(server.url("/file"))
            .run();
        assert_eq!(outcome.code, Some(code), "{args:?}: {outcome}");
        let files: &[(&str, &Content)] = if code == 0 { &[("file", &FILE)] } else { &[] };
        work.assert_holds(files);
    }
}

#[test]
fn given_headers_are_sent_with_every_request() {
    let server = FaultServer::start();
    server.serve("/file", Version::new(&FILE));
    let work = Workdir::new();
    work.get()
        .args(["--chunk-size", "64K"])
        .args(["-H", "X-One: 1", "--header", "X-Two:  two words "])
        .args(["-H", "User-Agent: tester/1"])
        .arg(server.url("/file"))
        .run()
        .expect_code(0);
    assert!(server.requests().len() >= 3);
    for request in server.requests() {
        assert_eq!(request.header("x-one"), Some("1"));
        assert_eq!(request.header("x-two"), Some("two words"));
        assert_eq!(request.header("user-agent"), Some("tester/1"));
    }
}

#[test]
fn a_user_agent_is_sent() {
    let server = FaultServer::start();
    server.serve("/file", Version::new(&FILE));
    let work = Workdir::new();
    work.get().arg(server.url("/file")).run().expect_code(0);
    for request in server.requests() {
        let agent = request.header("user-agent").unwrap_or_default();
        assert!(agent.to_lowercase().starts_with("fairbat/"), "{agent:?}");
    }
}

#[test]
fn a_malformed_header_or_user_is_a_usage_error() {
    let server = FaultServer::start();
    for args in [
        ["-H", "no colon"],
        ["-H", ": no name"],
        ["-H", "bad name: x"],
    ] {
        let work = Workdir::new();
        let outcome = work.get().args(args).arg(server.url("/file")).run();
        outcome.expect_code(2);
    }
    assert!(server.requests().is_empty());
}

#[test]
fn a_server_that_wants_a_token_is_shown_how_to_get_one() {
    let server = FaultServer::start();
    let version = Version::new(&FILE);
    server.script("/file", move |request| {
        match (request.method.as_str(), request.header("authorization")) {
            ("PUT", Some("Bearer t0ken")) => Reply::status(201).after_body(),
            ("PUT", _) => Reply::status(401)
                .header("WWW-Authenticate", "Bearer realm=\"test\"")
                .after_body(),
            (_, Some("Bearer t0ken")) => version.answer(request),
            _ => Reply::status(401).header("WWW-Authenticate", "Bearer"),
        }
    });
    let url = server.url("/file");
    let work = Workdir::new();
    FILE.write_to(&work.join("sent")).expect("written");
    let plan = ["plan", "--measure=0", "--deadline=4h", &url];
    for run in [
        work.get().arg(&url),
        work.put().args(["sent", &url]),
        Fairbat::new(work.path()).args(plan),
    ] {
        let outcome = run.clone().run();
        outcome.expect_code(1);
        for said in ["401", "-H 'Authorization: Bearer TOKEN'", "FAIRBAT_HEADER"] {
            outcome.expect_said(&[said]);
        }
        run.env("FAIRBAT_HEADER", "Authorization: Bearer t0ken")
            .run()
            .expect_code(0);
    }
}

/// A server that refuses everybody with this challenge, and what `get` says to it.
fn refused(status: u16, challenge: &str, netrc: &str, args: &[&str]) -> String {
    let server = FaultServer::start();
    let challenge = challenge.to_owned();
    server.script("/file", move |_| {
        Reply::status(status).header("WWW-Authenticate", &challenge)
    });
    let elsewhere = server.url_by_name("/file");
    server.script("/moved", move |_| Reply::redirect(302, &elsewhere));
    let work = Workdir::new();
    fs::write(work.join("netrc"), netrc).expect("written");
    let url = |arg: &&str| match arg.split_once('/') {
        Some((user, path)) => server
            .url(&format!("/{path}"))
            .replace("http://", &format!("http://{user}")),
        None => (*arg).to_owned(),
    };
    let args: Vec<String> = args.iter().map(url).collect();
    let outcome = work.get().args(&args).env("NETRC", "netrc").run();
    outcome.expect_code(1);
    assert!(!outcome.stderr.contains("wr0ng"), "{outcome}");
    outcome.stderr
}

#[test]
fn a_refusal_says_what_was_refused_and_where_it_was_given() {
    const ENTRY: &str = "machine 127.0.0.1 login me password wr0ng";
    const BASIC: &str = "Basic realm=x";
    for (status, challenge, netrc, args, said) in [
        (
            401,
            BASIC,
            "",
            &["-u", "me:wr0ng", "/file"][..],
            "refused the user name and password of -u",
        ),
        (
            401,
            BASIC,
            "",
            &["me:wr0ng@/file"],
            "refused the user name and password in the URL",
        ),
        (
            401,
            BASIC,
            ENTRY,
            &["-n", "/file"],
            "refused the user name and password in netrc",
        ),
        (
            401,
            BASIC,
            "machine h login me password wr0ng",
            &["-n", "/file"],
            "netrc has no entry for 127.0.0.1",
        ),
        (
            401,
            BASIC,
            "machine 127.0.0.1\n login me\n passwor wr0ng",
            &["-n", "/file"],
            "netrc cannot be used for 127.0.0.1: it has an unknown word in line 3, and no password",
        ),
        (
            401,
            "Bearer",
            "",
            &["-H", "Authorization: Bearer wr0ng", "/file"],
            "refused the header Authorization of -H",
        ),
        (
            401,
            "Bearer",
            "",
            &["-u", "me:wr0ng", "/file"],
            "of -u or FAIRBAT_USER; this server wants a token",
        ),
        (
            403,
            BASIC,
            "",
            &["-u", "me:wr0ng", "/file"],
            "the user name and password of -u or FAIRBAT_USER did not give it",
        ),
        (
            403,
            BASIC,
            "",
            &["/file"],
            "credentials go with -u, -n or -H",
        ),
    ] {
        let stderr = refused(status, challenge, netrc, args);
        assert!(stderr.contains(said), "{args:?}: {stderr}");
    }
}

#[test]
fn a_refusal_behind_a_redirect_names_the_host_that_refused() {
    for status in [401, 403] {
        let stderr = refused(status, "Basic realm=x", "", &["-u", "me:wr0ng", "/moved"]);
        let answered = format!(" answered {status}");
        let (before, _) = stderr.split_once(&answered).expect(&stderr);
        let server = before.rsplit(' ').next().expect("a word");
        assert!(server.starts_with("localhost:"), "{stderr}");
        let named = server.replace("localhost", "127.0.0.1");
        let reason =
            format!("{named} redirected to {server}, and credentials are sent to {named} only");
        assert!(stderr.contains(&reason), "{stderr}");
    }
}
