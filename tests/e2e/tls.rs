//! HTTPS: only servers that can prove who they are.

use std::path::Path;

use fairbat_tests::content::Content;
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::tls::Identity;
use fairbat_tests::workdir::Workdir;

const FILE: Content = Content::new(10, 3_000_000);

fn serve(identity: &Identity) -> Nginx {
    let nginx = Nginx::start(&Config {
        tls: Some(identity.clone()),
        ..Config::default()
    });
    nginx.put("file", &FILE);
    nginx
}

#[test]
fn a_server_of_a_given_authority_serves_exactly() {
    let keys = Workdir::new();
    let identity = Identity::issue(keys.path(), &["localhost", "127.0.0.1"], 2099);
    let nginx = serve(&identity);
    for url in [nginx.url("file"), nginx.url_by_name("file")] {
        for split in ["1", "3"] {
            let work = Workdir::new();
            work.get()
                .args(["--chunk-size", "256K", "-s", split])
                .arg("--cacert")
                .arg(&identity.authority)
                .arg(&url)
                .run()
                .expect_code(0);
            work.assert_holds(&[("file", &FILE)]);
        }
    }
}

/// Runs that must be refused for the certificate: at once, saying so, with
/// nothing fetched. Returns the hint.
fn assert_refused(nginx: &Nginx, url: &str, authority: Option<&Identity>) -> String {
    let work = Workdir::new();
    let mut get = work.get();
    if let Some(identity) = authority {
        get = get.arg("--cacert").arg(&identity.authority);
    }
    let outcome = get.arg(url).run();
    outcome.expect_code(1).expect_said(&["certificate"]);
    let error = outcome.event("error");
    assert!(error["hint"] != "", "no hint: {outcome}");
    assert!(
        outcome.events_named("retry").is_empty(),
        "asking again does not help: {outcome}"
    );
    work.assert_holds(&[]);
    assert_eq!(nginx.settled_accesses(), []);
    error["hint"].as_str().expect("a text").to_owned()
}

#[test]
fn a_server_of_an_unknown_authority_is_refused() {
    let (keys, others) = (Workdir::new(), Workdir::new());
    let identity = Identity::issue(keys.path(), &["localhost", "127.0.0.1"], 2099);
    let other = Identity::issue(others.path(), &["localhost", "127.0.0.1"], 2099);
    let nginx = serve(&identity);
    let hint = assert_refused(&nginx, &nginx.url("file"), None);
    assert!(
        hint.contains("self-signed") && hint.contains("--cacert"),
        "{hint}"
    );
    let hint = assert_refused(&nginx, &nginx.url("file"), Some(&other));
    assert!(
        hint.contains("signed it") && !hint.contains("--cacert"),
        "{hint}"
    );
}

#[test]
fn a_certificate_for_another_name_is_refused() {
    let keys = Workdir::new();
    let identity = Identity::issue(keys.path(), &["other.example"], 2099);
    let nginx = serve(&identity);
    let hint = assert_refused(&nginx, &nginx.url_by_name("file"), Some(&identity));
    assert!(
        hint.contains("name") && !hint.contains("--cacert"),
        "{hint}"
    );
}

#[test]
fn an_expired_certificate_is_refused() {
    let keys = Workdir::new();
    let identity = Identity::issue(keys.path(), &["localhost", "127.0.0.1"], 2001);
    let nginx = serve(&identity);
    let hint = assert_refused(&nginx, &nginx.url("file"), Some(&identity));
    assert!(hint.contains("new certificate"), "{hint}");
}

#[test]
fn a_certificate_that_signed_itself_is_trusted_when_named_unless_made_as_an_authority() {
    let keys = Workdir::new();
    let identity = Identity::self_signed(keys.path(), false);
    let nginx = serve(&identity);
    let hint = assert_refused(&nginx, &nginx.url("file"), None);
    assert!(
        hint.contains("self-signed") && hint.contains("--cacert"),
        "{hint}"
    );
    let work = Workdir::new();
    let get = work.get().arg("--cacert").arg(&identity.authority);
    get.arg(nginx.url("file")).run().expect_code(0);

    let keys = Workdir::new();
    let identity = Identity::self_signed(keys.path(), true);
    let nginx = serve(&identity);
    for authority in [None, Some(&identity)] {
        let hint = assert_refused(&nginx, &nginx.url("file"), authority);
        assert!(
            hint.contains("basicConstraints=critical,CA:FALSE"),
            "{hint}"
        );
        assert!(!hint.contains("--cacert"), "{hint}");
    }
}

#[test]
fn an_authority_file_that_is_missing_or_empty_is_a_clear_error() {
    let keys = Workdir::new();
    let identity = Identity::issue(keys.path(), &["localhost", "127.0.0.1"], 2099);
    let nginx = serve(&identity);
    std::fs::write(keys.join("empty.pem"), "").expect("written");
    for name in ["missing.pem", "empty.pem"] {
        let work = Workdir::new();
        let outcome = work
            .get()
            .arg("--cacert")
            .arg(keys.join(name))
            .arg(nginx.url("file"))
            .run();
        outcome.expect_code_in(&[1, 2]).expect_said(&[name]);
        work.assert_holds(&[]);
    }
}

#[test]
fn the_authorities_of_the_system_count_for_https_and_are_not_missed_for_http() {
    let keys = Workdir::new();
    let identity = Identity::issue(keys.path(), &["localhost", "127.0.0.1"], 2099);
    let plain = Nginx::start(&Config::default());
    plain.put("file", &FILE);
    let secure = serve(&identity);
    let get = |url: &str, authorities: &Path| {
        let work = Workdir::new();
        // OpenSSL's variable for the authorities of the system.
        let get = work.get().env("SSL_CERT_FILE", authorities);
        (get.arg(url).run(), work)
    };
    let (outcome, work) = get(&secure.url("file"), &identity.authority);
    outcome.expect_code(0);
    work.assert_holds(&[("file", &FILE)]);

    let none = keys.join("none.pem");
    std::fs::write(&none, "").expect("written");
    let (outcome, work) = get(&plain.url("file"), &none);
    outcome.expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
    let (outcome, work) = get(&secure.url("file"), &none);
    outcome.expect_code(1).expect_said(&["ca-certificates"]);
    assert!(outcome.events_named("retry").is_empty(), "{outcome}");
    work.assert_holds(&[]);
}
