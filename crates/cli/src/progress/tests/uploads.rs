//! What people see of uploads.

use dalbe::sender::{SenderLeverKind, SenderPolicy};

use super::*;

fn sending(lever: SenderLeverKind, sender: Option<SenderPolicy>, weight: f64) -> Event {
    Event::Sending {
        urls: vec![URL.to_owned()],
        lever,
        sender,
        controller: ControllerPolicy::Share,
        weight,
    }
}

fn sent(status: u16, deadline_met: Option<bool>) -> Event {
    Event::Sent {
        url: URL.to_owned(),
        path: PathBuf::from("big.iso"),
        bytes: 4 << 20,
        elapsed_s: 2.0,
        status,
        protocol: None,
        deadline_met,
    }
}

#[test]
fn uploads_are_told_as_downloads_are() {
    let line = |event: Event| message(Display::Lines, &[event]).expect("a line");
    let begun = |event: Event| message(Display::Lines, &[event, file(0)]).expect("a line");
    use SenderLeverKind::{Congestion, Mark, Pacing};
    for (lever, sender, weight, said) in [
        (
            Congestion,
            Some(SenderPolicy::Cdg),
            0.02,
            "congestion-control (cdg): yields to other traffic by its congestion control",
        ),
        (
            Pacing,
            None,
            0.5,
            "pacing: yields to other traffic by the rate of its packets",
        ),
        (
            Pacing,
            None,
            1.0,
            "pacing: does not yield, because its weight is 1",
        ),
        (
            Mark,
            None,
            1.0,
            "dscp-le: does not yield, packets are only marked Lower-Effort (RFC 8622)",
        ),
    ] {
        let started = begun(sending(lever, sender, weight));
        assert_eq!(started, format!("sending to {URL}; {said}"));
    }
    assert_eq!(
        line(sent(201, None)),
        "uploaded big.iso: 4.00 MiB in 2.0 s (2.00 MiB/s)"
    );
    assert!(line(sent(200, Some(true))).ends_with("before the deadline"));
    assert!(line(sent(204, Some(false))).ends_with("AFTER the deadline"));
    assert!(line(sent(202, None)).ends_with("accepted it and will store it later"));
    for (display, is_said) in [(Display::Bars, true), (Display::Errors, false)] {
        assert_eq!(message(display, &[sent(201, None)]).is_some(), is_said);
    }
}

fn pacing() -> Event {
    sending(SenderLeverKind::Pacing, None, 0.02)
}

#[test]
fn a_file_that_cannot_be_sent_is_all_that_is_told() {
    assert_eq!(message(Display::Lines, &[pacing()]), None);
    let unreadable = Event::Error {
        url: URL.to_owned(),
        kind: ErrorKind::Disk,
        message: "x cannot be read: No such file".to_owned(),
        hint: String::new(),
    };
    assert_eq!(
        message(Display::Lines, &[pacing(), unreadable]).as_deref(),
        Some("error: x cannot be read: No such file")
    );
    let refused = [pacing(), file(0), error(ErrorKind::Refused, "")];
    assert_eq!(
        message(Display::Lines, &refused),
        Some(format!("error: {URL}: 404 Not Found"))
    );
}

#[test]
fn the_status_line_tells_how_the_deadline_stands() {
    let paper = Paper::default();
    let target = ProgressDrawTarget::term_like(Box::new(paper.clone()));
    let mut progress = ProgressDisplay::on(Display::Bars, target);
    let mut status = |event: Event| {
        progress.show(&timed(&event));
        // The bar above is drawn first.
        let drawn = paper.take();
        drawn.rsplit("ETA").next().unwrap_or_default().to_owned()
    };
    let standing = |lag: Option<f64>| {
        let Event::Control(mut control) = control(2 << 20) else {
            unreachable!("it is one")
        };
        (control.m, control.w, control.lag) = (1.0, 0.34, lag);
        Event::Control(control)
    };
    status(pacing());
    status(file(0));
    let without = status(standing(None));
    assert!(without.contains("1 connection, rtt 35 ms"), "{without}");
    assert!(
        !without.contains("m 1") && !without.contains("w 0"),
        "{without}"
    );
    for (lag, said) in [
        (-1.0, "w 0.34, on schedule, 1 connection"),
        (1.0, "w 0.34, behind schedule, 1 connection"),
    ] {
        let shown = status(standing(Some(lag)));
        assert!(shown.contains(said), "{shown}");
    }
    status(forecast(29.0));
    let late = status(standing(Some(1.0)));
    assert!(late.contains("w 0.34, probably 29 s late"), "{late}");
    let caught_up = status(standing(Some(-1.0)));
    assert!(caught_up.contains("on schedule"), "{caught_up}");
}
