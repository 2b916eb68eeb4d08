//! An invented night of an agent, second by second: what the tests of metrics and
//! page show, and the pictures of the page. It plays the daemon's end.

// Each user needs a part of it.
#![allow(dead_code)]

mod site;

use std::net::SocketAddr;

use fairbat::machine::LaneDirection;
use fairbat_agent::daemon::handle::{DaemonPort, channel};
use fairbat_agent::hold::status::{HoldPhase, HoldStatus, HoldTotals};
use fairbat_agent::status::{
    AgentStatus, CheckStatus, FileFailure, HistorySample, LaneStatus, LastRun, Outcomes, Retries,
    StreamStatus, TaskKind, TaskPhase, TaskStatus, Totals,
};
use fairbat_agent::web;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

pub(crate) fn at(moment: &str) -> Timestamp {
    moment.parse().expect("a moment")
}

/// The middle of the night.
pub(crate) fn now() -> Timestamp {
    at("2026-03-25T01:14:07Z")
}

/// Times of day are those of Berlin: 02:14:07.
pub(crate) fn zone() -> TimeZone {
    TimeZone::get("Europe/Berlin").expect("a time zone")
}

/// A task that has not run.
pub(crate) fn task(id: &str, kind: TaskKind, direction: LaneDirection) -> TaskStatus {
    TaskStatus {
        id: id.into(),
        kind,
        direction,
        from: "/home".into(),
        to: "offsite:home".into(),
        phase: TaskPhase::Waiting,
        next: None,
        began: None,
        deadline: None,
        predicted: None,
        late_s: None,
        files: 0,
        files_done: 0,
        bytes: 0,
        bytes_done: 0,
        last: None,
        succeeded: None,
        totals: Totals::default(),
        check: None,
        retry: None,
    }
}

fn last(began: &str, ended: &str, files: Outcomes) -> LastRun {
    LastRun {
        began: at(began),
        ended: at(ended),
        ok: true,
        in_time: None,
        problem: None,
        summary: None,
        hint: None,
        files,
        failures: Vec::new(),
        notes: Vec::new(),
    }
}

fn full(path: &str) -> FileFailure {
    FileFailure {
        path: path.into(),
        problem: "507 Insufficient Storage".into(),
        hint: Some("make room on the store, then: fairbat start mail".into()),
    }
}

/// Under way, and on time.
fn home() -> TaskStatus {
    let files = Outcomes {
        same: 183_204,
        moved: 1_204,
        deleted: 37,
        changed: 2,
        failed: 0,
    };
    TaskStatus {
        phase: TaskPhase::Running,
        next: Some(at("2026-03-25T21:00:00Z")),
        began: Some(at("2026-03-24T21:00:00Z")),
        deadline: Some(at("2026-03-25T05:00:00Z")),
        predicted: Some(at("2026-03-25T04:48:00Z")),
        late_s: Some(0.0),
        files: 2_311,
        files_done: 1_482,
        bytes: 238_400_000_000,
        bytes_done: 136_100_000_000,
        last: Some(last("2026-03-23T21:00:00Z", "2026-03-24T04:41:00Z", files)),
        succeeded: Some(at("2026-03-24T04:41:00Z")),
        totals: Totals {
            bytes: 1_912_400_000_000,
            chunks: 61_204,
            files: Outcomes {
                moved: 9_211,
                same: 812_406,
                deleted: 402,
                changed: 7,
                failed: 1,
            },
            retries: Retries {
                network: 14,
                server: 3,
                busy: 5,
                integrity: 0,
            },
            succeeded: 9,
            failed: 1,
            late: 1,
        },
        check: Some(CheckStatus {
            running: false,
            next: Some(at("2026-03-30T00:00:00Z")),
            last: Some(last("2026-03-23T00:00:00Z", "2026-03-23T00:40:00Z", files)),
            completed: Some(at("2026-03-23T00:00:00Z")),
            damaged: 1,
            damaged_files: vec!["lost.jpg".into()],
            bytes: 0,
            chunks: 0,
        }),
        ..task("home", TaskKind::Job, LaneDirection::Push)
    }
}

/// Failed, and will be tried again.
fn mail() -> TaskStatus {
    TaskStatus {
        from: "/var/mail".into(),
        to: "nas:mail".into(),
        phase: TaskPhase::Retrying,
        began: Some(at("2026-03-25T00:30:00Z")),
        deadline: Some(at("2026-03-25T02:30:00Z")),
        predicted: Some(at("2026-03-25T02:55:00Z")),
        late_s: Some(1_500.0),
        files: 412,
        files_done: 97,
        bytes: 9_800_000_000,
        bytes_done: 2_100_000_000,
        last: Some(LastRun {
            ok: false,
            problem: Some(
                "nas.example.org refused 3 of 412 files: the disk of the store is full".into(),
            ),
            summary: Some("3 files failed".into()),
            hint: Some("make room on the store, then: fairbat start mail".into()),
            failures: [
                "alice/Archive/2019.mbox",
                "alice/Archive/2020.mbox",
                "bob/Inbox",
            ]
            .map(full)
            .to_vec(),
            ..last(
                "2026-03-25T00:30:00Z",
                "2026-03-25T01:09:00Z",
                Outcomes {
                    moved: 94,
                    same: 5_210,
                    failed: 3,
                    ..Outcomes::default()
                },
            )
        }),
        succeeded: Some(at("2026-03-24T01:12:00Z")),
        totals: Totals {
            bytes: 41_000_000_000,
            chunks: 2_105,
            retries: Retries {
                server: 61,
                ..Retries::default()
            },
            succeeded: 8,
            failed: 2,
            late: 2,
            ..Totals::default()
        },
        ..task("mail", TaskKind::Job, LaneDirection::Push)
    }
}

/// Through, until tomorrow.
fn etc() -> TaskStatus {
    let files = Outcomes {
        same: 2_480,
        moved: 3,
        ..Outcomes::default()
    };
    TaskStatus {
        from: "/etc".into(),
        to: "disk:etc".into(),
        next: Some(at("2026-03-25T04:00:00Z")),
        began: Some(at("2026-03-24T22:00:00Z")),
        deadline: Some(at("2026-03-24T23:00:00Z")),
        late_s: Some(0.0),
        last: Some(LastRun {
            in_time: Some(true),
            ..last("2026-03-24T22:00:00Z", "2026-03-24T22:02:00Z", files)
        }),
        succeeded: Some(at("2026-03-24T22:02:00Z")),
        totals: Totals {
            bytes: 12_400_000,
            chunks: 31,
            files,
            succeeded: 40,
            ..Totals::default()
        },
        ..task("etc", TaskKind::Job, LaneDirection::Push)
    }
}

/// A download, ahead of its pace.
fn image() -> TaskStatus {
    TaskStatus {
        from: "https://mirror.example.org/debian-13.4.0-amd64-DVD-1.iso".into(),
        to: "/srv/images/debian-13.4.0-amd64-DVD-1.iso".into(),
        phase: TaskPhase::Running,
        began: Some(at("2026-03-25T00:20:00Z")),
        deadline: Some(at("2026-03-25T07:00:00Z")),
        predicted: Some(at("2026-03-25T01:29:00Z")),
        late_s: Some(0.0),
        files: 1,
        bytes: 3_990_000_000,
        bytes_done: 3_120_000_000,
        totals: Totals {
            bytes: 3_120_000_000,
            chunks: 402,
            ..Totals::default()
        },
        ..task("add-7", TaskKind::Download, LaneDirection::Pull)
    }
}

/// A lane at a second of the night, before which `ago` seconds are left until now.
fn lane(direction: LaneDirection, now: Timestamp, ago: u32) -> LaneStatus {
    let back = f64::from(ago);
    // Smooth and of no period that one would see.
    let wave = |slow: f64, phase: f64| {
        let x = (3_600.0 - back) / slow;
        ((x + phase).sin() + 0.6 * (2.3 * x + 1.7 * phase).sin() + 0.3 * (7.1 * x).sin()) / 1.9
    };
    // Somebody watches a film for a while, and somebody saves much at once.
    let film = (((3_000.0 - back) / 60.0).tanh() - ((1_900.0 - back) / 60.0).tanh()) / 2.0;
    let burst = (((1_100.0 - back) / 20.0).tanh() - ((800.0 - back) / 40.0).tanh()) / 2.0;
    let sample = match direction {
        LaneDirection::Push => {
            let others = (0.75 * film + 0.9 * burst).min(1.0);
            let rate = 10.6e6 * (1.0 - 0.45 * others) + 0.7e6 * wave(140.0, 0.3);
            let zeta = 7.6e6 + 1.3e6 * film - 2.0e5 * wave(500.0, 1.0);
            let short = (0.5 * film + burst - 0.35).max(0.0);
            HistorySample {
                t: now.as_second() as f64 - back,
                n: (3.2 * short * (1.0 + 0.4 * wave(60.0, 2.0))).max(0.0),
                m: 1.0 + 1.9 * short,
                active: 1 + u64::from(short > 0.3),
                w: (0.16 + 0.5 * film + 0.8 * burst + 0.05 * wave(90.0, 0.0)).clamp(0.02, 1.0),
                zeta: Some(zeta),
                rate,
                rtt_s: Some(0.0213 + 0.024 * others),
                queue_s: Some(0.0012 + 0.017 * others + 0.0011 * (1.0 + wave(31.0, 0.9))),
                stream_n: None,
                stream_m: None,
            }
        }
        LaneDirection::Pull => {
            let is_on = back < 3_247.0;
            let rate = 1.05e6 * (1.0 - 0.8 * film) + 0.12e6 * wave(80.0, 1.3);
            HistorySample {
                t: now.as_second() as f64 - back,
                n: 0.0,
                m: 1.0,
                active: u64::from(is_on),
                w: 0.02,
                zeta: is_on.then_some(0.168e6 - 0.1e6 * (3_247.0 - back) / 3_247.0),
                rate: if is_on { rate.max(0.08e6) } else { 0.0 },
                rtt_s: is_on.then_some(0.0124 + 0.009 * film),
                queue_s: is_on.then_some(0.0009 + 0.012 * film + 0.0007 * (1.0 + wave(23.0, 0.4))),
                stream_n: None,
                stream_m: None,
            }
        }
    };
    LaneStatus {
        direction,
        lever: match direction {
            LaneDirection::Push => "congestion-control".into(),
            LaneDirection::Pull => "observed-receive-window".into(),
        },
        can_yield: true,
        sample,
        stream: match direction {
            LaneDirection::Push => StreamStatus::default(),
            LaneDirection::Pull => StreamStatus {
                n: 3.5,
                m: 1.25,
                tau: 5.0,
                w: 0.75,
                active: 2,
            },
        },
        window: Some(146_000.0),
        g_ms: (direction == LaneDirection::Push).then_some(4.0),
        foreseen: Some(sample.rate),
        yielded_s: 88_204.6 - back,
        guests: 0,
        bytes: match direction {
            LaneDirection::Push => 1_953_412_400_000,
            LaneDirection::Pull => 3_120_000_000,
        },
    }
}

/// A unit that downloads by a deadline.
fn ollama(ago: u32) -> HoldStatus {
    HoldStatus {
        name: "ollama.service".into(),
        what: "ollama.service".into(),
        phase: HoldPhase::Holding,
        connections: 16,
        w: Some(0.31),
        rate: 2_100_000.0,
        zeta: Some(1_900_000.0),
        deadline: Some(at("2026-03-25T05:00:00Z")),
        bytes: Some(40_000_000_000),
        bytes_done: 12_000_000_000,
        late_s: Some(900.0),
        totals: HoldTotals {
            bytes_received: 31_000_000_000 - 2_100_000 * u64::from(ago),
            bytes_sent: 12_000_000,
            connections: 240,
            yielded_s: 9_120.0 - f64::from(ago),
            ..HoldTotals::default()
        },
    }
}

/// A control group whose service does not run.
fn dump() -> HoldStatus {
    HoldStatus {
        name: "dump".into(),
        what: "/sys/fs/cgroup/dump.slice".into(),
        phase: HoldPhase::Off,
        connections: 0,
        w: None,
        rate: 0.0,
        zeta: None,
        deadline: None,
        bytes: None,
        bytes_done: 0,
        late_s: None,
        totals: HoldTotals::default(),
    }
}

/// How it stands so many seconds before now: the lanes of then, the tasks of now.
pub(crate) fn status(ago: u32) -> AgentStatus {
    let then = now() - SignedDuration::from_secs(ago.into());
    AgentStatus {
        version: "0.1.0".into(),
        started: at("2026-03-14T19:02:00Z"),
        now: then,
        lanes: vec![
            lane(LaneDirection::Push, now(), ago),
            lane(LaneDirection::Pull, now(), ago),
        ],
        tasks: vec![home(), mail(), etc(), image()],
        holds: vec![ollama(ago), dump()],
        fleet: Some(site::berlin()),
        added: Some(image().totals),
    }
}

/// The daemon's end after the last hour was told.
pub(crate) fn night() -> (fairbat_agent::daemon::handle::DaemonHandle, DaemonPort) {
    let (handle, port) = channel(status(3_600));
    for ago in (0..3_600).rev() {
        port.publish(status(ago));
    }
    (handle, port)
}

/// Metrics and page, at work until it is dropped.
pub(crate) struct Serving {
    pub(crate) address: SocketAddr,
    pub(crate) port: DaemonPort,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Serving {
    /// Serves this, on any free port of this machine.
    pub(crate) fn begin(
        handle: fairbat_agent::daemon::handle::DaemonHandle,
        port: DaemonPort,
    ) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("a listener");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).expect("a listener");
                let stop = async {
                    let _ = stopped.await;
                };
                web::serve(listener, handle, zone(), stop).await;
            });
        });
        Self {
            address,
            port,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Tells it to stop, and waits until it has.
    pub(crate) fn stop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it stops");
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.stop.take());
    }
}
