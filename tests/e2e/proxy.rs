//! Proxies from the environment, as every other tool takes them.

use fairbat_tests::content::Content;
use fairbat_tests::fault::FaultServer;
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::proxy::ForwardProxy;
use fairbat_tests::tls::Identity;
use fairbat_tests::version::Version;
use fairbat_tests::workdir::Workdir;

const FILE: Content = Content::new(80, 300_000);

fn serve() -> FaultServer {
    let server = FaultServer::start();
    server.serve("/file", Version::new(&FILE));
    server
}

#[test]
fn the_proxy_of_the_environment_is_used_for_http() {
    for name in ["http_proxy", "ALL_PROXY", "all_proxy"] {
        let (server, proxy) = (serve(), ForwardProxy::start());
        let work = Workdir::new();
        work.get()
            .args(["--chunk-size", "64K"])
            .env(name, proxy.url())
            .arg(server.url("/file"))
            .run()
            .expect_code(0);
        work.assert_holds(&[("file", &FILE)]);
        let asked = proxy.requests();
        assert!(!asked.is_empty(), "{name} was not used");
        assert_eq!(asked.len(), server.requests().len(), "{name} was bypassed");
        assert_eq!(asked[0].target, server.url("/file"));
    }
}

#[test]
fn the_proxy_of_the_environment_tunnels_https() {
    let keys = Workdir::new();
    let identity = Identity::issue(keys.path(), &["localhost", "127.0.0.1"], 2099);
    let nginx = Nginx::start(&Config {
        tls: Some(identity.clone()),
        ..Config::default()
    });
    nginx.put("file", &FILE);
    for name in ["https_proxy", "HTTPS_PROXY"] {
        let proxy = ForwardProxy::start();
        let work = Workdir::new();
        work.get()
            .arg("--cacert")
            .arg(&identity.authority)
            .env(name, proxy.url())
            .arg(nginx.url("file"))
            .run()
            .expect_code(0);
        work.assert_holds(&[("file", &FILE)]);
        let asked = proxy.requests();
        assert!(!asked.is_empty(), "{name} was not used");
        assert!(asked.iter().all(|request| request.method == "CONNECT"));
    }
}

#[test]
fn no_proxy_makes_exceptions() {
    for (name, hosts) in [
        ("NO_PROXY", "localhost"),
        ("no_proxy", "example.com,localhost"),
        ("NO_PROXY", "*"),
    ] {
        let (server, proxy) = (serve(), ForwardProxy::start());
        let work = Workdir::new();
        work.get()
            .env("http_proxy", proxy.url())
            .env(name, hosts)
            .arg(server.url_by_name("/file"))
            .run()
            .expect_code(0);
        work.assert_holds(&[("file", &FILE)]);
        assert!(proxy.requests().is_empty(), "{name}={hosts}");
    }
    let (server, proxy) = (serve(), ForwardProxy::start());
    let work = Workdir::new();
    work.get()
        .env("http_proxy", proxy.url())
        .env("NO_PROXY", "127.0.0.0/8")
        .arg(server.url("/file"))
        .run()
        .expect_code(0);
    assert!(proxy.requests().is_empty(), "an address range");
}

#[test]
fn a_proxy_that_is_not_there_is_a_temporary_error() {
    let server = serve();
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(["--retry", "1"])
        .env("http_proxy", "http://127.77.77.77:1")
        .arg(server.url("/file"))
        .run();
    outcome.expect_code(5);
    work.assert_holds(&[]);
    assert!(server.requests().is_empty(), "the proxy was bypassed");
}
