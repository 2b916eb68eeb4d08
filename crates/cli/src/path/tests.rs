//! What people and programs read of a path.

use dalbe::receive_window::PathFindings;

use super::*;

fn seen(kind: Option<BottleneckKind>) -> PathDiagnosis {
    PathDiagnosis {
        is_held: true,
        bytes: Some(1 << 30),
        findings: Some(PathFindings {
            kind,
            rate: 1_200_000.0,
            base: Duration::from_millis(50),
            longest_queue: Duration::from_micros(47_250),
        }),
        has_ended: false,
        fetched: 20 << 20,
        elapsed: Duration::from_secs(20),
    }
}

fn words(seen: &PathDiagnosis) -> String {
    DiagnosisReport::new("http://example.org/x".to_owned(), seen).to_string()
}

#[test]
fn people_read_the_kind_and_how_well_a_download_yields() {
    let text = words(&seen(Some(BottleneckKind::ManagedQueue)));
    for part in [
        "Bottleneck: managed-queue\n  A managed queue (CoDel, PIE).",
        "How well a download yields there\n  Less well.",
        "\nround trip     50.0 ms, without a queue",
        "\nlongest queue  47.2 ms",
        "\nmeasured       20.00 MiB in 20.0 s, thrown away",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
}

#[test]
fn an_unknown_kind_has_its_reason() {
    let unknown = seen(None);
    assert!(words(&unknown).contains("longer --measure"));
    let small = PathDiagnosis {
        has_ended: true,
        ..unknown
    };
    assert!(words(&small).contains("too small to tell"));
    let free = PathDiagnosis {
        is_held: false,
        findings: None,
        ..unknown
    };
    assert!(words(&free).contains("Not at all"));
    assert!(words(&free).contains("longest queue  unknown"));
}

#[test]
fn programs_get_names_and_null() {
    let json = |seen| serde_json::to_value(DiagnosisReport::new(String::new(), &seen)).unwrap();
    let policed = json(seen(Some(BottleneckKind::LossWithoutQueue)));
    assert_eq!(policed["bottleneck"], "loss-without-queue");
    assert_eq!(policed["rate"], 1_200_000.0);
    assert_eq!(policed["base_rtt_ms"], 50.0);
    let unknown = json(seen(None));
    assert!(unknown["bottleneck"].is_null());
    assert_eq!(unknown["measured_bytes"], 20 << 20);
}
