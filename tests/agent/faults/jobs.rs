//! Jobs of one agent, as it runs: one that fails is no concern of another, and
//! credentials are those that are in their file when a run begins.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fairbat_tests::bin::{Fairbat, agent_binary};
use fairbat_tests::poll::wait_until;
use fairbat_tests::stores::{Dav, DavKind, Fault, FaultProxy, Requests, S3, S3Kind};
use socket2::{Domain, Socket, Type};
use tempfile::TempDir;

use super::{busy, refusal};
use crate::round_trip::dir;
use crate::service::Place;

/// More than anything here takes.
const SOON: Duration = Duration::from_secs(60);

/// The agent's process; killed when dropped.
struct Running {
    process: Child,
    work: TempDir,
}

impl Running {
    /// Runs it with this configuration below that of its own places.
    fn start(work: TempDir, config: &str) -> Self {
        let path = |name: &str| work.path().join(name);
        let own = format!(
            "[agent]\nstate = {:?}\nsocket = {:?}\nlisten = false\n",
            path("state"),
            path("socket")
        );
        fs::write(path("agent.toml"), own + config).expect("write a configuration");
        let log = fs::File::create(path("log")).expect("make a log");
        let process = Command::new(agent_binary())
            .args(["run", "--config"])
            .arg(path("agent.toml"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("start the agent");
        Self { process, work }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.work.path().join("log")).expect("read a log")
    }

    /// Waits until it says this, so often.
    fn wait_for(&self, text: &str, times: usize) {
        wait_until(&format!("{text:?}"), SOON, || {
            self.log().matches(text).count() >= times
        });
    }

    fn has_done(&self, job: &str) -> bool {
        self.log().contains(&format!("done task=\"{job}\""))
    }

    /// Tells it to run a job now.
    fn order(&self, job: &str) {
        let ordered = Fairbat::new(Path::new("/"))
            .args(["start", job])
            .env("FAIRBAT_SOCKET", self.work.path().join("socket"))
            .run();
        assert_eq!(ordered.code, Some(0), "{ordered:?}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A file in a directory of its own.
fn source(size: usize) -> TempDir {
    let source = dir();
    fs::write(source.path().join("file"), vec![7; size]).expect("write a file");
    source
}

fn job(name: &str, source: &Path, destination: &str) -> String {
    format!(
        "[[jobs]]\nname = {name:?}\nsource = {source:?}\ndestination = {destination:?}\n\
         every = \"1h\"\n"
    )
}

/// A file with credentials that nobody else may read.
fn keep(path: &Path, text: &str) {
    fs::write(path, text).expect("write credentials");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("set a mode");
}

fn s3(name: &str, server: &S3, proxy: &FaultProxy, credentials: &Path) -> String {
    format!(
        "[stores.{name}]\ntype = \"s3\"\nendpoint = {:?}\nregion = {:?}\nbucket = {:?}\n\
         prefix = \"hosts/alpha\"\ncredentials = {credentials:?}\n",
        proxy.url(),
        server.region(),
        server.bucket()
    )
}

#[test]
fn while_one_job_fails_another_goes_on_and_ends() {
    let work = dir();
    let server = S3::start(S3Kind::S3sFs);
    let proxies = [(); 4].map(|()| FaultProxy::start(server.address()));
    let [good, slow, dead, full] = &proxies;
    let puts = || Requests::of("PUT");
    slow.on(puts(), busy(refusal(503, "SlowDown"), 1));
    dead.on(puts(), Fault::CutRequest(1_000_000));
    full.on(puts(), Fault::Answer(refusal(507, "XMinioStorageFull")));
    let credentials = work.path().join("credentials");
    keep(
        &credentials,
        &format!(
            "access_key_id = {}\nsecret_access_key = {}\n",
            server.access_key(),
            server.secret_key()
        ),
    );
    let names = ["good", "slow", "dead", "full"];
    let sources = names.map(|_| source(12_000_000));
    // All stores first, then the jobs, of which the good one is the last.
    let mut config = String::new();
    for (name, proxy) in names.iter().zip(&proxies) {
        config += &s3(name, &server, proxy, &credentials);
    }
    for (name, source) in names.iter().zip(&sources).rev() {
        config += &job(name, source.path(), &format!("{name}:{name}"));
    }
    let agent = Running::start(work, &config);

    agent.wait_for("done task=\"good\"", 1);
    agent.wait_for("make room in the store", 1);
    for name in ["slow", "dead", "full"] {
        assert!(!agent.has_done(name), "{name}: {}", agent.log());
    }
    assert!(good.count("PUT") > 0);
    wait_until("slow", SOON, || slow.count("PUT") > 0);
    // What only had to wait ends by itself, the other when it is told to.
    for proxy in &proxies {
        proxy.heal();
    }
    agent.order("full");
    for name in ["slow", "dead", "full"] {
        agent.wait_for(&format!("done task={name:?}"), 1);
    }
    assert!(!agent.log().contains(server.secret_key()), "no secrets");
}

#[test]
fn credentials_that_were_renewed_in_their_file_count_for_the_next_run() {
    let work = dir();
    let credentials = work.path().join("credentials");
    let keys = |id: &str| {
        let text = format!(
            "access_key_id = {id}\nsecret_access_key = secret-of-{id}\nsession_token = t\n"
        );
        keep(&credentials, &text);
    };
    keys("OLDKEY");
    let server = S3::start(S3Kind::Moto);
    let proxy = FaultProxy::start(server.address());
    let by_old = Requests::all().saying("authorization", "OLDKEY");
    proxy.on(by_old, Fault::Answer(refusal(400, "ExpiredToken")));
    let source = source(100_000);
    let config = s3("s3", &server, &proxy, &credentials) + &job("home", source.path(), "s3:home");
    let agent = Running::start(work, &config);

    agent.wait_for("renew the credentials", 1);
    agent.order("home");
    agent.wait_for("renew the credentials", 2);
    assert!(!agent.has_done("home"));
    keys("NEWKEY");
    agent.order("home");
    agent.wait_for("done task=\"home\"", 1);
    let log = agent.log();
    assert!(!log.contains("secret-of-"), "no secrets: {log}");
}

#[test]
fn a_password_that_was_renewed_in_its_file_counts_for_the_next_run() {
    let work = dir();
    let credentials = work.path().join("credentials");
    let server = Dav::start(DavKind::Wsgidav);
    let login = |password: &str| {
        let text = format!("user = {}\npassword = {password}\n", server.user());
        keep(&credentials, &text);
    };
    login("expired-4711");
    let source = source(100_000);
    let config = format!(
        "[stores.nas]\ntype = \"webdav\"\nurl = {:?}\ncredentials = {credentials:?}\n",
        server.url()
    ) + &job("home", source.path(), "nas:home");
    let agent = Running::start(work, &config);

    agent.wait_for("check the credentials of this store", 1);
    login(server.password());
    agent.order("home");
    agent.wait_for("done task=\"home\"", 1);
    let stored = fs::read(server.root().join("home/file")).expect("read what is stored");
    assert!(stored == vec![7; 100_000]);
    let log = agent.log();
    assert!(
        !log.contains("expired-4711") && !log.contains(server.password()),
        "{log}"
    );
}

#[test]
fn a_job_whose_store_cannot_be_reached_says_why_and_when_it_tries_again() {
    let (place, source) = (Place::new(), source(1000));
    // Nobody listens there.
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let free = SocketAddr::from(([127, 0, 0, 1], 0));
    socket.bind(&free.into()).expect("a free port");
    let server = socket.local_addr().expect("an address");
    let server = server.as_socket().expect("an address of IP");
    let store = format!("[stores.away]\ntype = \"fairbat\"\nurl = \"http://{server}/\"\n");
    let job = job("remote", source.path(), "away:remote").replace("every", "# every");
    place.configure("", &(store + &job));
    let service = place.start();
    let waiting = Fairbat::new(Path::new("/"))
        .args(["start", "remote", "--wait"])
        .env("FAIRBAT_SOCKET", place.join("socket"))
        .spawn();
    let task = service.wait_for_task("a reason and a next try", "remote", |task| {
        task["phase"] == "retrying" && task["retry"]["problem"].is_string()
    });
    assert!(task["next"].is_string(), "{task:#}");
    let problem = task["retry"]["problem"].as_str().expect("a text");
    assert!(problem.contains("refused"), "{task:#}");
    assert_eq!(
        task["retry"]["summary"],
        "the network or the name service failed"
    );
    wait_until("the same for people", SOON, || {
        let told = service.order(&["status", "remote"]);
        told.contains("retrying in ") && told.contains(&format!("remote: {problem}"))
    });
    // Some tries later: more than a second lies between the last ones.
    service.wait_for_task("five tries", "remote", |task| {
        task["totals"]["retries"]["network"].as_u64() > Some(4)
    });
    service.order(&["cancel", "remote"]);
    let outcome = waiting.wait();
    let told = outcome
        .stderr
        .lines()
        .filter(|line| line.starts_with("remote: retrying in ") && line.contains(problem));
    assert!(told.count() > 1, "{outcome}");
}
