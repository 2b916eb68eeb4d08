use super::*;
use crate::report::tests::synthetic;
use lab_run::jobs::{ChunkFigures, Found, LimitFigures};

fn read_back(matrix: &MatrixRecord) -> MatrixRecord {
    MatrixRecord::from_lines(&matrix.lines(DIGITS).unwrap()).unwrap()
}

#[test]
fn the_index_names_every_page() {
    let results = lab_run::files::results();
    let index = fs::read_to_string(results.join("README.md")).unwrap();
    for entry in fs::read_dir(&results).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".md") && name != "README.md" {
            assert!(index.contains(&format!("]({name})")), "{name}");
        }
    }
}

#[test]
fn the_results_are_read_whatever_else_is_there() {
    let all = MatrixRecord::read_all(&lab_run::files::results()).unwrap();
    assert!(all.iter().any(|matrix| matrix.name == "bottlenecks"));
}

#[test]
fn a_matrix_survives_its_file() {
    let mut matrix = synthetic::matrix();
    matrix.runs = vec![synthetic::run("constant", "curl", 1, &[4.5, 0.25])];
    // As a matrix makes it that is a third as long.
    matrix.scenarios.get_mut("web").unwrap().duration_s = 290.0 * 0.3334;
    let read = read_back(&matrix);
    assert_eq!(read.runs, matrix.runs);
    assert_eq!(read.scenarios, matrix.scenarios);
    assert_eq!(read.provenance, matrix.provenance);
}

#[test]
fn what_has_not_failed_is_kept_of_the_same_matrix() {
    let mut earlier = synthetic::matrix();
    earlier.runs = vec![synthetic::run("constant", "curl", 1, &[4.5]); 2];
    earlier.runs[1].failure = Some("it moved nothing".to_owned());
    let mut now = synthetic::matrix();
    now.keep(earlier.clone()).unwrap();
    assert_eq!(now.runs, earlier.runs[..1]);
    assert!(!now.has_curves("constant", "curl"));
    now.runs[0].summary.jobs = Some(JobsFigures::default());
    assert!(now.has_curves("constant", "curl") && !now.has_curves("web", "curl"));
    assert_eq!(read_back(&now).earlier, [earlier.provenance.clone()]);
    let mut changed = earlier.clone();
    changed.scenarios.get_mut("web").unwrap().duration_s = 30.0;
    assert!(now.keep(changed).unwrap_err().contains("web has changed"));
    earlier.name = "another".to_owned();
    assert!(now.keep(earlier).unwrap_err().contains("another"));
}

#[test]
fn lists_of_objects_become_columns_and_come_back() {
    let value = serde_json::json!({
        "a": {"b": [{"x": 1, "y": null}, {"x": null, "y": "z"}], "c": [1, 2]},
        "d": "e",
    });
    let mut row = BTreeMap::new();
    flatten("", value.clone(), &mut row);
    let columns: Vec<_> = row.keys().map(String::as_str).collect();
    assert_eq!(columns, ["a.b[].x", "a.b[].y", "a.c", "d"]);
    let mut back = Value::Null;
    for (column, value) in row {
        insert(&mut back, &column, value);
    }
    assert_eq!(back, value);
}

#[test]
fn numbers_are_short_in_a_file() {
    for (value, digits, text) in [
        (1.234_567, 5, "1.2346"),
        (12_345_678.0, 3, "12300000"),
        (3.0, 5, "3"),
        (0.000_123_456, 2, "0.00012"),
    ] {
        assert_eq!(rounded(Value::from(value), digits).to_string(), text);
    }
}

#[test]
fn curves_are_kept_as_the_mean_of_the_seeds() {
    let mut matrix = synthetic::matrix();
    let of = |seed: u64, m: f64| {
        let mut run = synthetic::run("constant", "fairbat-plain", seed, &[4.5]);
        let limit = LimitFigures {
            course: LimitCourse {
                every_s: 2.0,
                m: vec![m; 100],
            },
            ..Default::default()
        };
        let chunks = ChunkFigures {
            on_network_s: Some(2.0),
            ..Default::default()
        };
        run.summary.jobs = Some(JobsFigures {
            limit: Some(limit),
            chunks,
            ..Default::default()
        });
        run
    };
    matrix.runs = vec![of(1, 2.0), of(2, 4.0)];
    let read = read_back(&matrix);
    for run in &read.runs {
        let limit = run.summary.jobs.as_ref().unwrap().limit.as_ref().unwrap();
        assert_eq!(limit.course.m, vec![3.0; 100]);
        assert_eq!(limit.found, Some(Found::After(1.0)));
    }
    // And once more, as when figures are taken anew.
    assert_eq!(read_back(&read).runs, read.runs);
}
