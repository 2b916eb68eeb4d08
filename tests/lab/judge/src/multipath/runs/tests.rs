use super::*;
use crate::multipath::record::Transfer;
use lab_run::files;

fn scenario() -> Scenario {
    let text = r#"
        description = "metered"
        duration_s = 70
        measure_from_s = 2
        [[link]]
        path = "a"
        rate_mbit = 10
        delay_ms = 10
        queue = { bdp = 1.0 }
        [[link]]
        path = "b"
        cost = "metered"
        rate_mbit = 10
        delay_ms = 20
        queue = { bdp = 1.0 }
        departures = { times = 3, least_s = 1, most_s = 2 }
        [[foreground]]
        traffic = { constant = { rate_mbit = 4 } }
        [background]
        start_s = 2
        size_mb = 100
        deadline_s = 60
    "#;
    let scenario: Scenario = toml::from_str(text).unwrap();
    assert_eq!(scenario.check(), Ok(()));
    scenario
}

fn row(carrier: Carrier, seconds: Option<f64>, payload: [u64; 2], rate: u64) -> RunRow {
    RunRow {
        scenario: "s".to_owned(),
        seed: 1,
        carrier,
        bytes: 100_000_000,
        transfer: Some(Transfer {
            seconds,
            ..Transfer::default()
        }),
        began_s: 2.0,
        departures: vec![0, 3],
        payload: payload.to_vec(),
        foreground: (1..=700).map(|tenth| tenth * rate).collect(),
        late_p99_ms: 0.1,
        overrun: 0,
    }
}

#[test]
fn what_comes_beyond_is_kept_and_had_to_be_is_calculated() {
    let scenario = scenario();
    let fairbat = row(Carrier::Fairbat, Some(58.0), [72_000_000, 30_000_000], 99);
    let alone = row(Carrier::None, None, [0, 0], 100);
    assert!((fairbat.beyond().unwrap() - 0.02).abs() < 1e-9);
    assert!((fairbat.kept(&scenario, &alone).unwrap() - 0.99).abs() < 1e-9);
    // 10 Mbit/s carry 1.2067 MB/s of payload, which is 72.4 MB in 60 s.
    let needed = needed(&scenario).unwrap();
    assert!((needed - 27.6e6).abs() < 1e4, "{needed}");
    assert!((fairbat.metered(&scenario).unwrap() - 30.0 / 27.6).abs() < 1e-3);
    assert_eq!(alone.beyond(), None);
}

#[test]
fn a_page_judges_what_the_scenario_is_for() {
    let scenarios = [("s".to_owned(), scenario())];
    let rows = [
        row(Carrier::None, None, [0, 0], 100),
        row(Carrier::Fairbat, Some(61.0), [72_000_000, 40_000_000], 90),
    ];
    let page = page(&scenarios, &rows);
    let verdict = |what: &str| {
        let found = page.lines().find(|line| line.contains(what));
        let line = found.unwrap_or_else(|| panic!("{what}: {page}"));
        line.contains("does not hold")
    };
    assert!(!verdict("there and right"));
    assert!(verdict("by its deadline"));
    assert!(verdict("beyond the file came"));
    assert!(verdict("the foreground keeps"));
    assert!(verdict("metered paths carry"));
    assert!(
        page.contains("| fairbat | 1 of 1 | 61.0 | 3 | 72.0 | 40.0 | 12.0 | 90.0 | 1.45 |"),
        "{page}"
    );
}

#[test]
fn the_scenarios_of_the_plans_ask_for_what_they_are_for() {
    for (name, plan) in files::all::<PathsPlan>(&files::multipath()).unwrap() {
        for (scenario, it) in plan.runs.iter().flat_map(|runs| runs.all().unwrap()) {
            let has_departures = it.link.iter().any(|link| link.departures.is_some());
            let asks = has_departures || it.background.deadline_s.is_some();
            assert!(asks, "{name}: {scenario}");
            let has_metered = it.link.iter().any(|link| link.cost == Cost::Metered);
            assert_eq!(needed(&it).is_some(), has_metered, "{scenario}");
        }
    }
}
