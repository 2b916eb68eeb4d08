//! What must hold for any configuration of the agent.

use std::collections::BTreeSet;
use std::path::Path;

use fairbat_agent::config::{Config, Course, StoreConfig};
use jiff::civil::date;
use jiff::tz::TimeZone;

/// Panics if a problem has no place in the file or more than one line, if a valid
/// configuration contradicts itself, or if one of its times is not in the future.
pub(crate) fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let config = match Config::parse(text, Path::new("agent.toml"), |_| None) {
        Ok(config) => config,
        Err(problems) => {
            assert!(!problems.found.is_empty());
            for problem in &problems.found {
                let line = text.split('\n').nth(problem.line - 1);
                let columns = line.expect("a line of the file").chars().count();
                assert!((1..=columns + 1).contains(&problem.column), "{problem:?}");
                assert!(!problem.what.contains('\n'), "{problem:?}");
            }
            return;
        }
    };
    for store in config.stores.values() {
        let (StoreConfig::Webdav(http) | StoreConfig::Fairbat(http)) = store else {
            continue;
        };
        assert!(http.url.username().is_empty() && http.url.password().is_none());
        assert!(http.url.path().ends_with('/'));
    }
    let names: BTreeSet<_> = config.jobs.iter().map(|job| &job.name).collect();
    assert_eq!(names.len(), config.jobs.len(), "two jobs of one name");
    let now = date(2026, 3, 28).at(22, 0, 0, 0);
    let now = now.to_zoned(TimeZone::UTC).expect("a moment");
    for job in &config.jobs {
        let (Course::Push { from: path, .. } | Course::Pull { to: path, .. }) = &job.course;
        assert!(path.is_absolute());
        let place = job.course.place();
        assert!(config.stores.contains_key(&place.store), "{place}");
        let is_name = |name: &str| !matches!(name, "" | "." | "..");
        assert!(
            place.path.is_empty() || place.path.split('/').all(is_name),
            "{place}"
        );
        assert!((0.02..=1.0).contains(&job.min_weight));
        if let Some(next) = job.timing.next_by_calendar(&now) {
            assert!(next > now);
        }
        if let Some(due) = job.due.and_then(|due| due.after(&now)) {
            assert!(due > now.timestamp());
        }
    }
}
