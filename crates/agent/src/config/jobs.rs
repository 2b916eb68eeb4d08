//! `[[jobs]]`: each job by itself. Only the names are compared between jobs.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use fairbat::machine::LaneDirection;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use toml::de::DeValue;
use toml::{Spanned, Value};

use super::job::{Course, Delete, Detect, JobConfig, JobMode, MaxDelete, Timing, Verify};
use super::problem::{Checker, suggestion};
use super::store::{StoreDirectory, Stores};
use super::table::{NAME_ADVICE, Table, is_name, path_in_store};
use crate::calendar::Calendar;
use crate::filter::{EntryFilter, FilterError};

pub(crate) const KEYS: [&str; 22] = [
    "name",
    "direction",
    "source",
    "destination",
    "schedule",
    "every",
    "by",
    "within",
    "mode",
    "include",
    "exclude",
    "delete",
    "max_delete",
    "verify",
    "detect",
    "one_file_system",
    "setuid",
    "limit_rate",
    "min_weight",
    "check",
    "check_bytes_per_day",
    "authenticate",
];

/// When stores are checked if the job does not say it.
const DEFAULT_CHECK: &str = "weekly";
/// Content that a check reads for each day, bytes: a terabyte in a year and a half.
const DEFAULT_CHECK_BYTES: u64 = 2 * 1024 * 1024 * 1024;

/// Shortest time between two starts.
const MIN_EVERY: Duration = Duration::from_secs(60);

// The words of each closed set. The first word is the default.
const DIRECTION: [(&str, LaneDirection); 2] =
    [("push", LaneDirection::Push), ("pull", LaneDirection::Pull)];
const VERIFY: [(&str, Verify); 2] = [("sent", Verify::Sent), ("read-back", Verify::ReadBack)];
const DETECT: [(&str, Detect); 2] = [("metadata", Detect::Metadata), ("content", Detect::Content)];
const MODE: [(&str, JobMode); 2] = [("scavenge", JobMode::Scavenge), ("stream", JobMode::Stream)];
/// Whether the destination mirrors the source.
const DELETE: [(&str, bool); 2] = [("never", false), ("mirror", true)];

/// A job, and the positions of its ends in the file.
pub(crate) struct Located {
    pub(crate) job: JobConfig,
    pub(crate) source: Range<usize>,
    pub(crate) destination: Range<usize>,
}

/// Reads all jobs. A job without a `min_weight` has this one.
pub(crate) fn jobs<'t>(
    value: Spanned<DeValue<'t>>,
    stores: &Stores,
    min_weight: f64,
    check: &mut Checker<'t>,
) -> Vec<Located> {
    let at = value.span();
    let DeValue::Array(values) = value.into_inner() else {
        let advice = "write [[jobs]] before each job, with two brackets";
        check.add(at, "`jobs` is not a list", advice);
        return Vec::new();
    };
    let mut names = BTreeSet::new();
    let job = |value: Spanned<DeValue<'t>>| {
        let name = value.get_ref().get("name");
        let name = name.and_then(|name| name.get_ref().as_str());
        let title = name.map_or("a job".to_owned(), |name| format!("job `{name}`"));
        let reader = JobReader {
            table: Table::new(value, title, &KEYS, check),
            stores,
        };
        reader.job(&mut names, min_weight)
    };
    values.into_iter().filter_map(job).collect()
}

/// Reads one job.
struct JobReader<'a, 't> {
    table: Table<'a, 't>,
    stores: &'a Stores,
}

impl JobReader<'_, '_> {
    /// Reads all keys before it gives up.
    fn job(mut self, names: &mut BTreeSet<String>, min_weight: f64) -> Option<Located> {
        let name = self.name(names);
        let course = self.course();
        let timing = self.timing();
        let check = self.check();
        let due = self.table.due();
        let mode = self.mode();
        let delete = self.delete();
        let table = &mut self.table;
        let filter = table.filter();
        let verify = table.choice("verify", &VERIFY);
        let detect = table.choice("detect", &DETECT);
        let one_file_system = table.get("one_file_system").unwrap_or(false);
        let setuid = table.get("setuid").unwrap_or(false);
        let limit_rate = table.limit_rate();
        let own_weight = table.min_weight();
        let check_bytes = table.check_bytes();
        let authenticate = table.get("authenticate").unwrap_or(true);
        let course = course?;
        let is_pull = matches!(course, Course::Pull { .. });
        if is_pull {
            table.refuse_for_pull(verify, one_file_system);
        } else if setuid {
            let what = "has no meaning for a push";
            let advice = "take it out; a push keeps these bits, and `fairbat restore --setuid` \
                brings them back";
            table.wrong("setuid", what, advice);
        }
        let job = JobConfig {
            name: name?,
            course,
            timing: timing?,
            due,
            mode: mode?,
            filter: filter?,
            delete: delete?,
            verify: verify?,
            detect: detect?,
            one_file_system,
            setuid,
            limit_rate,
            min_weight: own_weight.unwrap_or(min_weight),
            check: if is_pull { Timing::ByHand } else { check? },
            check_bytes_per_day: check_bytes.unwrap_or(DEFAULT_CHECK_BYTES),
            authenticate,
        };
        Some(Located {
            source: table.position("source"),
            destination: table.position("destination"),
            job,
        })
    }

    fn name(&mut self, taken: &mut BTreeSet<String>) -> Option<String> {
        let name = self.table.required("name", "write name = \"NAME\"")?;
        let (what, advice) = if !is_name(&name) {
            (format!("{name:?} is not a valid job name"), NAME_ADVICE)
        } else if !taken.insert(name.clone()) {
            let what = format!("there is a job `{name}` already");
            (what, "give each job a name of its own")
        } else {
            return Some(name);
        };
        self.table.report("name", what, advice);
        None
    }

    /// The direction and the two ends.
    fn course(&mut self) -> Option<Course> {
        let direction = self.table.choice("direction", &DIRECTION);
        let mut source = "write source = \"/DIRECTORY\"";
        let mut destination = "write destination = \"STORE:PATH\"";
        if direction == Some(LaneDirection::Pull) {
            source = "write source = \"STORE:PATH\"";
            destination = "write destination = \"/DIRECTORY\"";
        }
        let source = self.table.required("source", source);
        let destination = self.table.required("destination", destination);
        let (direction, source, destination) = (direction?, source?, destination?);
        let source = ("source", source);
        let destination = ("destination", destination);
        let ((local_key, local), (place_key, place), other) = match direction {
            LaneDirection::Push => (source, destination, LaneDirection::Pull),
            LaneDirection::Pull => (destination, source, LaneDirection::Push),
        };
        if place.starts_with('/') && !local.starts_with('/') && local.contains(':') {
            let (title, this, other) = (&self.table.title, direction.name(), other.name());
            let what = format!("{title} is a {this}, but its ends are those of a {other}");
            let advice = format!("write direction = \"{other}\", or swap source and destination");
            self.table.report("source", what, advice);
            return None;
        }
        let directory = self.table.absolute_path(local_key, &local);
        let place = self.place(place_key, &place);
        let (directory, place) = (directory?, place?);
        Some(match direction {
            LaneDirection::Push => Course::Push {
                from: directory,
                to: place,
            },
            LaneDirection::Pull => Course::Pull {
                from: place,
                to: directory,
            },
        })
    }

    /// `STORE:PATH`
    fn place(&mut self, key: &str, text: &str) -> Option<StoreDirectory> {
        let Some((store, path)) = text.split_once(':') else {
            let advice = "write \"STORE:PATH\", such as \"offsite:home\"";
            self.table.wrong(key, "has no store", advice);
            return None;
        };
        if !self.stores.contains_key(store) {
            let known: Vec<&str> = self.stores.keys().map(String::as_str).collect();
            let what = format!("there is no store {store:?}");
            self.table.report(key, what, suggestion(store, &known));
            return None;
        }
        let path = path_in_store(path).map_err(|error| format!("the path {error}"));
        let path = self.table.parsed(key, path)?;
        let store = store.to_owned();
        Some(StoreDirectory { store, path })
    }

    fn timing(&mut self) -> Option<Timing> {
        if self.table.exclude_each_other("schedule", "every") {
            None
        } else if self.table.has("schedule") {
            self.calendars("schedule").map(Timing::Calendar)
        } else if self.table.has("every") {
            let every = self.table.duration("every", MIN_EVERY);
            every.map(Timing::Every)
        } else {
            Some(Timing::ByHand)
        }
    }

    /// When the store is checked; `false` for only by hand.
    fn check(&mut self) -> Option<Timing> {
        if !self.table.has("check") {
            return Calendar::parse(DEFAULT_CHECK)
                .ok()
                .map(|weekly| Timing::Calendar(vec![weekly]));
        }
        if let Value::Boolean(false) = self.table.get("check")? {
            return Some(Timing::ByHand);
        }
        self.calendars("check").map(Timing::Calendar)
    }

    /// One calendar expression, or a list of them.
    fn calendars(&mut self, key: &str) -> Option<Vec<Calendar>> {
        let Some(texts) = self.table.texts(key) else {
            let advice = match key {
                "check" => "write for example \"weekly\", a list of expressions, or false",
                _ => {
                    "write for example \"Mon..Fri 22:00\", or a list of expressions; leave it out \
                     for a job that only starts by hand"
                }
            };
            let what = "is not a calendar expression";
            self.table.wrong(key, what, advice);
            return None;
        };
        let calendars = texts.iter().map(|text| self.calendar(key, text));
        let calendars: Vec<Option<Calendar>> = calendars.collect();
        calendars.into_iter().collect()
    }

    fn calendar(&mut self, key: &str, text: &str) -> Option<Calendar> {
        let calendar = self.table.parsed(key, Calendar::parse(text))?;
        // Two days before the first year of an expression, 1970: earlier in any time zone.
        let start = Timestamp::UNIX_EPOCH - SignedDuration::from_hours(48);
        let start = Zoned::new(start, TimeZone::UTC);
        if calendar.next_after(&start).is_none() {
            let what = format!("{text:?} in `{key}` never comes");
            self.table.report(key, what, "name a day that exists");
            return None;
        }
        Some(calendar)
    }

    /// The mode of a job without a deadline. With one, that decides.
    fn mode(&mut self) -> Option<JobMode> {
        let mode = self.table.choice("mode", &MODE)?;
        let has_deadline = self.table.has("by") || self.table.has("within");
        if has_deadline && self.table.has("mode") {
            let advice = "take it out: a job with `by` or `within` is served by its deadline";
            self.table.wrong("mode", "has no meaning here", advice);
            return None;
        }
        Some(mode)
    }

    fn delete(&mut self) -> Option<Delete> {
        let mirrors = self.table.choice("delete", &DELETE)?;
        let given: Option<Value> = self.table.get("max_delete");
        let is_complete = self.table.is_complete;
        match (mirrors, given) {
            (true, Some(max)) => {
                let max = max_delete(&max);
                if max.is_none() {
                    let what = "is neither a number nor a percentage";
                    let advice = "write a number of files, 1 or more, or a percentage such as \
                        \"10%\"";
                    self.table.wrong("max_delete", what, advice);
                }
                max.map(|max| Delete::Mirror { max })
            }
            (true, None) if is_complete => {
                let what = "`delete = \"mirror\"` needs `max_delete`";
                let advice = "write max_delete = \"10%\" or a number of files, so that a mistake \
                    cannot empty the destination";
                self.table.report("delete", what, advice);
                None
            }
            (false, Some(_)) if is_complete => {
                let what = "has no meaning without `delete = \"mirror\"`";
                let advice = "add the second or take out the first";
                self.table.wrong("max_delete", what, advice);
                None
            }
            (false, _) => Some(Delete::Never),
            (true, None) => None,
        }
    }
}

impl Table<'_, '_> {
    /// The files that match the patterns.
    fn filter(&mut self) -> Option<EntryFilter> {
        let include: Vec<String> = self.get("include").unwrap_or_default();
        let exclude: Vec<String> = self.get("exclude").unwrap_or_default();
        let filter = EntryFilter::new(&include, &exclude);
        let report = |error: FilterError| {
            let at = self.position(error.list);
            self.check.add_error(at, error.to_string());
        };
        filter.map_err(report).ok()
    }

    /// Refuses settings that have no effect on a pull.
    fn refuse_for_pull(&mut self, verify: Option<Verify>, one_file_system: bool) {
        if verify == Some(Verify::ReadBack) {
            let what = "`verify = \"read-back\"` has no meaning for a pull";
            let advice = "take it out; a pull always compares files with the manifest";
            self.report("verify", what, advice);
        }
        if one_file_system {
            let what = "has no meaning for a pull";
            let advice = "take it out and use `exclude`; a store has no other file systems";
            self.wrong("one_file_system", what, advice);
        }
        for key in ["check", "check_bytes_per_day"] {
            if self.has(key) {
                let advice = "take it out; the job that pushes checks the store";
                self.wrong(key, "has no meaning for a pull", advice);
            }
        }
    }
}

fn max_delete(given: &Value) -> Option<MaxDelete> {
    match given {
        &Value::Integer(files) if files > 0 => Some(MaxDelete::Files(files.unsigned_abs())),
        Value::String(text) => {
            let percent = text.strip_suffix('%')?.trim().parse().ok();
            let percent = percent.filter(|percent| *percent > 0.0 && *percent <= 100.0);
            percent.map(|percent: f64| MaxDelete::Share(percent / 100.0))
        }
        _ => None,
    }
}
