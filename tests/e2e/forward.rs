//! `fairbat proxy`: standard clients go through it unmodified, nobody else may, and what it
//! connects is held.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use dalbe::process::ForeignProcess;
use fairbat_tests::bin::{Fairbat, Running};
use fairbat_tests::content::Content;
use fairbat_tests::metrics::metric;
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::poll::wait_for;
use fairbat_tests::secret::write_secret;
use fairbat_tests::ss::connections;
use fairbat_tests::tls::Identity;
use fairbat_tests::workdir::Workdir;

const FILE: Content = Content::new(13, 3_000_000);

/// One host has a deadline, and another one weighs more.
const RULES: &str = "\
[[rule]]
name = \"nightly\"
host = \"localhost\"
deadline = \"00:00\"
bytes = \"1T\"

[[rule]]
name = \"heavy\"
client = \"127.0.0.0/8\"
port = 1
weight = 0.5
";

/// A proxy at work.
struct Proxy {
    running: Running,
    address: SocketAddr,
    work: Workdir,
}

impl Proxy {
    fn start(flags: &[&str]) -> Self {
        let work = Workdir::new();
        write_secret(&work.join("token"), "s3cret");
        std::fs::write(work.join("rules.toml"), RULES).expect("write the rules");
        let running = Fairbat::new(work.path())
            .args([
                "proxy",
                "--json",
                "--listen",
                "127.0.0.1:0",
                "--include-local",
            ])
            .args(flags)
            .timeout(Duration::from_secs(120))
            .spawn();
        let address = wait_for("the proxy", Duration::from_secs(20), || {
            let events = running.events();
            events.first()?["address"].as_str()?.parse().ok()
        });
        Self {
            running,
            address,
            work,
        }
    }

    fn curl(&self, proxy: &str, args: &[&str]) -> Output {
        Command::new("curl")
            .args(["-sS", "--max-time", "30", "--noproxy", "", "-x"])
            .arg(format!("{proxy}{}", self.address))
            .args(args)
            .output()
            .expect("start curl")
    }

    /// How many connections it holds now, by the locks on their receive buffers.
    fn held(&self) -> usize {
        let process = ForeignProcess::open(self.running.id().cast_signed()).expect("it runs");
        let sockets = process.sockets().expect("its own user's").into_iter();
        let held = sockets.filter(|(descriptor, _)| {
            let socket = process.socket(*descriptor).ok();
            let socket = socket.filter(|socket| socket.peer_addr().is_ok());
            socket.is_some_and(|socket| socket.receiver().holds_receive_buffer().unwrap_or(false))
        });
        held.count()
    }
}

/// Reads the head of a request; false at the end of the connection.
fn read_head(stream: &mut TcpStream) -> bool {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return false,
        }
    }
    true
}

#[test]
fn requests_of_a_client_to_a_server_share_a_connection_until_it_is_closed() {
    let proxy = Proxy::start(&[]);
    let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let server = thread::spawn(move || {
        let serve = || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut requests = 0;
            // The server closes it after two.
            while requests < 2 && read_head(&mut stream) {
                let response = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
                stream.write_all(response).expect("answer");
                requests += 1;
            }
            requests
        };
        [serve(), serve()]
    });
    let output = Command::new("curl")
        .args(["-sS", "-f", "--max-time", "60", "--noproxy", "", "-x"])
        .arg(format!("http://{}", proxy.address))
        .args([&url, &url, &url])
        .output()
        .expect("start curl");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "okokok");
    assert_eq!(server.join().expect("the server"), [2, 1]);
}

#[test]
fn a_rule_raises_the_weight_for_its_hosts_and_metrics_tell() {
    let proxy = Proxy::start(&["--rules", "rules.toml"]);
    let nginx = Nginx::with_file(&FILE, |config: &mut Config| {
        config.limit_rate = Some(300_000);
    });
    let metrics = || {
        let url = format!("http://{}/metrics", proxy.address);
        let output = Command::new("curl")
            .args(["-sS", "-f", "--noproxy", "*", &url])
            .output()
            .expect("start curl");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let weight = |text: &str| metric(text, "fairbat_proxy_weight", "");
    // Rules for which nobody has come raise nothing.
    let idle = wait_for("a sample", Duration::from_secs(10), || weight(&metrics()));
    assert!(idle < 0.1, "{idle}");
    let by_name = nginx.url("file").replace("127.0.0.1", "localhost");
    let mut clients: Vec<_> = [nginx.url("file"), by_name]
        .iter()
        .map(|url| {
            Command::new("curl")
                .args(["-sS", "-o", "/dev/null", "--noproxy", "", "-x"])
                .arg(format!("http://{}", proxy.address))
                .arg(url)
                .spawn()
                .expect("start curl")
        })
        .collect();
    let of = |text: &str, name, rule| {
        let name = format!("fairbat_proxy_{name}");
        metric(text, &name, &format!("rule=\"{rule}\""))
    };
    wait_for("one connection for each", Duration::from_secs(10), || {
        let text = metrics();
        let one = |rule| of(&text, "connections", rule) == Some(1.0);
        (one("(others)") && one("nightly")).then_some(())
    });
    wait_for("a terabyte by midnight", Duration::from_secs(10), || {
        (weight(&metrics()) > Some(0.9)).then_some(())
    });
    for client in &mut clients {
        let _ = (client.kill(), client.wait());
    }
    let text = metrics();
    let pulled = |rule: &str| {
        let label = format!("rule=\"{rule}\",direction=\"pull\"");
        metric(&text, "fairbat_proxy_bytes_total", &label)
    };
    assert!(
        pulled("nightly") > Some(0.0) && pulled("(others)") > Some(0.0),
        "{text}"
    );
    assert_eq!(pulled("heavy"), Some(0.0), "{text}");
    assert!(of(&text, "deadline_timestamp_seconds", "nightly").is_some());
    for name in fairbat::proxy::NAMES {
        assert!(text.contains(&format!("# HELP {name} ")), "{name}: {text}");
    }
}

#[test]
fn metrics_tell_who_was_refused_and_are_for_those_who_may_use_the_proxy() {
    let proxy = Proxy::start(&["--token-file", "token"]);
    let get = |args: &[&str]| {
        let url = format!("http://{}/metrics", proxy.address);
        let curl = Command::new("curl")
            .args(["-sS", "-f", "--noproxy", "*"])
            .args(args)
            .arg(url)
            .output();
        curl.expect("start curl")
    };
    assert_eq!(code(&get(&[])), Some(22), "without the token");
    let token = ["-H", "Authorization: Bearer s3cret"];
    let foreign = [&token[..], &["-H", "Host: evil.example"]].concat();
    assert_eq!(code(&get(&foreign)), Some(22), "by a foreign name");
    let output = get(&token);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let refused = metric(&text, "fairbat_proxy_refused_total", "reason=\"token\"");
    assert_eq!(refused, Some(1.0), "{text}");
}

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

#[test]
fn plain_http_tunnels_and_socks_bring_the_file() {
    let proxy = Proxy::start(&[]);
    let directory = tempfile::tempdir().expect("a directory");
    let identity = Identity::issue(directory.path(), &["localhost", "127.0.0.1"], 2099);
    let authority = identity.authority.to_str().expect("UTF-8").to_owned();
    let plain = Nginx::with_file(&FILE, |_: &mut Config| {});
    let secret = Nginx::with_file(&FILE, |config: &mut Config| config.tls = Some(identity));
    for (kind, url) in [
        ("http://", plain.url("file")),
        ("http://", secret.url_by_name("file")),
        ("socks5://", plain.url("file")),
        ("socks5h://", secret.url_by_name("file")),
    ] {
        let output = proxy.curl(kind, &["--cacert", &authority, &url]);
        assert!(
            output.stdout == FILE.all(),
            "{kind} {url}: {:?}",
            output.stderr
        );
    }
    // A request with a body, and one that wants a part.
    let part = proxy.curl("http://", &["-r", "5-9", &plain.url("file")]);
    assert!(part.stdout == FILE.bytes(5..10), "{part:?}");
    let missing = proxy.curl("http://", &["-f", &plain.url("missing")]);
    assert_eq!(code(&missing), Some(22), "{missing:?}");
}

#[test]
fn what_it_connects_is_held_and_counts_as_one() {
    let proxy = Proxy::start(&[]);
    let nginx = Nginx::with_file(&FILE, |config: &mut Config| {
        config.limit_rate = Some(300_000);
    });
    let mut clients: Vec<_> = ["http://", "socks5://", "http://"]
        .into_iter()
        .map(|kind| {
            Command::new("curl")
                .args(["-sS", "-o", "/dev/null", "--noproxy", "", "-x"])
                .arg(format!("{kind}{}", proxy.address))
                .arg(nginx.url("file"))
                .spawn()
                .expect("start curl")
        })
        .collect();
    wait_for(
        "three connections to be held",
        Duration::from_secs(10),
        || (proxy.held() == 3).then_some(()),
    );
    // With coarser steps, a window of less than a segment would let one through after all. They
    // would be coarser where tcp_rmem allows buffers of more than 8 MB, as here by default.
    let lines = connections(nginx.address().port());
    assert_eq!(lines.lines().count(), 3, "{lines}");
    for line in lines.lines() {
        let scales = line.split(" wscale:").nth(1).expect("a window scale");
        let own = scales.split([',', ' ']).nth(1).expect("two of them");
        assert!(own.parse::<u8>().expect("a number") <= 7, "{line}");
    }
    for client in &mut clients {
        let _ = (client.kill(), client.wait());
    }
}

#[test]
fn without_the_token_nobody_passes() {
    let proxy = Proxy::start(&["--token-file", "token"]);
    let nginx = Nginx::with_file(&FILE, |_: &mut Config| {});
    let url = nginx.url("file");
    for kind in [
        "http://",
        "socks5://",
        "http://me:wrong@",
        "socks5://me:wrong@",
    ] {
        let output = proxy.curl(kind, &["-f", &url]);
        assert!(
            !output.status.success() && output.stdout.is_empty(),
            "{kind}"
        );
    }
    let refused = proxy.curl("http://", &["-o", "/dev/null", "-w", "%{http_code}", &url]);
    assert_eq!(refused.stdout, b"407");
    for kind in ["http://me:s3cret@", "socks5://anybody:s3cret@"] {
        let output = proxy.curl(kind, &["-f", &url]);
        assert!(output.stdout == FILE.all(), "{kind}: {:?}", output.stderr);
    }
    assert_eq!(nginx.settled_accesses().len(), 2);
}

#[test]
fn what_cannot_be_reached_has_an_answer() {
    let proxy = Proxy::start(&["--connect-timeout", "1s"]);
    let status = |args: &[&str]| {
        let args = [&["-o", "/dev/null", "-w", "%{http_code}"], args].concat();
        String::from_utf8(proxy.curl("http://", &args).stdout).expect("a number")
    };
    assert_eq!(status(&["http://127.0.0.1:1/"]), "502");
    assert_eq!(status(&["http://no-such-host.invalid/"]), "502");
    let tunnel = proxy.curl("http://", &["https://127.0.0.1:1/"]);
    assert_eq!(code(&tunnel), Some(56), "{tunnel:?}");
    let socks = proxy.curl("socks5://", &["http://127.0.0.1:1/"]);
    assert_eq!(code(&socks), Some(97), "{socks:?}");
    assert!(asked(proxy.address, b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").contains(" 400 "));
    assert_eq!(
        asked(
            proxy.address,
            b"\x05\x01\x00\x05\x02\x00\x01\x7f\x00\x00\x01\x00\x01"
        ),
        "\u{5}\0\u{5}\u{7}\0\u{1}\0\0\0\0\0\0"
    );
}

/// What it answers to these bytes.
fn asked(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).expect("connect");
    let patience = Some(Duration::from_secs(2));
    stream.set_read_timeout(patience).expect("a socket");
    stream.write_all(bytes).expect("send");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn other_programs_go_through_it_unmodified() {
    let proxy = Proxy::start(&[]);
    let directory = tempfile::tempdir().expect("a directory");
    let identity = Identity::issue(directory.path(), &["localhost", "127.0.0.1"], 2099);
    let authority = identity.authority.to_str().expect("UTF-8").to_owned();
    let nginx = Nginx::with_file(&FILE, |_: &mut Config| {});
    let secret = Nginx::with_file(&FILE, |config: &mut Config| config.tls = Some(identity));
    let (url, tunnel) = (nginx.url("file"), secret.url_by_name("file"));
    let python =
        "import sys, urllib.request as u; sys.stdout.buffer.write(u.urlopen(sys.argv[1]).read())";
    let trusted = format!("--ca-certificate={authority}");
    for command in [
        &["wget", "-q", "-O", "-", &url][..],
        &["wget", "-q", "-O", "-", &trusted, &tunnel],
        &["python3", "-c", python, &url],
        &["python3", "-c", python, &tunnel],
    ] {
        let output = Command::new(command[0])
            .args(&command[1..])
            .current_dir(proxy.work.path())
            .env("http_proxy", format!("http://{}", proxy.address))
            .env("HTTP_PROXY", format!("http://{}", proxy.address))
            .env("https_proxy", format!("http://{}", proxy.address))
            .env("SSL_CERT_FILE", &authority)
            .env("no_proxy", "")
            .env("NO_PROXY", "")
            .output()
            .expect("start a client");
        assert!(
            output.stdout == FILE.all(),
            "{command:?}: {:?}",
            output.stderr
        );
    }
}

#[test]
fn a_signal_ends_it() {
    let mut proxy = Proxy::start(&[]);
    proxy.running.signal("TERM");
    proxy.running.wait().expect_code(0);
}

#[test]
fn wrong_flags_are_usage_errors_and_a_taken_port_is_told() {
    let work = Workdir::new();
    let run = |flags: &[&str]| Fairbat::new(work.path()).arg("proxy").args(flags).run();
    run(&["--allow", "10.0.0.0/33"])
        .expect_code(2)
        .expect_said(&["192.168.0.0/16"]);
    run(&["--listen", "here"]).expect_code(2);
    run(&["--rules", "none"])
        .expect_code(2)
        .expect_said(&["none"]);
    run(&["--token-file", "none"]).expect_said(&["token"]);
    let proxy = Proxy::start(&[]);
    let address = proxy.address.to_string();
    run(&["--listen", &address])
        .expect_code(1)
        .expect_said(&["cannot listen"]);
}
