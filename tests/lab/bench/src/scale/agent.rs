//! A run of a job by `fairbat-agent`, from the start of the process to the word
//! that it is done.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use wait4::Wait4;

use crate::record::Sample;
use fairbat_tests::poll::wait_for;
use fairbat_tests::stores::S3;

pub(super) use fairbat_tests::bin::agent_binary as binary;

/// Where in the store files go.
pub(super) const PREFIX: &str = "tree";

const JOB: &str = "scale";

/// How long an agent may take to listen.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a run may take.
const RUN: Duration = Duration::from_secs(3600);

/// Where a job pushes to.
pub(super) enum Destination<'a> {
    Directory(&'a Path),
    S3(&'a S3),
}

/// See the module.
pub(super) struct Agent<'a> {
    /// Where its state and configuration are.
    pub(super) home: &'a Path,
    pub(super) source: &'a Path,
    /// `None` for the default.
    pub(super) connections: Option<u32>,
    /// The processors that it may use, as taskset(1) wants them.
    pub(super) cores: Option<&'a str>,
    pub(super) destination: Destination<'a>,
}

impl Agent<'_> {
    pub(super) fn run(&self) -> Sample {
        fs::create_dir_all(self.home.join("state")).expect("make a directory");
        let config = self.home.join("agent.toml");
        fs::write(&config, self.config()).expect("write a configuration");
        let log = self.home.join("agent.log");
        let mut command = match self.cores {
            Some(cores) => {
                let mut taskset = Command::new("taskset");
                taskset.args(["-c", cores]).arg(binary());
                taskset
            }
            None => Command::new(binary()),
        };
        command
            .arg("run")
            .arg("--config")
            .arg(&config)
            .env("FAIRBAT_LOG", "info")
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stderr(File::create(&log).expect("create a log"));
        let begin = Instant::now();
        let mut child = command.spawn().expect("start the agent");
        let socket = self.home.join("sock");
        wait_for("the agent to listen", PATIENCE, || ask(&socket));
        let said = || fs::read_to_string(&log).unwrap_or_default();
        wait_for("the end of the run", RUN, || is_over(&said()).then_some(()));
        let elapsed_s = begin.elapsed().as_secs_f64();
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("the id of a process"), Signal::TERM).expect("stop the agent");
        let used = child.wait4().expect("wait for the agent");
        assert!(said().contains(" done "), "the run failed: {}", said());
        Sample {
            elapsed_s,
            user_s: used.rusage.utime.as_secs_f64(),
            system_s: used.rusage.stime.as_secs_f64(),
            peak_rss: used.rusage.maxrss,
        }
    }

    fn config(&self) -> String {
        let (home, source) = (self.home.display(), self.source.display());
        let connections = self
            .connections
            .map_or_else(String::new, |most| format!("connections = {most}\n"));
        let store = match self.destination {
            Destination::Directory(path) => format!("type = \"local\"\npath = {path:?}"),
            Destination::S3(store) => {
                self.write_credentials(store);
                format!(
                    "type = \"s3\"\nendpoint = \"{}\"\nbucket = \"{}\"\n\
                     credentials = \"{home}/credentials\"",
                    store.endpoint(),
                    store.bucket()
                )
            }
        };
        format!(
            "[agent]\nstate = \"{home}/state\"\nsocket = \"{home}/sock\"\nlisten = false\n\
             {connections}\n[stores.store]\n{store}\n\n[[jobs]]\nname = \"{JOB}\"\n\
             source = \"{source}\"\ndestination = \"store:{PREFIX}\"\n"
        )
    }

    fn write_credentials(&self, store: &S3) {
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(self.home.join("credentials"))
            .expect("create a file");
        let keys = format!(
            "access_key_id = {}\nsecret_access_key = {}\n",
            store.access_key(),
            store.secret_key()
        );
        file.write_all(keys.as_bytes()).expect("write credentials");
    }
}

/// Asks for a run; `None` while nobody listens.
fn ask(socket: &Path) -> Option<()> {
    let mut stream = UnixStream::connect(socket).ok()?;
    let body = format!("{{\"job\":\"{JOB}\"}}");
    let request = format!(
        "POST /v1/run HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    assert!(answer.starts_with("HTTP/1.1 200 "), "no run: {answer}");
    Some(())
}

fn is_over(said: &str) -> bool {
    let ends = [" done ", "some files failed", "ended early"];
    ends.iter().any(|end| said.contains(end))
}
