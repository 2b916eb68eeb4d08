//! Who may do what with the agent: what belongs to it is not written, restoring can be
//! left to a group, and no user locks out the others.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Output};

use fairbat_tests::bin::{agent_binary, fairbat_for_all};
use fairbat_tests::content::Content;
use fairbat_tests::fault::FaultServer;
use fairbat_tests::message::Reply;
use fairbat_tests::netns::skipped;
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::poll::wait_for;
use fairbat_tests::port::Port;
use serde_json::Value;

use crate::round_trip::dir;
use crate::service::{Place, SOON, Service};

/// A user and a group that own nothing.
const NOBODY: u32 = 65_534;

/// The number of `daemon` on every Linux (LSB).
const DAEMON: u32 = 1;

/// A store on the disk with credentials of another one beside it, and a job.
fn stores(place: &Place, source: &Path) -> String {
    let (disk, credentials) = (place.join("disk"), place.join("credentials"));
    fs::create_dir(&disk).expect("make a directory");
    fs::write(&credentials, "token = x").expect("write a file");
    let mode = fs::Permissions::from_mode(0o600);
    fs::set_permissions(&credentials, mode).expect("our own");
    format!(
        "[stores.disk]\ntype = \"local\"\npath = {disk:?}\n[stores.nas]\ntype = \"webdav\"\n\
         url = \"http://127.0.0.1:1/\"\ncredentials = {credentials:?}\n[[jobs]]\n\
         name = \"home\"\nsource = {source:?}\ndestination = \"disk:home\"\n"
    )
}

#[test]
fn what_belongs_to_the_agent_is_neither_written_nor_sent() {
    let nginx = Nginx::start(&Config::default());
    nginx.put("file", &Content::new(7, 1_000));
    let (source, elsewhere) = (dir(), dir());
    fs::write(source.path().join("f"), "x").expect("write a file");
    let place = Place::new();
    let jobs = stores(&place, source.path());
    let state = place.join("state");
    let secret = format!(
        "[[jobs]]\nname = \"secret\"\nsource = {state:?}\ndestination = \"disk:secret\"\n\
         [[jobs]]\nname = \"into\"\ndirection = \"pull\"\nsource = \"disk:home\"\n\
         destination = {:?}\n",
        state.join("pulled")
    );
    place.configure("", &format!("{jobs}{secret}"));
    let service = place.start();
    service.order(&["start", "home", "--wait"]);
    symlink(&state, elsewhere.path().join("link")).expect("a link");

    let shown = |path: &Path| path.display().to_string();
    for path in [
        state.join("agent.redb"),
        state.join("../state/new"),
        state.join("not/../there/yet"),
        elsewhere.path().join("link/agent.redb"),
        place.join("disk/home/f"),
        place.join("credentials"),
        place.join("socket"),
        place.join("agent.toml"),
    ] {
        let refused = service.fairbat(&["add", "-o", &shown(&path), &nginx.url("file")]);
        refused.expect_code(1).expect_said(&["of the agent"]);
    }
    for path in [
        state.clone(),
        elsewhere.path().join("link"),
        place.join("disk"),
    ] {
        let refused = service.fairbat(&["add", "-d", &shown(&path), &nginx.url("file")]);
        refused.expect_code(1).expect_said(&["of the agent"]);
        let to = shown(&path.join("restored"));
        let refused = service.fairbat(&["restore", "home", "--to", &to]);
        refused.expect_code(1).expect_said(&["of the agent"]);
    }
    for job in ["secret", "into"] {
        let ended = service.fairbat(&["start", job, "--wait"]);
        assert_ne!(ended.code, Some(0), "{ended}");
        let task = service.task(job).expect("it is there");
        let problem = task["last"]["problem"].as_str().unwrap_or_default();
        assert!(problem.contains("the state of the agent"), "{task:#}");
    }
    assert!(!state.join("pulled").exists() && !place.join("disk/secret").exists());
    let directory = elsewhere.path().join("directory");
    fs::create_dir(&directory).expect("make a directory");
    let to = format!("{}/", shown(&directory));
    let id = service.order(&["add", "-d", &to, &nginx.url("file")]);
    service.wait_for_task("done", &id, |task| task["phase"] == "done");
    assert!(directory.join("file").exists());
}

#[test]
fn a_download_that_is_refused_gets_advice_that_add_can_follow() {
    let server = FaultServer::start();
    for (path, status, challenge) in [
        ("/login", 401, "Basic realm=x"),
        ("/token", 401, "Bearer"),
        ("/secret", 403, "Basic realm=x"),
    ] {
        server.script(path, move |_| {
            Reply::status(status).header("WWW-Authenticate", challenge)
        });
    }
    let to = dir();
    let place = Place::new();
    place.configure("", "");
    let service = place.start();
    for (path, said) in [
        ("/login", "//USER:PASSWORD@HOST/"),
        ("/token", "`fairbat get`"),
        ("/secret", "//USER:PASSWORD@HOST/"),
    ] {
        let directory = to.path().display().to_string();
        let id = service.order(&["add", "-d", &directory, &server.url(path)]);
        let task = service.wait_for_task("failed", &id, |task| task["phase"] == "failed");
        let hint = task["last"]["hint"].as_str().unwrap_or_default();
        assert!(hint.contains(said), "{task:#}");
        for flag in ["-H", "-u", "-n ", "FAIRBAT_"] {
            assert!(!hint.contains(flag), "{flag}: {task:#}");
        }
    }
}

/// The command with these groups, as a user who owns nothing.
fn as_nobody(place: &Place, groups: &[&str], args: &[&str]) -> Output {
    let (_directory, command) = fairbat_for_all();
    Command::new("setpriv")
        .arg(format!("--reuid={NOBODY}"))
        .args(groups)
        .arg(&command)
        .args(args)
        .env("FAIRBAT_SOCKET", place.join("socket"))
        .output()
        .expect("start setpriv: is the package `util-linux` installed?")
}

/// Lets everybody reach the socket.
fn open_to_all(place: &Place) {
    for (path, mode) in [(place.join(""), 0o755), (place.join("socket"), 0o666)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("our own");
    }
}

#[test]
fn restoring_can_be_left_to_a_group() {
    if !rustix::process::geteuid().is_root() {
        return skipped("needs root, to be somebody else");
    }
    let (source, to) = (dir(), dir());
    fs::write(source.path().join("f"), "x").expect("write a file");
    let place = Place::new();
    let jobs = stores(&place, source.path());
    place.configure("restore_group = \"daemon\"", &jobs);
    let service = place.start();
    service.order(&["start", "home", "--wait"]);
    open_to_all(&place);
    let restore = |name: &str, groups: &[&str]| {
        let to = to.path().join(name).display().to_string();
        as_nobody(&place, groups, &["restore", "home", "--to", &to])
    };
    let (alone, nobody) = ("--clear-groups", format!("--regid={NOBODY}"));
    let refused = restore("refused", &[alone, &nobody]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("members of the group daemon"), "{said}");
    let status = as_nobody(&place, &[alone, &nobody], &["status"]);
    assert!(status.status.success(), "the rest may be used");
    let groups = [
        ("first", [format!("--regid={DAEMON}"), alone.to_owned()]),
        ("another", [format!("--groups={DAEMON}"), nobody]),
    ];
    for (name, groups) in groups {
        let groups = groups.each_ref().map(String::as_str);
        let taken = restore(name, &groups);
        let said = String::from_utf8_lossy(&taken.stderr);
        assert!(taken.status.success(), "{said}");
    }
    let own = to.path().join("own").display().to_string();
    service.order(&["restore", "home", "--to", &own]);
}

#[test]
fn only_root_and_the_user_of_the_agent_restore_set_user_id_bits() {
    if !rustix::process::geteuid().is_root() {
        return skipped("needs root, to be somebody else");
    }
    let (source, to) = (dir(), dir());
    fs::write(source.path().join("f"), "x").expect("write a file");
    let place = Place::new();
    place.configure("", &stores(&place, source.path()));
    let service = place.start();
    service.order(&["start", "home", "--wait"]);
    open_to_all(&place);
    let words = |name: &str| {
        let to = to.path().join(name).display().to_string();
        ["restore", "home", "--setuid", "--to", &to].map(str::to_owned)
    };
    let theirs = words("theirs");
    let nobody = ["--clear-groups", "--regid=65534"];
    let refused = as_nobody(&place, &nobody, &theirs.each_ref().map(String::as_str));
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("only root and the agent's user"), "{said}");
    service.order(&words("own").each_ref().map(String::as_str));
}

/// Watches the status, and reads the first lines of the answer.
fn watch(place: &Place) -> (UnixStream, String) {
    let mut stream = UnixStream::connect(place.join("socket")).expect("connect");
    stream.set_read_timeout(Some(SOON)).expect("a timeout");
    let request = b"GET /v1/status?watch HTTP/1.1\r\nHost: agent\r\n\r\n";
    stream.write_all(request).expect("send a request");
    let mut answer = vec![0; 4096];
    let length = stream.read(&mut answer).unwrap_or_default();
    answer.truncate(length);
    (stream, String::from_utf8_lossy(&answer).into_owned())
}

#[test]
fn one_user_who_watches_very_often_does_not_lock_out_another() {
    if !rustix::process::geteuid().is_root() {
        return skipped("needs root, to be somebody else");
    }
    let place = Place::new();
    place.configure("", "");
    let _service = place.start();
    open_to_all(&place);
    let watching: Vec<_> = (0..48).map(|_| watch(&place)).collect();
    let served = |(_, answer): &&(UnixStream, String)| answer.starts_with("HTTP/1.1 200");
    assert_eq!(watching.iter().filter(served).count(), 32);
    let groups = ["--clear-groups", "--regid=65534"];
    let status = as_nobody(&place, &groups, &["status", "--json"]);
    let said = String::from_utf8_lossy(&status.stderr);
    assert!(status.status.success(), "{said}");
}

/// The resident memory of the agent, bytes.
fn memory(service: &Service<'_>) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", service.pid()));
    let status = status.expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next());
    kilobytes.expect("its memory").parse::<u64>().expect("kB") * 1024
}

/// Asks the agent to download a file; returns the answer.
fn add(socket: &mut UnixStream, url: &str, to: &Path) -> String {
    let body = format!("{{\"url\":\"{url}\",\"to\":\"{}\"}}", to.display());
    let request = format!(
        "POST /v1/add HTTP/1.1\r\nHost: agent\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    socket
        .write_all(request.as_bytes())
        .expect("send a request");
    let mut answer = Vec::new();
    let mut more = [0; 4096];
    loop {
        let read = socket.read(&mut more).expect("an answer");
        assert!(read > 0, "{}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&more[..read]);
        if answer.ends_with(b"}\n") || answer.ends_with(b"}") {
            return String::from_utf8_lossy(&answer).into_owned();
        }
    }
}

#[test]
fn downloads_that_wait_are_limited_in_number_and_memory() {
    /// As the document of the API has it.
    const MAX: usize = 1_000;
    /// Memory for each of them, bytes. It was 147,000.
    const MAX_MEMORY: u64 = 60_000;
    // It accepts connections, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").expect("listen");
    let url = format!("http://{}/f", silent.local_addr().expect("an address"));
    let to = dir();
    let place = Place::new();
    place.configure("", "");
    let service = place.start();
    let mut socket = UnixStream::connect(place.join("socket")).expect("connect");
    socket.set_read_timeout(Some(SOON)).expect("a timeout");
    let mut add = |i: usize| add(&mut socket, &url, &to.path().join(i.to_string()));
    let mut before = 0;
    for i in 0..MAX {
        if i == 10 {
            before = memory(&service);
        }
        let answer = add(i);
        assert!(answer.starts_with("HTTP/1.1 200"), "{i}: {answer}");
    }
    let each = memory(&service).saturating_sub(before) / (MAX as u64 - 10);
    println!("{each} bytes of memory for each download that waits");
    let refused = add(MAX);
    assert!(refused.starts_with("HTTP/1.1 409"), "{refused}");
    assert!(refused.contains("cancel some"), "{refused}");
    service.order(&["cancel", "add-1"]);
    let answer = add(MAX);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(each <= MAX_MEMORY, "{each}");
}

/// A document of the agent's page, with its head.
pub(crate) fn page(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("connect");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream
        .write_all(request.as_bytes())
        .expect("send a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// Configures the agent with a page. Returns its port.
pub(crate) fn configure_with_page(place: &Place, jobs: &str) -> Port {
    let port = Port::own(Ipv4Addr::LOCALHOST.into());
    let text = format!(
        "[agent]\nstate = {:?}\nsocket = {:?}\nlisten = \"{}\"\n{jobs}",
        place.join("state"),
        place.join("socket"),
        port.address(),
    );
    fs::write(place.join("agent.toml"), text).expect("write a configuration");
    port
}

#[test]
fn the_page_has_no_signatures_and_no_names_of_files() {
    if !rustix::process::geteuid().is_root() {
        return skipped("needs root, for a file that cannot be stored");
    }
    let nginx = Nginx::start(&Config::default());
    let (source, to) = (dir(), dir());
    // A store that has a directory where a file should go.
    fs::write(source.path().join("letter-to-alice"), "x").expect("write a file");
    let place = Place::new();
    let port = configure_with_page(&place, &stores(&place, source.path()));
    fs::create_dir_all(place.join("disk/home/letter-to-alice/x")).expect("make a directory");
    let service = place.start();
    service.fairbat(&["start", "home", "--wait"]);
    let told = service.task("home").expect("it is there").to_string();
    assert!(told.contains("letter-to-alice"), "{told}");
    let url = format!("{}?X-Amz-Signature=5ec3e7", nginx.url("none"));
    let to = to.path().join("none").display().to_string();
    let id = service.order(&["add", "-o", &to, &url]);
    let task = service.wait_for_task("failed", &id, |task| task["last"].is_object());
    assert!(task.to_string().contains("5ec3e7"), "{task:#}");

    let status = wait_for("the page to be up to date", SOON, || {
        let answer = page(port.address(), "/status.json");
        let body = answer.split_once("\r\n\r\n").expect("a head").1;
        let status: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"));
        let tasks = status["tasks"].as_array().expect("tasks");
        let is_told = tasks.len() == 2 && tasks.iter().all(|task| task["last"].is_object());
        is_told.then(|| status.clone())
    });
    let all = [
        status.to_string(),
        page(port.address(), "/metrics"),
        page(port.address(), "/"),
    ]
    .concat();
    for private in ["letter-to-alice", "5ec3e7", "X-Amz-Signature"] {
        assert!(!all.contains(private), "{private}: {status:#}");
    }
    assert_eq!(
        status["tasks"][0]["last"]["files"]["failed"], 1,
        "{status:#}"
    );
}

#[test]
fn an_address_that_is_taken_names_its_setting_and_leaves_no_socket() {
    let taken = TcpListener::bind("127.9.7.9:0").expect("listen");
    let address = taken.local_addr().expect("an address");
    let place = Place::new();
    let text = format!(
        "[agent]\nstate = {:?}\nsocket = {:?}\nlisten = \"{address}\"\n",
        place.join("state"),
        place.join("socket"),
    );
    fs::write(place.join("agent.toml"), text).expect("write a configuration");
    let ended = Command::new(agent_binary())
        .args(["run", "--config"])
        .arg(place.join("agent.toml"))
        .output()
        .expect("run the agent");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(
        said.contains(&format!("{address}: Address already in use")),
        "{said}"
    );
    assert!(said.contains("`listen` in [agent]"), "{said}");
    assert!(!place.join("socket").exists());
}
