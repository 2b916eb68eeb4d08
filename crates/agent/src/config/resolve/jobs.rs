//! `[[jobs]]`: each job by itself. Only the names are compared between jobs.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use toml::{Spanned, Value};

use super::stores::Stores;
use super::values::{NAME_ADVICE, is_name, path_in_store};
use crate::calendar::Calendar;
use crate::config::job::{Course, Delete, Detect, Due, Job, MaxDelete, Timing, Verify};
use crate::config::problem::{Checker, suggestion};
use crate::config::raw::{RawJob, RawTable, TableHeader};
use crate::config::store::Place;

/// Shortest time between two starts.
const MIN_EVERY: Duration = Duration::from_secs(60);
/// Shortest time to a deadline.
const MIN_WITHIN: Duration = Duration::from_secs(1);

// The words of each closed set. The first word is the default.
const DIRECTION: [(&str, Direction); 2] = [("push", Direction::Push), ("pull", Direction::Pull)];
const VERIFY: [(&str, Verify); 2] = [("sent", Verify::Sent), ("read-back", Verify::ReadBack)];
const DETECT: [(&str, Detect); 2] = [("metadata", Detect::Metadata), ("content", Detect::Content)];
/// Whether the destination mirrors the source.
const DELETE: [(&str, bool); 2] = [("never", false), ("mirror", true)];

#[derive(Clone, Copy)]
enum Direction {
    Push,
    Pull,
}

/// A job, and the positions of its ends in the file.
pub(crate) struct Located {
    pub(crate) job: Job,
    pub(crate) source: Range<usize>,
    pub(crate) destination: Range<usize>,
}

pub(crate) fn jobs(
    raw: Vec<RawTable<RawJob>>,
    stores: &Stores,
    min_weight: f64,
    check: &mut Checker<'_>,
) -> Vec<Located> {
    let mut names = BTreeSet::new();
    let mut jobs = Vec::new();
    for RawTable { header, content } in raw {
        let Some(raw) = content else { continue };
        let mut resolver = JobResolver {
            raw: &raw,
            header: &header,
            stores,
            check,
        };
        let name = resolver.name(&mut names);
        jobs.extend(resolver.job(name, min_weight));
    }
    jobs
}

/// Resolves one job.
struct JobResolver<'a, 't> {
    raw: &'a RawJob,
    header: &'a TableHeader,
    stores: &'a Stores,
    check: &'a mut Checker<'t>,
}

impl JobResolver<'_, '_> {
    fn name(&mut self, taken: &mut BTreeSet<String>) -> Option<String> {
        let (raw, advice) = (self.raw.name.as_ref(), "write name = \"NAME\"");
        let given = self.check.required(self.header, "name", raw, advice)?;
        let name = given.get_ref();
        if !is_name(name) {
            let what = format!("{name:?} is not a valid job name");
            self.check.add(given.span(), what, NAME_ADVICE);
            return None;
        }
        if !taken.insert(name.clone()) {
            let what = format!("there is a job `{name}` already");
            let advice = "give each job a name of its own";
            self.check.add(given.span(), what, advice);
            return None;
        }
        Some(name.clone())
    }

    /// Checks all keys before it gives up.
    fn job(mut self, name: Option<String>, min_weight: f64) -> Option<Located> {
        let raw = self.raw;
        let ends = self.ends();
        let timing = self.timing();
        let due = self.due();
        let delete = self.delete();
        let verify = self.check.choice("verify", raw.verify.as_ref(), &VERIFY);
        let detect = self.check.choice("detect", raw.detect.as_ref(), &DETECT);
        let limit_rate = self.check.rate(raw.limit_rate.as_ref());
        let min_weight = self.check.weight(raw.min_weight.as_ref(), min_weight);
        let one_file_system = raw.one_file_system.as_ref();
        let one_file_system = one_file_system.is_some_and(|given| *given.get_ref());
        let (course, source, destination) = ends?;
        if matches!(course, Course::Pull { .. }) {
            self.refuse_for_pull(verify, one_file_system);
        }
        let job = Job {
            name: name?,
            course,
            timing: timing?,
            due: due?,
            include: raw.include.clone(),
            exclude: raw.exclude.clone(),
            delete: delete?,
            verify: verify?,
            detect: detect?,
            one_file_system,
            limit_rate: limit_rate?,
            min_weight: min_weight?,
        };
        Some(Located {
            job,
            source,
            destination,
        })
    }

    /// Refuses settings that have no effect on a pull.
    fn refuse_for_pull(&mut self, verify: Option<Verify>, one_file_system: bool) {
        if let (Some(given), Some(Verify::ReadBack)) = (&self.raw.verify, verify) {
            let what = "`verify = \"read-back\"` has no meaning for a pull";
            let advice = "take it out; a pull always compares files with the manifest";
            self.check.add(given.span(), what, advice);
        }
        if let (Some(given), true) = (&self.raw.one_file_system, one_file_system) {
            let what = "`one_file_system` has no meaning for a pull";
            let advice = "take it out and use `exclude`; a store has no other file systems";
            self.check.add(given.span(), what, advice);
        }
    }

    /// The two ends and their positions.
    fn ends(&mut self) -> Option<(Course, Range<usize>, Range<usize>)> {
        let (raw, header) = (self.raw, self.header);
        let direction = raw.direction.as_ref();
        let direction = self.check.choice("direction", direction, &DIRECTION);
        let (source, destination) = match direction {
            Some(Direction::Pull) => ("\"STORE:PATH\"", "\"/DIRECTORY\""),
            _ => ("\"/DIRECTORY\"", "\"STORE:PATH\""),
        };
        let mut required = |key, given, form| {
            let advice = format!("write {key} = {form}");
            self.check.required(header, key, given, &advice)
        };
        let source = required("source", raw.source.as_ref(), source);
        let destination = required("destination", raw.destination.as_ref(), destination);
        let (source, destination) = (source?, destination?);
        if let Some(direction) = direction
            && is_reversed(direction, source.get_ref(), destination.get_ref())
        {
            let (this, other) = match direction {
                Direction::Push => ("push", "pull"),
                Direction::Pull => ("pull", "push"),
            };
            let title = &header.title;
            let what = format!("{title} is a {this}, but its ends are those of a {other}");
            let advice = format!("write direction = \"{other}\", or swap source and destination");
            self.check.add(source.span(), what, advice);
            return None;
        }
        let course = match direction? {
            Direction::Push => {
                let from = self.check.absolute_path("source", source);
                let to = self.place("destination", destination);
                let (from, to) = (from?, to?);
                Course::Push { from, to }
            }
            Direction::Pull => {
                let from = self.place("source", source);
                let to = self.check.absolute_path("destination", destination);
                let (from, to) = (from?, to?);
                Course::Pull { from, to }
            }
        };
        Some((course, source.span(), destination.span()))
    }

    /// `STORE:PATH`
    fn place(&mut self, key: &str, given: &Spanned<String>) -> Option<Place> {
        let Some((store, path)) = given.get_ref().split_once(':') else {
            let advice = "write \"STORE:PATH\", such as \"offsite:home\"";
            let what = format!("`{key}` has no store");
            self.check.add(given.span(), what, advice);
            return None;
        };
        if !self.stores.contains_key(store) {
            let known: Vec<&str> = self.stores.keys().map(String::as_str).collect();
            let what = format!("there is no store {store:?}");
            self.check
                .add(given.span(), what, suggestion(store, &known));
            return None;
        }
        let (name, path) = (format!("the path in `{key}`"), path_in_store(path));
        let path = self.check.value(given.span(), &name, path)?;
        let store = store.to_owned();
        Some(Place { store, path })
    }

    fn timing(&mut self) -> Option<Timing> {
        match (&self.raw.schedule, &self.raw.every) {
            (Some(_), Some(every)) => {
                let what = "`schedule` and `every` exclude each other";
                self.check.add(every.span(), what, "keep one of them");
                None
            }
            (Some(schedule), None) => calendars(schedule, self.check).map(Timing::Calendar),
            (None, Some(every)) => {
                let every = self.check.duration("every", every, MIN_EVERY);
                every.map(Timing::Every)
            }
            (None, None) => Some(Timing::ByHand),
        }
    }

    /// The deadline; `Some(None)` if none is given.
    fn due(&mut self) -> Option<Option<Due>> {
        match (&self.raw.by, &self.raw.within) {
            (Some(_), Some(within)) => {
                let what = "`by` and `within` exclude each other";
                self.check.add(within.span(), what, "keep one of them");
                None
            }
            (Some(by), None) => {
                let time = by.get_ref().as_str();
                let time = time.and_then(|text| Time::strptime("%H:%M", text).ok());
                if time.is_none() {
                    let advice = "write hours and minutes in quotes, such as \"06:00\"";
                    self.check
                        .add(by.span(), "`by` is not a time of day", advice);
                }
                time.map(|time| Some(Due::By(time)))
            }
            (None, Some(within)) => {
                let within = self.check.duration("within", within, MIN_WITHIN)?;
                Some(Some(Due::Within(within)))
            }
            (None, None) => Some(None),
        }
    }

    fn delete(&mut self) -> Option<Delete> {
        let given = self.raw.delete.as_ref();
        let mirrors = self.check.choice("delete", given, &DELETE)?;
        match (mirrors, &self.raw.max_delete) {
            (true, Some(max)) => {
                let max = max_delete(max, self.check)?;
                Some(Delete::Mirror { max })
            }
            (true, None) if self.header.is_complete => {
                let at = given.map(Spanned::span).unwrap_or_default();
                let what = "`delete = \"mirror\"` needs `max_delete`";
                let advice = "write max_delete = \"10%\" or a number of files, so that a mistake \
                    cannot empty the destination";
                self.check.add(at, what, advice);
                None
            }
            (false, Some(max)) if self.header.is_complete => {
                let what = "`max_delete` has no meaning without `delete = \"mirror\"`";
                let advice = "add the second or take out the first";
                self.check.add(max.span(), what, advice);
                None
            }
            (false, _) => Some(Delete::Never),
            (true, None) => None,
        }
    }
}

/// Whether both ends belong to the other direction.
fn is_reversed(direction: Direction, source: &str, destination: &str) -> bool {
    let (local, place) = match direction {
        Direction::Push => (source, destination),
        Direction::Pull => (destination, source),
    };
    place.starts_with('/') && !local.starts_with('/') && local.contains(':')
}

/// One calendar expression, or a list of them.
fn calendars(given: &Spanned<Value>, check: &mut Checker<'_>) -> Option<Vec<Calendar>> {
    let texts: Option<Vec<&str>> = match given.get_ref() {
        Value::String(text) => Some(vec![text]),
        Value::Array(list) if !list.is_empty() => list.iter().map(Value::as_str).collect(),
        _ => None,
    };
    let Some(texts) = texts else {
        let what = "`schedule` is not a calendar expression";
        let advice = "write for example \"Mon..Fri 22:00\", or a list of expressions; leave it \
            out for a job that only starts by hand";
        check.add(given.span(), what, advice);
        return None;
    };
    let calendars: Vec<Option<Calendar>> = texts
        .into_iter()
        .map(|text| calendar(text, given.span(), check))
        .collect();
    calendars.into_iter().collect()
}

fn calendar(text: &str, at: Range<usize>, check: &mut Checker<'_>) -> Option<Calendar> {
    let calendar = check.value(at.clone(), "`schedule`", Calendar::parse(text))?;
    // Two days before the first year of an expression, 1970: earlier in any time zone.
    let start = Timestamp::UNIX_EPOCH - SignedDuration::from_hours(48);
    let start = Zoned::new(start, TimeZone::UTC);
    if calendar.next_after(&start).is_none() {
        let what = format!("{text:?} in `schedule` never comes");
        check.add(at, what, "name a day that exists");
        return None;
    }
    Some(calendar)
}

fn max_delete(given: &Spanned<Value>, check: &mut Checker<'_>) -> Option<MaxDelete> {
    let max = match given.get_ref() {
        &Value::Integer(files) if files > 0 => Some(MaxDelete::Files(files.unsigned_abs())),
        Value::String(text) => {
            let percent = text.strip_suffix('%');
            let percent = percent.and_then(|text| text.trim().parse().ok());
            let percent = percent.filter(|percent| *percent > 0.0 && *percent <= 100.0);
            percent.map(|percent: f64| MaxDelete::Share(percent / 100.0))
        }
        _ => None,
    };
    if max.is_none() {
        let what = "`max_delete` is neither a number nor a percentage";
        let advice = "write a number of files, 1 or more, or a percentage such as \"10%\"";
        check.add(given.span(), what, advice);
    }
    max
}
