//! What matrices say, and what they run.

use std::collections::BTreeMap;

use super::*;
use lab_run::contender::TargetDelay;
use lab_run::files;

const GOOD: &str = r#"
    description = "good"
    scenarios = ["one", "two"]
    contenders = ["none", "curl"]
    congestion_controls = ["cubic", "bbr"]
    seeds = [1, 2]
    time_scale = 3
    measure_last_s = 12
    variants = [{ name = "slow", jobs = 1, sampling_ms = 10, weight = 0.3, connections = 4, g_ms = 2, path = { rate_mbit = 2, rtt_ms = 40, queue_bdp = 1 } }]
"#;

#[test]
fn every_matrix_names_scenarios_that_are_there() {
    let matrices: BTreeMap<String, Matrix> = files::all(&files::matrices()).unwrap();
    assert!(!matrices.is_empty());
    for (name, matrix) in matrices {
        let matrix = matrix.expanded();
        let mut matrix = matrix.unwrap_or_else(|error| panic!("{name}: {error}"));
        for scenario in &matrix.scenarios {
            let found = files::by_name::<Scenario>(&files::scenarios(), scenario);
            let found = found.unwrap_or_else(|error| panic!("{name}: {error}"));
            for is_quick in [false, true] {
                let run = matrix.as_run(&found, is_quick);
                let run = run.unwrap_or_else(|error| panic!("{name}: {scenario}: {error}"));
                for variant in &matrix.variants {
                    let run = variant.as_run(&run);
                    run.unwrap_or_else(|error| panic!("{name}: {scenario}: {error}"));
                }
            }
        }
        assert_eq!(matrix.only_quick_variants(), Ok(()), "{name}");
        assert!(matrix.variants.len() <= 12, "{name}");
    }
}

#[test]
fn variants_come_from_a_list_another_matrix_and_a_seed() {
    let more = "variants_of = { matrix = \"sender-alone\", names = [\"10 Mbit, 50 ms\"] }\n\
                draw = { seed = 3, cells = 2 }\n";
    let expanded = |more: &str| {
        let matrix: Matrix = toml::from_str(&format!("{GOOD}{more}")).unwrap();
        matrix.expanded()
    };
    let mut matrix = expanded(more).unwrap();
    let drawn = Draw { seed: 3, cells: 2 }.variants();
    let names: Vec<_> = matrix.variants.iter().map(|one| one.name.clone()).collect();
    let expected = ["slow", "10 Mbit, 50 ms", &drawn[0].name, &drawn[1].name];
    assert_eq!(names, expected);
    assert_eq!(matrix.variants[1].jobs, Some(12));
    let missing = expanded(&more.replace("10 Mbit", "11 Mbit")).unwrap_err();
    assert!(missing.contains("no variant 11 Mbit, 50 ms"), "{missing}");
    let error = matrix.only_variants(&["fast".to_owned()]).unwrap_err();
    assert!(error.contains("it has slow; 10 Mbit"), "{error}");
    assert_eq!(matrix.only_variants(&names[1..2]), Ok(()));
    assert_eq!(matrix.variants.len(), 1);
    assert_eq!(matrix.only_variants(&[]), Ok(()));
    assert_eq!(matrix.variants.len(), 1);
}

#[test]
fn a_longer_matrix_has_quick_variants_as_short_as_any() {
    let matrix: Matrix = toml::from_str(GOOD).unwrap();
    let text = "description = \"a test\"\nduration_s = 20.0\nmeasure_from_s = 0.0\n\
                [[link]]\nrate_mbit = 8.0\ndelay_ms = 0.0\nqueue = { packets = 9 }\n\
                [background]\nsize_mb = 5.0\n[quick]\nduration_s = 9.0\n";
    let scenario: Scenario = toml::from_str(text).unwrap();
    let length = |is_quick| matrix.as_run(&scenario, is_quick).unwrap().duration_s;
    assert_eq!((length(false), length(true)), (60.0, 9.0));
    let long = matrix.as_run(&scenario, false).unwrap();
    assert_eq!(long.background.size_mb, Some(15.0));
    assert_eq!(long.measured(), 48.0..60.0);
}

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    let check = |text: &str| toml::from_str::<Matrix>(text).unwrap().check();
    assert_eq!(check(GOOD), Ok(()));
    for (good, bad, expected) in [
        ("\"one\", \"two\"", "", "scenarios must name something"),
        (
            "\"one\", \"two\"",
            "\"one\", \"one\"",
            "scenarios must name nothing twice",
        ),
        (
            "[1, 2]",
            "[1, 2]\nat = [{ contenders = [\"utp\"], scenarios = [\"one\"] }]",
            "at: utp is none",
        ),
        (
            "[1, 2]",
            "[1, 2]\nat = [{ contenders = [\"curl\"], scenarios = [\"six\"] }]",
            "at: six is none",
        ),
        (
            "[1, 2]",
            "[1, 2]\nat = [{ contenders = [\"curl\"], scenarios = [] }]",
            "at: scenarios must name something",
        ),
        (
            "[1, 2]",
            "[1, 2]\nat = [{ contenders = [\"curl\", \"curl\"], scenarios = [\"one\"] }]",
            "at: contenders must name nothing twice",
        ),
        ("[1, 2]", "[2, 2]", "seeds must name nothing twice"),
        (
            "[1, 2]",
            "[1, 2]\nmore = [{ contenders = [\"utp\"], scenarios = [\"one\"], seeds = [3] }]",
            "more: utp is none",
        ),
        (
            "[1, 2]",
            "[1, 2]\nmore = [{ contenders = [\"curl\"], scenarios = [\"six\"], seeds = [3] }]",
            "more: six is none",
        ),
        (
            "[1, 2]",
            "[1, 2]\nat = [{ contenders = [\"curl\"], scenarios = [\"two\"] }]\n\
             more = [{ contenders = [\"curl\"], scenarios = [\"one\"], seeds = [3] }]",
            "more: curl does not run in one",
        ),
        (
            "[1, 2]",
            "[1, 2]\nmore = [{ contenders = [\"curl\"], scenarios = [\"one\"], seeds = [2] }]",
            "more: 2 is one of the seeds",
        ),
        (
            "[1, 2]",
            "[1, 2]\nmore = [{ contenders = [\"curl\"], scenarios = [\"one\"], seeds = [] }]",
            "more: seeds must name something",
        ),
        ("\"bbr\"", "\"b b\"", "congestion_control must"),
        ("time_scale = 3", "time_scale = 0", "time_scale must"),
        ("time_scale = 3", "labs = 0", "labs must"),
        ("\"slow\"", "\"../slow\"", "../slow"),
        ("jobs = 1", "jobs = 0", "jobs must"),
        ("sampling_ms = 10", "sampling_ms = 0", "sampling_ms must"),
        ("weight = 0.3", "weight = 0", "variants: weight must"),
        (
            "connections = 4",
            "connections = 0",
            "variants: connections must",
        ),
        ("g_ms = 2", "g_ms = 0", "variants: g_ms must"),
    ] {
        assert!(GOOD.contains(good), "{good}");
        let error = check(&GOOD.replacen(good, bad, 1)).expect_err(bad);
        assert!(error.contains(expected), "{bad}: {error}");
    }
}

#[test]
fn a_part_of_a_matrix_is_what_was_asked_for() {
    let mut matrix: Matrix = toml::from_str(GOOD).unwrap();
    let two = ["two".to_owned()];
    assert_eq!(matrix.only(&two, &[Contender::Curl], &[]), Ok(()));
    let names: Vec<_> = matrix.cells(None).iter().map(Cell::file_name).collect();
    let expected = ["cubic-1", "bbr-1", "cubic-2", "bbr-2"].map(|end| format!("two-curl-{end}"));
    assert_eq!(names, expected);
    let error = matrix
        .only(&[], &[Contender::Utp(TargetDelay::Standard)], &[])
        .unwrap_err();
    assert_eq!(error, "the matrix has no contender utp; it has curl");
    assert!(matrix.only(&[], &[], &[3]).unwrap_err().contains("seed 3"));
}

#[test]
fn a_contender_runs_only_where_it_is_to() {
    let text = GOOD.replacen(
        "[1, 2]",
        "[1]\nat = [{ contenders = [\"curl\"], scenarios = [\"two\"] }]",
        1,
    );
    let matrix: Matrix = toml::from_str(&text).unwrap();
    assert_eq!(matrix.check(), Ok(()));
    let names: Vec<_> = matrix.cells(None).iter().map(Cell::file_name).collect();
    let expected = [
        "one-none-1",
        "two-none-1",
        "two-curl-cubic-1",
        "two-curl-bbr-1",
    ];
    assert_eq!(names, expected);
    let only = |scenario: &str| {
        let mut matrix = matrix.clone();
        matrix.only(&[scenario.to_owned()], &[Contender::Curl], &[])
    };
    assert_eq!(only("two"), Ok(()));
    assert!(only("one").unwrap_err().contains("no such contender runs"));
}

#[test]
fn runs_may_be_of_some_variants_only() {
    let text = GOOD
        .replacen("variants = [{", "variants = [{ name = \"fast\" }, {", 1)
        .replacen(
            "[1, 2]",
            "[1]\nat = [{ contenders = [\"none\"], scenarios = [\"one\"], variants = [\"slow\"] }]\n\
             more = [{ contenders = [\"none\"], scenarios = [\"one\"], variants = [\"slow\"], seeds = [2] }]",
            1,
        );
    let matrix: Matrix = toml::from_str(&text).unwrap();
    let matrix = matrix.expanded().unwrap();
    let of = |variant: &str| {
        let mut ways = matrix.ways().flatten();
        matrix.cells(ways.find(|way| way.name == variant))
    };
    let none = |variant: &str| {
        let cells = of(variant).into_iter();
        let cells = cells.filter(|cell| cell.contender == Contender::None);
        cells.map(|cell| cell.seed).collect::<Vec<_>>()
    };
    assert_eq!((none("slow"), none("fast")), (vec![1, 2], vec![]));
    let fast = of("fast");
    assert_eq!(fast.len(), 4, "{fast:?}");
    let text = text.replace(
        "variants = [\"slow\"], seeds",
        "variants = [\"six\"], seeds",
    );
    let wrong: Matrix = toml::from_str(&text).unwrap();
    let error = wrong.expanded().unwrap_err();
    assert!(error.contains("no variant six"), "{error}");
}

#[test]
fn controls_are_for_those_that_heed_them() {
    let matrix: Matrix = toml::from_str(GOOD).unwrap();
    let names: Vec<_> = matrix.cells(None).iter().map(Cell::file_name).collect();
    assert_eq!(
        names[..4],
        [
            "one-none-1",
            "one-curl-cubic-1",
            "one-curl-bbr-1",
            "two-none-1"
        ]
    );
    assert_eq!(names.len(), 12);
}

#[test]
fn more_seeds_are_for_those_that_are_to_have_them() {
    let text = GOOD.replacen(
        "[1, 2]",
        "[2]\nat = [{ contenders = [\"curl\"], scenarios = [\"two\"] }]\n\
         more = [\n\
         { contenders = [\"none\"], scenarios = [\"one\"], seeds = [3, 1] },\n\
         { contenders = [\"none\", \"curl\"], scenarios = [\"two\"], seeds = [3] },\n\
         ]",
        1,
    );
    let matrix: Matrix = toml::from_str(&text).unwrap();
    assert_eq!(matrix.check(), Ok(()));
    let names = |seeds: &[u64]| {
        let mut matrix = matrix.clone();
        matrix.only(&[], &[], seeds).unwrap();
        let names: Vec<_> = matrix.cells(None).iter().map(Cell::file_name).collect();
        names
    };
    let seed_3 = [
        "one-none-3",
        "two-none-3",
        "two-curl-cubic-3",
        "two-curl-bbr-3",
    ];
    assert_eq!(names(&[3]), seed_3);
    let mut all = [
        "one-none-2",
        "two-none-2",
        "two-curl-cubic-2",
        "two-curl-bbr-2",
    ]
    .to_vec();
    all.push("one-none-1");
    all.extend(seed_3);
    assert_eq!(names(&[]), all);
    let planned = matrix.planned();
    assert_eq!(planned["one"]["none"], [1, 2, 3].into());
    assert_eq!(planned["two"]["curl"], [2, 3].into());
    assert_eq!(planned["one"].get("curl"), None);
    let plain: Matrix = toml::from_str(GOOD).unwrap();
    assert!(plain.planned().is_empty());
}
