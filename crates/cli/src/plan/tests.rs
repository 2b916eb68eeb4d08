use fairbat::path_measurement::Measurement;
use fairbat::path_measurement::forecast::Rates;
use serde_json::{Value, json};

use super::*;
use crate::args::tests::plan_from;

/// What is documented of the object.
fn chapter() -> &'static str {
    let document = include_str!("../../../../docs/json.md");
    let start = document.find("\n# `fairbat plan`\n");
    &document[start.expect("plan has a chapter")..]
}

/// Two hours before six, in central Europe.
const NOW: &str = "2026-03-01T04:00:00+01:00[+01:00]";
const SIX: &str = "2026-03-01T06:00:00+01:00";

fn request(deadline: &str) -> ForecastRequest {
    ForecastRequest {
        url: "http://me:secret@h/f".parse().expect("a URL"),
        deadline: deadline.parse().expect("a moment"),
        measure: Duration::from_secs(10),
        http: Default::default(),
    }
}

/// A file of so many bytes on a path of 1000 byte/s, 1500 at best.
fn measured(bytes: u64) -> PathMeasurement {
    PathMeasurement {
        bytes: Some(bytes),
        ranges: true,
        measurement: Some(Measurement {
            rates: Rates {
                polite: 1000.0,
                peak: 1500.0,
            },
            bytes: 10_000,
            elapsed: Duration::from_secs(10),
        }),
    }
}

fn unmeasured(bytes: Option<u64>, ranges: bool) -> PathMeasurement {
    PathMeasurement {
        bytes,
        ranges,
        measurement: None,
    }
}

fn report(deadline: &str, survey: &PathMeasurement) -> ForecastReport {
    ForecastReport::new(&request(deadline), survey, &NOW.parse().expect("a moment"))
}

fn object(deadline: &str, survey: &PathMeasurement) -> Value {
    serde_json::from_str(&report(deadline, survey).json()).expect("it is JSON")
}

#[test]
fn programs_get_one_object() {
    // 900 s of work and a margin of 100 s.
    let mut object = object(SIX, &measured(900_000));
    let needed = object["needed_rate"].take();
    assert_eq!(
        object,
        json!({
            "url": "http://h/f",
            "bytes": 900_000,
            "ranges": true,
            "now": "2026-03-01T03:00:00.000Z",
            "deadline": "2026-03-01T05:00:00.000Z",
            "needed_rate": null,
            "measured_s": 10.0,
            "measured_bytes": 10_000,
            "polite_rate": 1000.0,
            "peak_rate": 1500.0,
            "verdict": "comfortable",
            "explanation": "at most 80 % of the average is needed",
            "latest_start": object["latest_start"],
            "latest_start_past": false,
        })
    );
    // 2 h less 10 %.
    let needed = needed.as_f64().expect("a number");
    assert!((needed - 900_000.0 / 6480.0).abs() < 0.01, "{needed}");
    let start = object["latest_start"].as_str().expect("a moment");
    let start: Timestamp = start.parse().expect("RFC 3339");
    let expected: Timestamp = "2026-03-01T04:43:20Z".parse().expect("a moment");
    assert!(start.duration_since(expected).abs() < SignedDuration::from_millis(10));
}

#[test]
fn what_is_not_known_is_null() {
    let object = object(SIX, &unmeasured(None, false));
    for name in [
        "bytes",
        "needed_rate",
        "measured_s",
        "measured_bytes",
        "polite_rate",
        "peak_rate",
        "latest_start",
        "latest_start_past",
    ] {
        assert_eq!(object.get(name), Some(&Value::Null), "{name}");
    }
    assert_eq!(object["verdict"], "unknown");
}

#[test]
fn each_verdict_says_why() {
    let over = "2026-03-01T03:59:00+01:00";
    for (deadline, survey, verdict, why) in [
        (SIX, measured(1000), "comfortable", "80 %"),
        (SIX, measured(6_000_000), "tight", "80 %"),
        (SIX, measured(20_000_000), "impossible", "one connection"),
        (over, measured(1), "impossible", "over"),
        (over, unmeasured(None, false), "impossible", "over"),
        (SIX, unmeasured(Some(0), true), "comfortable", "empty"),
        (SIX, unmeasured(None, true), "unknown", "size"),
        (SIX, unmeasured(Some(1), false), "unknown", "ranges"),
        (SIX, unmeasured(Some(1), true), "unknown", "nothing was"),
    ] {
        let object = object(deadline, &survey);
        assert_eq!(object["verdict"], verdict, "{object}");
        let said = object["explanation"].as_str().expect("a text");
        assert!(said.contains(why), "{object}");
    }
}

#[test]
fn people_get_aligned_lines_in_local_time() {
    let text = report(SIX, &measured(900_000)).to_string();
    let starts: Vec<_> = text.lines().map(|line| &line[..14]).collect();
    assert_eq!(
        starts,
        [
            "size          ",
            "deadline      ",
            "needed        ",
            "measured      ",
            "verdict       ",
            "latest start  ",
        ]
    );
    assert!(
        text.contains("deadline      2026-03-01 06:00:00 +01, in 2h\n"),
        "{text}"
    );
    assert!(text.contains("verdict       comfortable: "), "{text}");
    assert!(text.contains("latest start  2026-03-01 05:43:"), "{text}");
    assert!(text.contains("in 1h 43m"), "{text}");
    assert!(!text.contains("secret"), "{text}");
}

#[test]
fn what_is_too_late_is_said_plainly() {
    // 7200 s are there, 10,000 and a margin of 1,111 would have to be.
    let text = report(SIX, &measured(10_000_000)).to_string();
    assert!(text.contains("already past, by 1h 5m"), "{text}");
    let over = report("2026-03-01T02:00:00Z", &measured(1)).to_string();
    assert!(
        over.contains("03:00:00 +01, already past, by 1h\n"),
        "{over}"
    );
    assert!(
        over.contains("needed        there is no time left\n"),
        "{over}"
    );
    // So slow that no calendar has its start.
    let mut survey = measured(u64::MAX);
    if let Some(measurement) = &mut survey.measurement {
        measurement.rates.polite = 1e-9;
    }
    let never = report(SIX, &survey).to_string();
    assert!(never.ends_with("latest start  unknown"), "{never}");
}

#[test]
fn the_object_is_documented() {
    let object = object(SIX, &measured(1));
    let fields: Vec<_> = object.as_object().expect("an object").keys().collect();
    let cell = |line: &'static str| Some(line.strip_prefix("| `")?.split_once('`')?.0);
    let mut documented: Vec<_> = chapter()
        .lines()
        .skip_while(|line| !line.starts_with("| field |"))
        .take_while(|line| !line.is_empty())
        .filter_map(cell)
        .collect();
    documented.sort_unstable();
    assert_eq!(fields, documented);
    let example = chapter().split("```").nth(1).expect("an example");
    let example: Value =
        serde_json::from_str(example.trim_start_matches("json")).expect("it is JSON");
    let names: Vec<_> = example.as_object().expect("an object").keys().collect();
    assert_eq!(names, fields);
}

#[test]
fn each_verdict_is_documented_with_its_exit_status() {
    for verdict in [
        Verdict::Comfortable,
        Verdict::Tight,
        Verdict::Impossible,
        Verdict::Unknown,
    ] {
        let name = serde_json::to_value(verdict).expect("a name");
        let name = name.as_str().expect("a text");
        let row = chapter()
            .lines()
            .find(|line| line.starts_with(&format!("| `{name}` |")))
            .unwrap_or_else(|| panic!("{name} has no row"));
        let status = format!("| {} |", ExitCode::of_verdict(verdict) as u8);
        assert!(row.ends_with(&status), "{row}");
    }
}

fn ask(words: &[&str]) -> Result<ForecastRequest, String> {
    let now = "2026-03-01T14:00:00+01:00[+01:00]"
        .parse()
        .expect("a moment");
    let variable = |name: &str| (name == "HOME").then(|| "/home/me".into());
    let args = plan_from(words).map_err(|error| error.to_string())?;
    resolve(&args, &now, &variable).map_err(|error| error.to_string())
}

#[test]
fn a_request_is_a_url_a_deadline_and_a_measure() {
    let plain = ask(&["--deadline", "06:00", "http://me:pw@h/f"]).expect("it is right");
    assert_eq!(plain.url.as_str(), "http://me:pw@h/f");
    assert_eq!(plain.deadline.to_string(), "2026-03-02T05:00:00Z");
    assert_eq!(plain.measure, Duration::from_secs(10));
    assert_eq!(plain.http.connect_timeout, Some(Duration::from_secs(30)));
    assert!(plain.http.user.is_none() && plain.http.headers.is_empty());
}

#[test]
fn it_takes_the_flags_of_requests() {
    let flags = [
        "--deadline=2026-03-01T12:00:00Z",
        "--measure=0",
        "-uyou:pw",
        "-HX-A: b",
        "-n",
        "--cacert=ca.pem",
        "--connect-timeout=0",
        "--stall-timeout=3s",
        "http://h/f",
    ];
    let request = ask(&flags).expect("it is right");
    // A deadline that is over has a report too.
    assert_eq!(request.deadline.to_string(), "2026-03-01T12:00:00Z");
    assert_eq!(request.measure, Duration::ZERO);
    let http = request.http;
    assert_eq!(http.user.map(|user| user.user), Some("you".to_owned()));
    assert_eq!(http.headers.len(), 1);
    assert_eq!(http.netrc, Some("/home/me/.netrc".into()));
    assert_eq!(http.cacert, Some("ca.pem".into()));
    assert_eq!(http.connect_timeout, None);
    assert_eq!(http.stall_timeout, Some(Duration::from_secs(3)));
}

#[test]
fn what_is_wrong_is_named() {
    for (words, expected) in [
        (["--deadline", "soon", "http://h/f"], "--deadline: \"soon\""),
        (
            ["--deadline=4h", "--measure=x", "http://h/f"],
            "'x' for '--measure",
        ),
        (["--deadline=4h", "--user=me", "http://h/f"], "--user"),
        (
            ["--deadline", "4h", "example.org/f"],
            "https://example.org/f ?",
        ),
    ] {
        let error = ask(&words).expect_err(expected);
        assert!(error.contains(expected), "{words:?}: {error}");
    }
}
