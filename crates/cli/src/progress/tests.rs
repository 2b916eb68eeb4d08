mod uploads;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use dalbe::receive_window::LeverKind;
use dalbe::receive_window::{ReceiveWindowState, ReceiverPolicy};
use dalbe::weight::ControllerPolicy;
use fairbat::error::ErrorKind;
use fairbat::event::{Control, FileProgress};
use indicatif::TermLike;

use super::*;

const URL: &str = "https://example.org/big.iso";

#[test]
fn bars_need_a_terminal_of_their_own() {
    let terminal = Circumstances {
        quiet: false,
        json: false,
        stdout_terminal: true,
        stderr_terminal: true,
    };
    let pipe = Circumstances {
        stderr_terminal: false,
        ..terminal
    };
    assert_eq!(Display::choose(terminal), Display::Bars);
    assert_eq!(Display::choose(pipe), Display::Lines);
    let json = Circumstances {
        json: true,
        ..terminal
    };
    assert_eq!(Display::choose(json), Display::Lines);
    let piped_json = Circumstances {
        stdout_terminal: false,
        ..json
    };
    assert_eq!(Display::choose(piped_json), Display::Bars);
    let quiet = Circumstances {
        quiet: true,
        ..terminal
    };
    assert_eq!(Display::choose(quiet), Display::Errors);
}

fn start() -> Event {
    start_under(LeverKind::ReceiveWindow, Some(ReceiverPolicy::Delay))
}

fn start_under(lever: LeverKind, receiver: Option<ReceiverPolicy>) -> Event {
    Event::Start {
        urls: vec![URL.to_owned()],
        lever,
        receiver,
        controller: ControllerPolicy::Share,
    }
}

fn forecast(late_s: f64) -> Event {
    Event::Forecast {
        url: URL.to_owned(),
        late_s,
        zeta: 2.0 * 1024.0 * 1024.0,
        rate: 1024.0 * 1024.0,
    }
}

fn file(resumed_bytes: u64) -> Event {
    Event::File {
        url: URL.to_owned(),
        path: PathBuf::from("/d/big.iso"),
        bytes: Some(4 << 20),
        resumed_bytes,
        ranges: true,
    }
}

fn control(bytes_done: u64) -> Event {
    control_while(bytes_done, Some(ReceiveWindowState::Filling))
}

fn control_while(bytes_done: u64, brake: Option<ReceiveWindowState>) -> Event {
    Event::Control(Control {
        paths: Vec::new(),
        tau: None,
        n: 0.0,
        m: 1.25,
        active: 1,
        w: 1.0,
        window: None,
        brake,
        g_ms: None,
        bottleneck: None,
        zeta: None,
        lag: None,
        rate: 0.0,
        rtt_ms: Some(34.8),
        bytes_done,
        bytes_total: Some(4 << 20),
        files: vec![FileProgress {
            url: URL.to_owned(),
            bytes_done,
            bytes_total: Some(4 << 20),
        }],
    })
}

fn retry() -> Event {
    Event::Retry {
        url: URL.to_owned(),
        reason: "connection reset".to_owned(),
        after_s: 1.5,
        attempt: 1,
        cause: fairbat::event::RetryCause::Network,
    }
}

fn done(deadline_met: Option<bool>) -> Event {
    Event::Done {
        url: URL.to_owned(),
        path: PathBuf::from("/d/big.iso"),
        bytes: 4 << 20,
        elapsed_s: 2.0,
        sha256: None,
        protocol: None,
        deadline_met,
    }
}

fn error(kind: ErrorKind, hint: &str) -> Event {
    Event::Error {
        url: URL.to_owned(),
        kind,
        message: "404 Not Found".to_owned(),
        hint: hint.to_owned(),
    }
}

/// The line that the last of these events leaves.
fn message(display: Display, events: &[Event]) -> Option<String> {
    let mut progress = ProgressDisplay::on(display, ProgressDrawTarget::hidden());
    let (last, before) = events.split_last().expect("at least one event");
    for event in before {
        progress.show(&timed(event));
    }
    progress.message(last)
}

fn timed(event: &Event) -> TimedEvent {
    TimedEvent {
        t: 0.0,
        event: event.clone(),
    }
}

#[test]
fn what_each_display_leaves_behind() {
    let events = [
        start(),
        file(0),
        control(0),
        forecast(9.0),
        retry(),
        done(None),
    ];
    let lines = |display| events.clone().map(|e| message(display, &[e]).is_some());
    assert_eq!(
        lines(Display::Lines),
        [true, false, false, true, true, true]
    );
    assert_eq!(
        lines(Display::Bars),
        [true, false, false, true, false, true]
    );
    assert_eq!(lines(Display::Errors), [false; 6]);
    for display in [Display::Lines, Display::Bars, Display::Errors] {
        assert!(message(display, &[error(ErrorKind::Refused, "")]).is_some());
        assert!(message(display, &[error(ErrorKind::Interrupted, "")]).is_none());
    }
}

#[test]
fn the_lines_say_what_happened() {
    let line = |events: &[Event]| message(Display::Lines, events).expect("a line");
    use ReceiverPolicy::{Delay, Vulture};
    for (lever, receiver, said) in [
        (
            LeverKind::ReceiveWindow,
            Some(Delay),
            "receive-window (delay): yields to other traffic by its receive window",
        ),
        (
            LeverKind::ReceiveWindow,
            Some(Vulture),
            "receive-window (vulture): yields to other traffic by its receive window",
        ),
        (
            LeverKind::ReceiveWindow,
            None,
            "receive-window: does not yield, because its weight is 1",
        ),
        (
            LeverKind::DscpLe,
            None,
            "dscp-le: does not yield, packets are only marked Lower-Effort (RFC 8622)",
        ),
        (
            LeverKind::None,
            None,
            "none: does not yield, this machine allows no lever",
        ),
    ] {
        let started = line(&[start_under(lever, receiver)]);
        assert_eq!(started, format!("fetching {URL}; {said}"));
    }
    for (receiver, said) in [(Some(Delay), "one yields when less"), (None, "none yields")] {
        let mut start = start_under(LeverKind::ReceiveWindow, receiver);
        if let Event::Start { urls, .. } = &mut start {
            urls.clear();
        }
        let started = line(&[start]);
        assert!(
            started.contains("URLs as they come") && started.contains(said),
            "{started}"
        );
    }
    assert_eq!(
        line(&[forecast(90.0)]),
        format!(
            "warning: {URL}: will probably be 90 s late: it needs 2.00 MiB/s and \
             gets 1.00 MiB/s"
        )
    );
    assert!(line(&[forecast(600.0)]).contains(" 10 minutes late"));
    assert!(line(&[forecast(9000.0)]).contains(" 2.5 hours late"));
    let retrying = line(&[retry()]);
    assert_eq!(
        retrying,
        format!("{URL}: connection reset; next try in 1.5 s")
    );
    assert_eq!(
        line(&[file(0), done(None)]),
        "saved /d/big.iso: 4.00 MiB in 2.0 s (2.00 MiB/s)"
    );
    assert_eq!(
        line(&[file(2 << 20), done(Some(true))]),
        "saved /d/big.iso: 4.00 MiB, 2.00 MiB of them now, in 2.0 s (1.00 MiB/s), \
         before the deadline"
    );
    assert!(line(&[file(0), done(Some(false))]).ends_with("AFTER the deadline"));
    assert_eq!(
        line(&[file(4 << 20), done(None)]),
        "/d/big.iso is complete already (4.00 MiB)"
    );
    assert_eq!(
        line(&[error(ErrorKind::Refused, "check the URL")]),
        format!("error: {URL}: 404 Not Found\n  hint: check the URL")
    );
}

#[test]
fn a_log_tells_when_yielding_begins_and_ends_but_not_all_the_time() {
    use ReceiveWindowState::{Filling, Free, Yielding};
    let mut progress = ProgressDisplay::on(Display::Lines, ProgressDrawTarget::hidden());
    let (begun, ended) = ("yielding to other traffic", "no longer yielding");
    for (t, brake, said) in [
        (1.0, Some(Filling), None),
        (2.0, Some(Yielding), Some(begun)),
        (3.0, Some(Yielding), None),
        (4.0, Some(Filling), None),
        (5.0, Some(Yielding), None),
        (61.0, Some(Filling), None),
        (62.0, None, None),
        (63.0, Some(Free), Some(ended)),
        (64.0, Some(Yielding), None),
        (200.0, Some(Yielding), Some(begun)),
    ] {
        assert_eq!(progress.yielding(t, brake), said, "at {t}");
    }
    for display in [Display::Bars, Display::Errors] {
        let mut progress = ProgressDisplay::on(display, ProgressDrawTarget::hidden());
        assert_eq!(progress.yielding(2.0, Some(Yielding)), None, "{display:?}");
    }
}

/// A terminal that keeps everything that was drawn on it.
#[derive(Debug, Clone, Default)]
struct Paper(Arc<Mutex<String>>);

impl Paper {
    fn take(&self) -> String {
        std::mem::take(&mut *self.0.lock().expect("no test panics while drawing"))
    }

    fn put(&self, text: &str) -> io::Result<()> {
        self.0
            .lock()
            .expect("no test panics while drawing")
            .push_str(text);
        Ok(())
    }
}

impl TermLike for Paper {
    fn width(&self) -> u16 {
        160
    }
    fn move_cursor_up(&self, _: usize) -> io::Result<()> {
        Ok(())
    }
    fn move_cursor_down(&self, _: usize) -> io::Result<()> {
        Ok(())
    }
    fn move_cursor_right(&self, _: usize) -> io::Result<()> {
        Ok(())
    }
    fn move_cursor_left(&self, _: usize) -> io::Result<()> {
        Ok(())
    }
    fn write_line(&self, text: &str) -> io::Result<()> {
        self.put(text)?;
        self.put("\n")
    }
    fn write_str(&self, text: &str) -> io::Result<()> {
        self.put(text)
    }
    fn clear_line(&self) -> io::Result<()> {
        Ok(())
    }
    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn bars_show_files_and_the_control_loop() {
    let paper = Paper::default();
    let target = ProgressDrawTarget::term_like(Box::new(paper.clone()));
    let mut progress = ProgressDisplay::on(Display::Bars, target);
    let mut drawn = |event: Event| {
        progress.show(&timed(&event));
        paper.take()
    };
    drawn(start());
    let begun = drawn(file(1 << 20));
    assert!(
        begun.contains("big.iso") && begun.contains("25%"),
        "{begun}"
    );
    assert!(begun.contains("1.00 MiB/4.00 MiB"), "{begun}");
    let moved = drawn(control(2 << 20));
    assert!(moved.contains("50%"), "{moved}");
    assert!(
        moved.contains("m 1.25, 1 connection, rtt 35 ms, 0 retries"),
        "{moved}"
    );
    assert!(!moved.contains("yielding"), "{moved}");
    let yielding = drawn(control_while(2 << 20, Some(ReceiveWindowState::Yielding)));
    assert!(yielding.contains("yielding, m 1.25"), "{yielding}");
    for brake in [None, Some(ReceiveWindowState::Free)] {
        let other = drawn(control_while(2 << 20, brake));
        // The bar above is drawn first, with the line as it was.
        let status = other.rsplit("ETA").next().unwrap_or_default();
        assert!(!status.contains("yielding"), "{other}");
    }
    assert!(drawn(retry()).contains("next try in 1.5 s: connection reset"));
    assert!(drawn(control(2 << 20)).contains("1 retry"));
    let done = drawn(done(None));
    assert!(done.contains("saved /d/big.iso: 4.00 MiB"), "{done}");
    progress.finish();
    assert!(!paper.take().contains("big.iso"));
}

#[test]
fn files_that_failed_are_not_done() {
    let paper = Paper::default();
    let target = ProgressDrawTarget::term_like(Box::new(paper.clone()));
    let mut progress = ProgressDisplay::on(Display::Bars, target);
    let events = [
        file(0),
        done(None),
        error(ErrorKind::Refused, ""),
        control(0),
    ];
    for event in &events {
        progress.show(&timed(event));
    }
    let status = paper.take();
    assert!(status.contains("1 file done, 1 failed"), "{status}");
}

#[test]
fn what_an_earlier_run_left_is_not_counted_as_speed() {
    let paper = Paper::default();
    let target = ProgressDrawTarget::term_like(Box::new(paper.clone()));
    let mut progress = ProgressDisplay::on(Display::Bars, target);
    progress.show(&timed(&file(3 << 20)));
    let begun = paper.take();
    assert!(begun.contains("3.00 MiB/4.00 MiB"), "{begun}");
    // At every redraw: nothing has moved yet, and nobody knows for how long.
    assert_eq!(
        begun.matches(" 0 B/s").count(),
        begun.matches("B/s").count()
    );
    assert_eq!(begun.matches("ETA -").count(), begun.matches("ETA").count());
}
