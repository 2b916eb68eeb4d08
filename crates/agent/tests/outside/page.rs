//! The page in a real browser. Without Chromium these tests say that they are skipped.

use std::process::{Command, Stdio};
use std::{fs, io};

use crate::scene::{Serving, at, night, status, task};
use fairbat::machine::LaneDirection;
use fairbat_agent::daemon::handle::channel;
use fairbat_agent::status::{AgentStatus, FileFailure, LastRun, Outcomes, RetryReason, TaskKind};
use serde_json::{Value, json};

/// Preferences of somebody who allows no scripts. The option that turns them off
/// would leave nothing to print the page with.
const NO_SCRIPTS: &str = r#"{"profile": {"default_content_setting_values": {"javascript": 2}}}"#;

/// What Chromium makes of the page within some seconds; `None` without Chromium.
fn seen(serving: &Serving) -> Option<String> {
    dump(&serving.url("/"), "{}")
}

/// The same of any URL, with these preferences.
fn dump(url: &str, preferences: &str) -> Option<String> {
    let profile = tempfile::tempdir().expect("a temporary directory");
    let default = profile.path().join("Default");
    fs::create_dir(&default).expect("a directory");
    fs::write(default.join("Preferences"), preferences).expect("a file");
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(["--enable-logging=stderr", "--v=0"])
        .arg("--virtual-time-budget=4000")
        .arg(url)
        .stdin(Stdio::null())
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            eprintln!("SKIPPED: chromium is not installed");
            return None;
        }
        Err(error) => panic!("chromium: {error}"),
    };
    let said = String::from_utf8_lossy(&output.stderr);
    // It is quiet where the policy forbids something, but for these lines.
    assert!(!said.contains("Content Security Policy"), "{said}");
    assert!(!said.contains("Uncaught"), "{said}");
    assert!(output.status.success(), "{said}");
    Some(String::from_utf8(output.stdout).expect("a page"))
}

#[test]
fn it_tells_times_and_amounts_as_people_do_and_keeps_itself_fresh() {
    let (handle, port) = night();
    let serving = Serving::begin(handle, port);
    let Some(page) = seen(&serving) else {
        return;
    };
    for words in [
        "<h1>2 tasks need a look</h1>",
        "<title>2 tasks need a look – fairbat</title>",
        "Wed 25 Mar, 02:14:07",
        ">06:00<",
        "in 3 h 46 min",
        "about 05:48",
        "12 min early",
        "25 min late",
        "57 % done; an even pace would be at 53 %",
        "136 GB of 238 GB",
        "1,482 of 2,311 files",
        "3 files failed",
        "`fairbat status mail` says more",
        "1 file is missing or damaged",
        "`fairbat status home` says more",
        "yesterday 23:02",
        "58 min early",
        "From this machine",
        "To this machine",
        "10.9 MB/s",
        "held back by",
        "fresh every 5 seconds",
    ] {
        assert!(page.contains(words), "{words}\n{page}");
    }
    // Four charts for each lane, and no space for what is not there.
    assert_eq!(page.matches("<figure").count(), 8);
    assert_eq!(page.matches("<path class=\"line").count(), 12);
    let drawn = page.split_once("<main").expect("a page").1;
    let drawn = drawn.split_once("</main>").expect("a page").0;
    for wrong in ["NaN", "inf%", "undefined", "null", "[object"] {
        assert!(!drawn.contains(wrong), "{wrong}\n{drawn}");
    }
    assert!(page.contains("role=\"alert\" hidden"), "{page}");
    assert!(!page.contains("lost.jpg"), "{page}");
}

/// The page is drawn by its script. What it cannot show without one, the command does.
#[test]
fn without_its_script_it_says_what_to_do() {
    let (handle, port) = night();
    let serving = Serving::begin(handle, port);
    let Some(page) = dump(&serving.url("/"), NO_SCRIPTS) else {
        return;
    };
    let told = page.split_once("<noscript>").expect("a page").1;
    assert!(
        told.contains("fairbat status</code> shows the same"),
        "{page}"
    );
    assert!(!page.contains("fresh every 5 seconds</span>"), "{page}");
}

#[test]
fn nothing_that_others_say_is_markup() {
    let evil = "<script>alert(1)</script>\"'&\u{202e}\u{1b}";
    let mut odd = task(evil, TaskKind::Job, LaneDirection::Push);
    (odd.from, odd.to) = (evil.into(), evil.into());
    odd.last = Some(LastRun {
        began: at("2026-03-25T00:00:00Z"),
        ended: at("2026-03-25T01:00:00Z"),
        ok: false,
        in_time: None,
        problem: Some("only the socket has this".into()),
        summary: Some(evil.into()),
        hint: Some("only the socket has this".into()),
        files: Outcomes::default(),
        failures: vec![FileFailure {
            path: "only the socket has this".into(),
            problem: "only the socket has this".into(),
            hint: None,
        }],
        notes: Vec::new(),
    });
    let mut again = task("again", TaskKind::Job, LaneDirection::Push);
    again.retry = Some(RetryReason {
        problem: "only the socket has this".into(),
        summary: Some(evil.into()),
        hint: Some("only the socket has this".into()),
    });
    let mut status = AgentStatus {
        version: evil.into(),
        tasks: vec![odd, again],
        ..status(0)
    };
    status.lanes[0].lever = evil.into();
    let (handle, port) = channel(status);
    let serving = Serving::begin(handle, port);
    let Some(page) = seen(&serving) else {
        return;
    };
    assert!(
        !page.contains("<script>alert(1)</script>\"'&amp;"),
        "{page}"
    );
    assert_eq!(page.matches("<script>").count(), 1);
    // Name, from, to, problem, the name in the hint, the other problem, lever and version.
    let escaped = "&lt;script&gt;alert(1)&lt;/script&gt;\"'&amp;\u{202e}\u{fffd}";
    assert_eq!(page.matches(escaped).count(), 8, "{page}");
    assert!(!page.contains("only the socket has this"), "{page}");
}

#[test]
fn an_agent_without_anything_has_a_page_too() {
    let mut status = status(0);
    status.tasks.clear();
    status.lanes[1].can_yield = false;
    let (handle, port) = channel(status);
    let serving = Serving::begin(handle, port);
    let Some(page) = seen(&serving) else {
        return;
    };
    let drawn = page.split_once("<main").expect("a page").1;
    let drawn = drawn.split_once("</main>").expect("a page").0;
    assert!(drawn.contains("There is nothing to do"), "{drawn}");
    assert!(drawn.contains("Nothing was measured"), "{drawn}");
    assert!(!drawn.contains("<figure"), "{drawn}");
    // A lane that cannot yield says what to do.
    assert_eq!(drawn.matches("fairbat doctor").count(), 1);
}

/// What the script's own functions make of these arguments.
#[test]
fn its_functions_speak_and_draw_as_people_read() {
    let now = "2026-03-28T22:00:00Z";
    let cases = [
        // Amounts have three digits and a unit.
        ("amount(0)", json!("0 B")),
        ("amount(999.4)", json!("999 B")),
        ("amount(999.6)", json!("1.00 kB")),
        ("amount(12400000)", json!("12.4 MB")),
        ("amount(99960000)", json!("100 MB")),
        ("amount(999600000)", json!("1.00 GB")),
        ("amount(63e9)", json!("63.0 GB")),
        ("amount(2e21)", json!("2000 EB")),
        ("tell.rate(1e6)", json!("1.00 MB/s")),
        (
            "[0, 999, 1000, 1234567].map(count)",
            json!(["0", "999", "1,000", "1,234,567"]),
        ),
        // Spans have two units at most.
        ("duration(0.4)", json!("0 s")),
        ("duration(59.4)", json!("59 s")),
        ("duration(59.6)", json!("1 min")),
        ("duration(-720)", json!("12 min")),
        ("duration(3599)", json!("1 h")),
        ("duration(13560)", json!("3 h 46 min")),
        ("duration(86400)", json!("1 d")),
        ("duration(183600)", json!("2 d 3 h")),
        // Moments are told by the day where it is another. Summer time has begun by
        // the second.
        ("moment('2026-03-28T22:30:00Z', now)", json!("23:30")),
        (
            "moment('2026-03-29T04:00:00Z', now)",
            json!("tomorrow 06:00"),
        ),
        (
            "moment('2026-03-27T21:00:00Z', now)",
            json!("yesterday 22:00"),
        ),
        ("moment('2026-03-30T04:00:00Z', now)", json!("Mon 06:00")),
        ("moment('2026-04-07T04:00:00Z', now)", json!("7 Apr 06:00")),
        ("moment('2027-04-07T04:00:00Z', now)", json!("7 Apr 2027")),
        // The upper line is a round number above all values.
        ("roundTop(1, [null, 0.1])", json!(1)),
        ("roundTop(1, [null, 1.01])", json!(1.5)),
        ("roundTop(1, [null, 7])", json!(8)),
        ("roundTop(1, [null, 9])", json!(10)),
        ("roundTop(1, [null, 20e6])", json!(20e6 as u32)),
        ("roundTop(2)", json!(2)),
        // Labels keep apart and inside.
        ("apart([60])", json!([60])),
        ("apart([0, 120])", json!([15, 105])),
        ("apart([118, 117])", json!([105, 75])),
        ("apart([0, 1])", json!([15, 45])),
        // What is not known is a gap.
        ("runs([1, 2, null, 3])", json!([[0, 1], [3]])),
        // Without the name of a zone, its offset counts. This changes all later moments.
        (
            "(setZone('', 19800), moment('2026-03-28T22:30:00Z', now))",
            json!("04:00"),
        ),
    ];
    let page = include_str!("../../src/web/index.html");
    let calls: Vec<_> = cases.iter().map(|(call, _)| *call).collect();
    let results = format!(
        "<pre id=\"results\"></pre><script>{{ zone = 'Europe/Berlin'; const now = '{now}'; \
         document.getElementById('results').textContent = JSON.stringify([{}]); }}</script>",
        calls.join(", ")
    );
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("page.html");
    fs::write(&file, page.replace("</body>", &format!("{results}</body>"))).expect("a file");
    let Some(page) = dump(&format!("file://{}", file.display()), "{}") else {
        return;
    };
    let told = page.split_once("<pre id=\"results\">").expect("results").1;
    let told = told.split_once("</pre>").expect("results").0;
    let told: Vec<Value> = serde_json::from_str(told).expect("JSON");
    assert_eq!(told.len(), cases.len());
    for ((call, expected), told) in cases.iter().zip(&told) {
        assert_eq!(told, expected, "{call}");
    }
}
