//! Jobs that come while others are moved: real files over real connections.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use crate::files::{LENGTH, expect_whole, server, settings};
use dalbe::capability::Capabilities;
use dalbe::receive_window::LeverKind;
use dalbe::weight::MIN_WEIGHT;
use fairbat::download::{Arrivals, Outcome, Report, RunMode, Stop, run};
use fairbat::error::ErrorKind;
use fairbat::event::{Control, Event, TimedEvent};
use fairbat::lane::AdmissionSettings;
use fairbat::settings::{KnownFile, Target, TransferRequest};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

/// How long a test waits for what takes a second or two.
const PATIENCE: Duration = Duration::from_secs(60);

/// A run that jobs can be given to.
struct Run {
    address: SocketAddr,
    directory: tempfile::TempDir,
    requests: UnboundedSender<TransferRequest>,
    events: UnboundedReceiver<TimedEvent>,
    stop: Stop,
    report: JoinHandle<Report>,
}

impl Run {
    /// A job is one chunk.
    fn start(address: SocketAddr, law: AdmissionSettings) -> Self {
        let (requests, arriving) = unbounded_channel();
        let (sender, events) = unbounded_channel();
        let arrivals = Arrivals {
            requests: arriving,
            law,
        };
        let stop = Stop::default();
        let run = run(
            settings(LENGTH),
            RunMode::Stream(arrivals),
            stop.clone(),
            sender,
        );
        Self {
            address,
            directory: tempfile::tempdir().expect("a directory"),
            requests,
            events,
            stop,
            report: tokio::spawn(async { run.await.expect("it could start") }),
        }
    }

    fn give(&self, name: &str) {
        let request = TransferRequest {
            mirrors: Vec::new(),
            url: format!("http://{}/{name}", self.address)
                .parse()
                .expect("a URL"),
            target: Target::File(self.path(name)),
            deadline: None,
            checksum: None,
            known: KnownFile::default(),
        };
        self.requests.send(request).expect("the run goes on");
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    /// Waits for the next event.
    async fn event(&mut self) -> Event {
        let event = tokio::time::timeout(PATIENCE, self.events.recv()).await;
        event.expect("in time").expect("the run goes on").event
    }

    /// Waits until the lane is as it should be; how it is then.
    async fn control(&mut self, is_so: impl Fn(&Control) -> bool) -> Control {
        let found = async {
            loop {
                if let Event::Control(control) = self.event().await
                    && is_so(&control)
                {
                    break control;
                }
            }
        };
        tokio::time::timeout(PATIENCE, found).await.expect("soon")
    }

    /// Waits until the next job is done; the name of its file.
    async fn done(&mut self) -> String {
        loop {
            match self.event().await {
                Event::Done { path, .. } => return name(&path),
                Event::Error { message, .. } => panic!("{message}"),
                _ => {}
            }
        }
    }
}

/// So many connections at a time, no more and no less.
fn fixed(connections: u32) -> AdmissionSettings {
    AdmissionSettings {
        m_min: f64::from(connections),
        m_max: connections,
        ..by_law()
    }
}

/// As many as the law says, which looks at the queue every second until it knows how
/// long a job takes.
fn by_law() -> AdmissionSettings {
    AdmissionSettings {
        period: Duration::from_secs(1),
        ..AdmissionSettings::stream()
    }
}

fn name(path: &Path) -> String {
    let name = path.file_name().expect("a name");
    name.to_string_lossy().into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_moved_in_the_order_in_which_they_come_until_no_more_do() {
    let (address, asked) = server();
    let mut run = Run::start(address, fixed(1));
    for name in ["first", "second", "third"] {
        run.give(name);
    }
    // The last step of a file, which waits for the disk, holds up no other transfer.
    let mut done = [run.done().await, run.done().await, run.done().await];
    done.sort();
    assert_eq!(done, ["first", "second", "third"]);
    // The queue has been empty, and the run has waited.
    run.give("late");
    assert_eq!(run.done().await, "late");
    drop(run.requests);
    let report = run.report.await.expect("the run");
    assert_eq!(report.outcomes, [Outcome::Done { late: false }; 4]);
    let mut order = asked.lock().expect("nobody panicked").clone();
    order.dedup();
    assert_eq!(order, ["/first", "/second", "/third", "/late"]);
    for name in ["first", "second", "third", "late"] {
        expect_whole(&run.directory.path().join(name));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_counts_in_n_and_a_stop_ends_the_run_however_many_there_are() {
    // Nobody answers here: the listener takes connections and is silent.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut run = Run::start(silent.local_addr().expect("an address"), fixed(2));
    for number in 0..5 {
        run.give(&number.to_string());
    }
    // The first look may come before all of them.
    let control = run.control(|control| control.n >= 3.0).await;
    assert_eq!((control.n, control.active, control.m), (3.0, 2, 2.0));
    run.stop.interrupt();
    let report = run.report.await.expect("the run");
    assert_eq!(
        report.outcomes,
        [Outcome::Failed(ErrorKind::Interrupted); 5]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_queue_gets_more_connections() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut run = Run::start(silent.local_addr().expect("an address"), by_law());
    for number in 0..60 {
        run.give(&number.to_string());
    }
    let control = run.control(|control| control.active > 1).await;
    assert!(control.m > 1.0, "{control:?}");
    run.stop.interrupt();
    run.report.await.expect("the run");
}

#[tokio::test(flavor = "multi_thread")]
async fn below_one_connection_there_is_one_that_yields() {
    if Capabilities::probe().best_lever() == LeverKind::None {
        eprintln!("SKIPPED: nothing can hold a connection back here");
        return;
    }
    let law = AdmissionSettings {
        m_min: MIN_WEIGHT,
        ..by_law()
    };
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut run = Run::start(silent.local_addr().expect("an address"), law);
    run.give("job");
    // Nothing waits, so m falls.
    let control = run.control(|control| control.w < 1.0).await;
    assert!(control.m < 1.0, "{control:?}");
    assert_eq!((control.w, control.active), (MIN_WEIGHT, 1));
    run.stop.interrupt();
    run.report.await.expect("the run");
}
