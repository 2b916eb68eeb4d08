use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use dalbe::receive_window::LeverKind;
use dalbe::receive_window::{ReceiveWindowState, ReceiverPolicy};
use dalbe::sender::{SenderLeverKind, SenderPolicy};
use dalbe::weight::ControllerPolicy;
use fairbat::error::ErrorKind;
use fairbat::event::Control;
use serde_json::Value;

use super::*;
use crate::exit::ExitCode;

const DOCUMENT: &str = include_str!("../../../../docs/json.md");

fn url() -> String {
    "https://example.org/a".to_owned()
}

/// One event of each variant, with every optional field present.
fn samples() -> Vec<Event> {
    vec![
        Event::Start {
            urls: vec![url()],
            lever: LeverKind::ReceiveWindow,
            receiver: Some(ReceiverPolicy::Delay),
            controller: ControllerPolicy::Share,
        },
        Event::File {
            url: url(),
            path: "a".into(),
            bytes: Some(1),
            resumed_bytes: 0,
            ranges: true,
        },
        Event::Control(Control {
            paths: Vec::new(),
            tau: None,
            n: 0.0,
            m: 1.0,
            active: 1,
            w: 1.0,
            window: Some(65_536.0),
            brake: Some(ReceiveWindowState::Filling),
            g_ms: None,
            bottleneck: None,
            zeta: Some(1.0),
            lag: Some(-1.0),
            rate: 1.0,
            rtt_ms: Some(1.0),
            bytes_done: 0,
            bytes_total: Some(1),
            files: vec![],
        }),
        Event::Forecast {
            url: url(),
            late_s: 1.0,
            zeta: 2.0,
            rate: 1.0,
        },
        Event::Retry {
            url: url(),
            reason: "reset".to_owned(),
            after_s: 0.5,
            attempt: 1,
            cause: fairbat::event::RetryCause::Network,
        },
        Event::Source {
            url: url(),
            source: url(),
            reason: "gone".to_owned(),
            next: Some(url()),
        },
        Event::Prediction {
            url: url(),
            bytes: 1,
            predicted_s: 1.0,
        },
        Event::Path {
            interface: "eth0".to_owned(),
            up: false,
        },
        Event::Bottleneck {
            interface: "eth0".to_owned(),
            with: "wlan0".to_owned(),
        },
        Event::Done {
            url: url(),
            path: "a".into(),
            bytes: 1,
            elapsed_s: 1.0,
            sha256: Some("00".to_owned()),
            protocol: None,
            deadline_met: Some(true),
        },
        Event::Sending {
            urls: vec![url()],
            lever: SenderLeverKind::Congestion,
            sender: Some(SenderPolicy::Vegas),
            controller: ControllerPolicy::Share,
            weight: 0.02,
        },
        Event::Sent {
            url: url(),
            path: "a".into(),
            bytes: 1,
            elapsed_s: 1.0,
            status: 201,
            protocol: None,
            deadline_met: Some(true),
        },
        Event::Error {
            url: url(),
            kind: ErrorKind::Network,
            message: "m".to_owned(),
            hint: "h".to_owned(),
        },
    ]
}

/// Does not compile when a variant is added: give it a sample and a chapter.
fn name(event: &Event) -> &'static str {
    match event {
        Event::Start { .. } | Event::Sending { .. } => "start",
        Event::File { .. } => "file",
        Event::Control(_) => "control",
        Event::Forecast { .. } => "forecast",
        Event::Retry { .. } => "retry",
        Event::Source { .. } => "source",
        Event::Prediction { .. } => "prediction",
        Event::Path { .. } => "path",
        Event::Bottleneck { .. } => "bottleneck",
        Event::Done { .. } | Event::Sent { .. } => "done",
        Event::Error { .. } => "error",
    }
}

/// The chapter that describes an event.
fn chapter_of(event: &Event) -> &'static str {
    let name = name(event);
    match event {
        Event::Sending { .. } | Event::Sent { .. } => chapter(&format!("`{name}` of an upload")),
        _ => chapter(&format!("`{name}`")),
    }
}

fn object(event: Event) -> Value {
    let line = json_line(&TimedEvent { t: 0.5, event }).expect("samples can be serialized");
    assert_eq!(line.matches('\n').count(), 1, "one line: {line}");
    serde_json::from_str(&line).expect("a line is one JSON value")
}

fn fields(object: &Value) -> BTreeSet<String> {
    let object = object.as_object().expect("a line is an object");
    object.keys().cloned().collect()
}

/// The part of the document below a heading.
fn chapter(name: &str) -> &'static str {
    let heading = format!("\n## {name}\n");
    let start = DOCUMENT
        .find(&heading)
        .unwrap_or_else(|| panic!("{name} has no chapter"));
    let text = &DOCUMENT[start + heading.len()..];
    let end = text
        .find("\n## ")
        .into_iter()
        .chain(text.find("\n# "))
        .min();
    &text[..end.unwrap_or(text.len())]
}

/// The fields of the first table of a chapter: the first cell of each row.
fn documented(chapter: &str) -> BTreeSet<String> {
    chapter
        .lines()
        .skip_while(|line| !line.starts_with("| field |"))
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(field, _)| field.to_owned())
        .collect()
}

#[test]
fn the_document_names_exactly_the_fields_that_are_written() {
    for event in samples() {
        let (name, chapter) = (name(&event), chapter_of(&event));
        let mut written = fields(&object(event));
        // Common to all, described once at the top of the document.
        assert!(written.remove("event") && written.remove("t"));
        assert_eq!(documented(chapter), written, "{name}");
    }
    let common = &DOCUMENT[..DOCUMENT.find("\n## ").expect("there are chapters")];
    assert_eq!(
        documented(common),
        BTreeSet::from(["event".into(), "t".into()])
    );
}

#[test]
fn the_examples_have_the_fields_that_are_written() {
    for event in samples() {
        let (name, chapter) = (name(&event), chapter_of(&event));
        let written = object(event);
        assert_eq!(written["event"], name);
        let example = chapter
            .lines()
            .find(|line| line.starts_with('{'))
            .unwrap_or_else(|| panic!("{name} has no example"));
        let example: Value = serde_json::from_str(example).expect("the example is JSON");
        assert_eq!(fields(&example), fields(&written), "{name}");
        assert_eq!(example["event"], name);
    }
}

#[test]
fn the_document_names_every_kind_of_error_lever_policy_and_state() {
    use ErrorKind::*;
    for kind in [
        Refused,
        Network,
        Server,
        Integrity,
        Disk,
        MaxTime,
        Interrupted,
        Other,
    ] {
        let code = ExitCode::of_kind(kind) as u8;
        let kind = serde_json::to_value(kind).expect("a kind is a string");
        let kind = kind.as_str().expect("a kind is a string");
        let row = chapter("`error`")
            .lines()
            .find(|line| line.starts_with(&format!("| `{kind}` |")))
            .unwrap_or_else(|| panic!("{kind} is not documented"));
        assert!(row.ends_with(&format!("| {code} |")), "{row}");
    }
    for lever in [
        LeverKind::ObservedReceiveWindow,
        LeverKind::ReceiveWindow,
        LeverKind::DscpLe,
        LeverKind::None,
    ] {
        let lever = serde_json::to_value(lever).expect("a lever is a string");
        let lever = lever.as_str().expect("a lever is a string");
        assert!(
            chapter("`start`").contains(&format!("`{lever}`")),
            "{lever} is not documented"
        );
    }
    for lever in [
        SenderLeverKind::Congestion,
        SenderLeverKind::Stock,
        SenderLeverKind::Pacing,
        SenderLeverKind::Mark,
    ] {
        let written = object(Event::Sending {
            urls: vec![],
            lever,
            sender: None,
            controller: ControllerPolicy::Share,
            weight: 1.0,
        });
        let row = format!("| `{}` |", written["lever"].as_str().expect("a string"));
        let chapter = chapter("`start` of an upload");
        assert!(chapter.contains(&row), "{row} is not documented");
    }
    for policy in [SenderPolicy::Vegas, SenderPolicy::Cdg, SenderPolicy::Cubic] {
        let row = format!("| `{}` |", policy.name());
        let chapter = chapter("`start` of an upload");
        assert!(chapter.contains(&row), "{row} is not documented");
    }
    for policy in [ReceiverPolicy::Delay, ReceiverPolicy::Vulture] {
        let row = format!("| `{}` |", policy.name());
        assert!(chapter("`start`").contains(&row), "{row} is not documented");
    }
    for policy in ControllerPolicy::ALL {
        let row = format!("| `{}` |", policy.name());
        assert!(chapter("`start`").contains(&row), "{row} is not documented");
    }
    for state in [
        ReceiveWindowState::Free,
        ReceiveWindowState::Filling,
        ReceiveWindowState::Yielding,
    ] {
        let state = serde_json::to_value(state).expect("a state is a string");
        let row = format!("| `{}` |", state.as_str().expect("a state is a string"));
        assert!(
            chapter("`control`").contains(&row),
            "{row} is not documented"
        );
    }
}

#[test]
fn a_path_that_is_not_unicode_is_written_with_replacements() {
    let object = object(Event::Done {
        url: url(),
        path: OsStr::from_bytes(b"caf\xe9.bin").into(),
        bytes: 1,
        elapsed_s: 1.0,
        sha256: None,
        protocol: None,
        deadline_met: None,
    });
    assert_eq!(object["path"], "caf\u{fffd}.bin");
    assert_eq!(object["sha256"], Value::Null);
    assert_eq!(object["deadline_met"], Value::Null);
}

#[test]
fn lines_stop_when_the_reader_is_gone() {
    let (reader, writer) = io::pipe().expect("a pipe");
    let mut lines = JsonLines::new(writer);
    drop(reader);
    for event in samples() {
        lines.write(&TimedEvent { t: 0.0, event });
    }
    assert!(lines.out.is_none());
}

#[test]
fn every_line_is_flushed() {
    let mut written = Vec::new();
    {
        let mut lines = JsonLines::new(io::BufWriter::new(&mut written));
        for event in samples() {
            lines.write(&TimedEvent { t: 0.0, event });
            let out = lines.out.as_ref().expect("memory does not fail");
            assert!(out.buffer().is_empty());
        }
    }
    assert_eq!(
        written.iter().filter(|&&b| b == b'\n').count(),
        samples().len()
    );
}
