//! `[[jobs]]`, each by itself, and that their names differ.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use toml::{Spanned, Value};

use super::stores::Stores;
use super::values::{NAME_HINT, absolute, choice, duration, is_name, names, rate, weight};
use crate::calendar::Calendar;
use crate::config::job::{Course, Delete, Detect, Due, Job, MaxDelete, Timing, Verify};
use crate::config::keys;
use crate::config::problem::Complaints;
use crate::config::raw::{Heading, RawJob, Section};
use crate::config::store::Place;

/// Shortest time between two starts.
const LEAST_EVERY: Duration = Duration::from_secs(60);
/// Shortest time to a deadline.
const LEAST_WITHIN: Duration = Duration::from_secs(1);

// The words of each closed set; the first is the default.
const DIRECTION: [(&str, Direction); 2] = [("push", Direction::Push), ("pull", Direction::Pull)];
const VERIFY: [(&str, Verify); 2] = [("sent", Verify::Sent), ("read-back", Verify::ReadBack)];
const DETECT: [(&str, Detect); 2] = [("metadata", Detect::Metadata), ("content", Detect::Content)];
/// Whether the destination mirrors the source.
const DELETE: [(&str, bool); 2] = [("never", false), ("mirror", true)];

/// A job, and where its ends stand in the file.
pub(super) struct Located {
    pub(super) job: Job,
    pub(super) source: Range<usize>,
    pub(super) destination: Range<usize>,
}

pub(super) fn jobs(
    raw: Vec<Section<RawJob>>,
    stores: &Stores,
    min_weight: f64,
    complaints: &mut Complaints<'_>,
) -> Vec<Located> {
    let mut names = BTreeSet::new();
    let mut jobs = Vec::new();
    for Section { heading, content } in raw {
        if let Some(raw) = content {
            let name = name(&raw, &heading, &mut names, complaints);
            jobs.extend(job(raw, name, &heading, stores, min_weight, complaints));
        }
    }
    jobs
}

/// Every part is looked at before the first that is missing counts.
fn job(
    raw: RawJob,
    name: Option<String>,
    heading: &Heading,
    stores: &Stores,
    min_weight: f64,
    complaints: &mut Complaints<'_>,
) -> Option<Located> {
    let course = course(&raw, heading, stores, complaints);
    let timing = timing(&raw, complaints);
    let due = due(&raw, complaints);
    let delete = delete(&raw, heading, complaints);
    let verify = choice("verify", raw.verify.as_ref(), &VERIFY, complaints);
    let detect = choice("detect", raw.detect.as_ref(), &DETECT, complaints);
    let limit_rate = rate(raw.limit_rate.as_ref(), complaints);
    let min_weight = weight(raw.min_weight.as_ref(), min_weight, complaints);
    let one_file_system = raw.one_file_system.as_ref();
    let one_file_system = one_file_system.is_some_and(|given| *given.get_ref());
    let (course, source, destination) = course?;
    if matches!(course, Course::Pull { .. }) {
        refuse_for_pull(&raw, verify, one_file_system, complaints);
    }
    let job = Job {
        name: name?,
        course,
        timing: timing?,
        due: due?,
        include: raw.include,
        exclude: raw.exclude,
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

/// What a pull could not do, and what it does anyway.
fn refuse_for_pull(
    raw: &RawJob,
    verify: Option<Verify>,
    one_file_system: bool,
    complaints: &mut Complaints<'_>,
) {
    if let (Some(given), Some(Verify::ReadBack)) = (&raw.verify, verify) {
        let what = "`verify = \"read-back\"` has no meaning for a pull";
        let hint = "take it out: what is fetched is compared with the manifest in any case";
        complaints.add(given.span(), what, hint);
    }
    if let (Some(given), true) = (&raw.one_file_system, one_file_system) {
        let what = "`one_file_system` has no meaning for a pull";
        let hint = "take it out: a store has no other file systems; exclude what is to be left out";
        complaints.add(given.span(), what, hint);
    }
}

fn name(
    raw: &RawJob,
    heading: &Heading,
    taken: &mut BTreeSet<String>,
    complaints: &mut Complaints<'_>,
) -> Option<String> {
    let hint = "write name = \"NAME\"";
    let given = heading.required("name", raw.name.as_ref(), hint, complaints)?;
    let name = given.get_ref();
    if !is_name(name) {
        complaints.add(
            given.span(),
            format!("{name:?} is no name of a job"),
            NAME_HINT,
        );
        return None;
    }
    if !taken.insert(name.clone()) {
        let what = format!("there is a job `{name}` already");
        complaints.add(given.span(), what, "give each job a name of its own");
        return None;
    }
    Some(name.clone())
}

#[derive(Clone, Copy)]
enum Direction {
    Push,
    Pull,
}

/// The two ends, and where they stand.
fn course(
    raw: &RawJob,
    heading: &Heading,
    stores: &Stores,
    complaints: &mut Complaints<'_>,
) -> Option<(Course, Range<usize>, Range<usize>)> {
    let direction = choice("direction", raw.direction.as_ref(), &DIRECTION, complaints);
    let (source_hint, destination_hint) = match direction {
        Some(Direction::Pull) => ("\"STORE:PATH\"", "\"/DIRECTORY\""),
        _ => ("\"/DIRECTORY\"", "\"STORE:PATH\""),
    };
    let hint = format!("write source = {source_hint}");
    let source = heading.required("source", raw.source.as_ref(), &hint, complaints);
    let hint = format!("write destination = {destination_hint}");
    let destination = raw.destination.as_ref();
    let destination = heading.required("destination", destination, &hint, complaints);
    let (source, destination) = (source?, destination?);
    if let Some(direction) = direction
        && is_turned(direction, source.get_ref(), destination.get_ref())
    {
        let (is, other) = match direction {
            Direction::Push => ("push", "pull"),
            Direction::Pull => ("pull", "push"),
        };
        let what = format!(
            "{} is a {is}, but its ends are those of a {other}",
            heading.title
        );
        let hint = format!("write direction = \"{other}\", or exchange source and destination");
        complaints.add(source.span(), what, hint);
        return None;
    }
    let course = match direction? {
        Direction::Push => {
            let from = absolute("source", source, complaints);
            let to = place("destination", destination, stores, complaints);
            let (from, to) = (from?, to?);
            Course::Push { from, to }
        }
        Direction::Pull => {
            let from = place("source", source, stores, complaints);
            let to = absolute("destination", destination, complaints);
            let (from, to) = (from?, to?);
            Course::Pull { from, to }
        }
    };
    Some((course, source.span(), destination.span()))
}

/// Whether both ends are of the other direction.
fn is_turned(direction: Direction, source: &str, destination: &str) -> bool {
    let (local, place) = match direction {
        Direction::Push => (source, destination),
        Direction::Pull => (destination, source),
    };
    place.starts_with('/') && !local.starts_with('/') && local.contains(':')
}

/// `STORE:PATH`
fn place(
    key: &str,
    given: &Spanned<String>,
    stores: &Stores,
    complaints: &mut Complaints<'_>,
) -> Option<Place> {
    let Some((store, path)) = given.get_ref().split_once(':') else {
        let hint = "write \"STORE:PATH\", as in \"offsite:home\"";
        complaints.add(given.span(), format!("`{key}` names no store"), hint);
        return None;
    };
    if !stores.contains_key(store) {
        let known: Vec<&str> = stores.keys().map(String::as_str).collect();
        let what = format!("there is no store {store:?}");
        complaints.add(given.span(), what, keys::hint(store, &known));
        return None;
    }
    let path = complaints.take(given.span(), &format!("the path in `{key}`"), names(path))?;
    let store = store.to_owned();
    Some(Place { store, path })
}

fn timing(raw: &RawJob, complaints: &mut Complaints<'_>) -> Option<Timing> {
    match (&raw.schedule, &raw.every) {
        (Some(_), Some(every)) => {
            let what = "`schedule` and `every` exclude each other";
            complaints.add(every.span(), what, "keep one of them");
            None
        }
        (Some(schedule), None) => calendars(schedule, complaints).map(Timing::Calendar),
        (None, Some(every)) => duration("every", every, LEAST_EVERY, complaints).map(Timing::Every),
        (None, None) => Some(Timing::ByHand),
    }
}

/// One expression or a list of them.
fn calendars(given: &Spanned<Value>, complaints: &mut Complaints<'_>) -> Option<Vec<Calendar>> {
    let texts: Option<Vec<&str>> = match given.get_ref() {
        Value::String(text) => Some(vec![text]),
        Value::Array(list) if !list.is_empty() => list.iter().map(Value::as_str).collect(),
        _ => None,
    };
    let Some(texts) = texts else {
        let hint = "write for example \"Mon..Fri 22:00\", or a list of such; for a job that is \
            only started by hand leave it out";
        complaints.add(given.span(), "`schedule` is no calendar expression", hint);
        return None;
    };
    let calendars: Vec<Option<Calendar>> = texts
        .into_iter()
        .map(|text| calendar(text, given.span(), complaints))
        .collect();
    calendars.into_iter().collect()
}

fn calendar(text: &str, at: Range<usize>, complaints: &mut Complaints<'_>) -> Option<Calendar> {
    let calendar = complaints.take(at.clone(), "`schedule`", Calendar::parse(text))?;
    // The years of an expression begin with 1970, in all time zones.
    let before = Timestamp::UNIX_EPOCH - jiff::SignedDuration::from_hours(48);
    if calendar
        .next_after(&Zoned::new(before, TimeZone::UTC))
        .is_none()
    {
        let what = format!("{text:?} in `schedule` never comes");
        complaints.add(at, what, "name a day that there is");
        return None;
    }
    Some(calendar)
}

/// `Some(None)` without a deadline.
fn due(raw: &RawJob, complaints: &mut Complaints<'_>) -> Option<Option<Due>> {
    match (&raw.by, &raw.within) {
        (Some(_), Some(within)) => {
            let what = "`by` and `within` exclude each other";
            complaints.add(within.span(), what, "keep one of them");
            None
        }
        (Some(by), None) => {
            let time = by.get_ref().as_str().and_then(time_of_day);
            if time.is_none() {
                let hint = "write hours and minutes in quotes, as in \"06:00\"";
                complaints.add(by.span(), "`by` is no time of day", hint);
            }
            time.map(|time| Some(Due::By(time)))
        }
        (None, Some(within)) => {
            let within = duration("within", within, LEAST_WITHIN, complaints)?;
            Some(Some(Due::Within(within)))
        }
        (None, None) => Some(None),
    }
}

fn time_of_day(text: &str) -> Option<Time> {
    Time::strptime("%H:%M", text).ok()
}

fn delete(raw: &RawJob, heading: &Heading, complaints: &mut Complaints<'_>) -> Option<Delete> {
    let mirrors = choice("delete", raw.delete.as_ref(), &DELETE, complaints)?;
    match (mirrors, &raw.delete, &raw.max_delete) {
        (true, _, Some(max)) => {
            let max = max_delete(max, complaints)?;
            Some(Delete::Mirror { max })
        }
        (true, given, None) if heading.is_whole => {
            let at = given.as_ref().map(Spanned::span).unwrap_or_default();
            let hint = "write max_delete = \"10%\" or a number of files, so that a mistake \
                cannot empty the destination";
            complaints.add(at, "`delete = \"mirror\"` needs `max_delete`", hint);
            None
        }
        (false, _, Some(max)) if heading.is_whole => {
            let what = "`max_delete` has no meaning without `delete = \"mirror\"`";
            complaints.add(max.span(), what, "add the one or take out the other");
            None
        }
        (false, _, _) => Some(Delete::Never),
        (true, _, None) => None,
    }
}

fn max_delete(given: &Spanned<Value>, complaints: &mut Complaints<'_>) -> Option<MaxDelete> {
    let max = match given.get_ref() {
        &Value::Integer(files) if files > 0 => Some(MaxDelete::Files(files.unsigned_abs())),
        Value::String(text) => {
            let percent = text
                .strip_suffix('%')
                .and_then(|text| text.trim().parse().ok());
            let percent = percent.filter(|percent| *percent > 0.0 && *percent <= 100.0);
            percent.map(|percent: f64| MaxDelete::Share(percent / 100.0))
        }
        _ => None,
    };
    if max.is_none() {
        let hint = "write a number of files, 1 or more, or a percentage, as in \"10%\"";
        complaints.add(
            given.span(),
            "`max_delete` is neither a number nor a percentage",
            hint,
        );
    }
    max
}
