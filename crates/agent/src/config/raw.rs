//! The file as it was written: which keys there are, where, and of which type.
//!
//! It must not know what the values mean: [`super::resolve`] does. What may be of
//! several types stays a [`Value`].

use std::ops::Range;

use serde::Deserialize;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Value};

use super::keys;
use super::problem::Complaints;

/// All of the file.
#[derive(Debug, Default)]
pub(super) struct Raw {
    pub(super) agent: Option<RawAgent>,
    pub(super) stores: Vec<(String, Section<RawStore>)>,
    pub(super) jobs: Vec<Section<RawJob>>,
}

/// A table of the file.
#[derive(Debug)]
pub(super) struct Section<T> {
    pub(super) heading: Heading,
    /// `None` if nothing can be made of it.
    pub(super) content: Option<T>,
}

/// What there is to say of a table as a whole.
#[derive(Debug)]
pub(super) struct Heading {
    /// What to call it.
    pub(super) title: String,
    /// Where it begins.
    pub(super) at: Range<usize>,
    /// Whether all of it was understood. If not, what seems to be missing may be
    /// there under a name that is not known.
    pub(super) is_whole: bool,
}

impl Heading {
    /// What a table must have.
    pub(super) fn required<'a, T>(
        &self,
        key: &str,
        given: Option<&'a T>,
        hint: &str,
        complaints: &mut Complaints<'_>,
    ) -> Option<&'a T> {
        if given.is_none() && self.is_whole {
            let Self { title, at, .. } = self;
            complaints.add(at.clone(), format!("{title} has no `{key}`"), hint);
        }
        given
    }
}

/// `[agent]`
#[derive(Debug, Default, Deserialize)]
pub(super) struct RawAgent {
    pub(super) state: Option<Spanned<String>>,
    pub(super) socket: Option<Spanned<String>>,
    pub(super) listen: Option<Spanned<Value>>,
    pub(super) connections: Option<Spanned<i64>>,
    pub(super) min_weight: Option<Spanned<f64>>,
    pub(super) limit_rate: Option<Spanned<Value>>,
}

/// `[stores.NAME]`, by its `type`.
#[derive(Debug)]
pub(super) enum RawStore {
    S3(RawS3),
    Webdav(RawHttp),
    Fairbat(RawHttp),
    Local(RawLocal),
}

/// `type = "s3"`
#[derive(Debug, Deserialize)]
pub(super) struct RawS3 {
    pub(super) endpoint: Option<Spanned<String>>,
    pub(super) region: Option<Spanned<String>>,
    pub(super) bucket: Option<Spanned<String>>,
    pub(super) prefix: Option<Spanned<String>>,
    pub(super) path_style: Option<bool>,
    pub(super) credentials: Option<Spanned<String>>,
    pub(super) cacert: Option<Spanned<String>>,
}

/// `type = "webdav"` and `type = "fairbat"`
#[derive(Debug, Deserialize)]
pub(super) struct RawHttp {
    pub(super) url: Option<Spanned<String>>,
    pub(super) credentials: Option<Spanned<String>>,
    pub(super) cacert: Option<Spanned<String>>,
}

/// `type = "local"`
#[derive(Debug, Deserialize)]
pub(super) struct RawLocal {
    pub(super) path: Option<Spanned<String>>,
}

/// `[[jobs]]`
#[derive(Debug, Deserialize)]
pub(super) struct RawJob {
    pub(super) name: Option<Spanned<String>>,
    pub(super) direction: Option<Spanned<String>>,
    pub(super) source: Option<Spanned<String>>,
    pub(super) destination: Option<Spanned<String>>,
    pub(super) schedule: Option<Spanned<Value>>,
    pub(super) every: Option<Spanned<String>>,
    pub(super) by: Option<Spanned<Value>>,
    pub(super) within: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) include: Vec<String>,
    #[serde(default)]
    pub(super) exclude: Vec<String>,
    pub(super) delete: Option<Spanned<String>>,
    pub(super) max_delete: Option<Spanned<Value>>,
    pub(super) verify: Option<Spanned<String>>,
    pub(super) detect: Option<Spanned<String>>,
    pub(super) one_file_system: Option<Spanned<bool>>,
    pub(super) limit_rate: Option<Spanned<Value>>,
    pub(super) min_weight: Option<Spanned<f64>>,
}

/// The values of `type`.
const TYPES: [&str; 4] = ["s3", "webdav", "fairbat", "local"];

/// Reads what there is; of text that is no TOML, nothing.
pub(super) fn read(text: &str, complaints: &mut Complaints<'_>) -> Raw {
    let mut raw = Raw::default();
    let root = match DeTable::parse(text) {
        Ok(root) => root.into_inner(),
        Err(error) => {
            let at = error.span().unwrap_or_default();
            complaints.add(
                at,
                error.message(),
                "the file is in TOML, see https://toml.io",
            );
            return raw;
        }
    };
    for (key, value) in root {
        match key.get_ref().as_ref() {
            "agent" => raw.agent = section(value, "[agent]".to_owned(), complaints).content,
            "stores" => raw.stores = stores(value, complaints),
            "jobs" => raw.jobs = jobs(value, complaints),
            other => {
                let hint = keys::hint(other, &["agent", "stores", "jobs"]);
                complaints.add(key.span(), format!("unknown key `{other}`"), hint);
            }
        }
    }
    raw
}

fn stores(
    value: Spanned<DeValue<'_>>,
    complaints: &mut Complaints<'_>,
) -> Vec<(String, Section<RawStore>)> {
    let at = value.span();
    let DeValue::Table(stores) = value.into_inner() else {
        complaints.add(
            at,
            "`stores` is no table",
            "write [stores.NAME] for each store",
        );
        return Vec::new();
    };
    let store = |(name, value): (Spanned<_>, _)| {
        let name = String::from(name.into_inner());
        let store = store(&name, value, complaints);
        (name, store)
    };
    stores.into_iter().map(store).collect()
}

/// Which keys a store may have depends on its type.
fn store(
    name: &str,
    mut value: Spanned<DeValue<'_>>,
    complaints: &mut Complaints<'_>,
) -> Section<RawStore> {
    let title = format!("store `{name}`");
    let kind = match value.get_mut() {
        DeValue::Table(table) => table.remove("type"),
        _ => None,
    };
    let at = value.span();
    let Some(kind) = kind else {
        let hint = "write type = \"s3\", \"webdav\", \"fairbat\" or \"local\"";
        complaints.add(at.clone(), format!("{title} has no `type`"), hint);
        return Section::empty(title, at);
    };
    match kind.get_ref().as_str() {
        Some("s3") => section(value, title, complaints).map(RawStore::S3),
        Some("webdav") => section(value, title, complaints).map(RawStore::Webdav),
        Some("fairbat") => section(value, title, complaints).map(RawStore::Fairbat),
        Some("local") => section(value, title, complaints).map(RawStore::Local),
        other => {
            let hint = keys::hint(other.unwrap_or_default(), &TYPES);
            complaints.add(kind.span(), format!("the type of {title} is unknown"), hint);
            Section::empty(title, at)
        }
    }
}

fn jobs(value: Spanned<DeValue<'_>>, complaints: &mut Complaints<'_>) -> Vec<Section<RawJob>> {
    let at = value.span();
    let DeValue::Array(jobs) = value.into_inner() else {
        complaints.add(
            at,
            "`jobs` is no list",
            "write [[jobs]] before each job, with two brackets",
        );
        return Vec::new();
    };
    let job = |value: Spanned<DeValue<'_>>| {
        let name = value
            .get_ref()
            .get("name")
            .and_then(|name| name.get_ref().as_str());
        let title = name.map_or("a job".to_owned(), |name| format!("job `{name}`"));
        section(value, title, complaints)
    };
    jobs.into_iter().map(job).collect()
}

impl<T> Section<T> {
    /// One of which nothing can be made.
    fn empty(title: String, at: Range<usize>) -> Self {
        let is_whole = false;
        let heading = Heading {
            title,
            at,
            is_whole,
        };
        let content = None;
        Self { heading, content }
    }

    fn map<U>(self, f: impl FnOnce(T) -> U) -> Section<U> {
        Section {
            heading: self.heading,
            content: self.content.map(f),
        }
    }
}

/// Reads a table; says of all its keys that are unknown or of a wrong type, and
/// leaves them out.
fn section<'de, T: Deserialize<'de>>(
    value: Spanned<DeValue<'de>>,
    title: String,
    complaints: &mut Complaints<'_>,
) -> Section<T> {
    let at = value.span();
    let problems_before = complaints.len();
    let content = match value.into_inner() {
        DeValue::Table(table) => {
            let table = known::<T>(table, &title, complaints);
            typed(at.clone(), table, complaints)
        }
        _ => {
            let hint = "write KEY = VALUE lines below its heading";
            complaints.add(at.clone(), format!("{title} is no table"), hint);
            None
        }
    };
    let is_whole = complaints.len() == problems_before;
    let heading = Heading {
        title,
        at,
        is_whole,
    };
    Section { heading, content }
}

/// The keys that such a table may have.
fn known<'de, T: Deserialize<'de>>(
    table: DeTable<'de>,
    title: &str,
    complaints: &mut Complaints<'_>,
) -> DeTable<'de> {
    let known = keys::of::<T>();
    let (expected, unknown): (DeTable<'_>, DeTable<'_>) = table
        .into_iter()
        .partition(|(key, _)| known.contains(&key.get_ref().as_ref()));
    for (key, _) in &unknown {
        let (name, at) = (key.get_ref(), key.span());
        let hint = keys::hint(name, known);
        complaints.add(at, format!("unknown key `{name}` in {title}"), hint);
    }
    expected
}

/// Takes out each value of a wrong type until the rest can be read.
fn typed<'de, T: Deserialize<'de>>(
    at: Range<usize>,
    mut table: DeTable<'de>,
    complaints: &mut Complaints<'_>,
) -> Option<T> {
    loop {
        let whole = Spanned::new(at.clone(), table.clone());
        let error = match T::deserialize(toml::de::Deserializer::from(whole)) {
            Ok(content) => return Some(content),
            Err(error) => error,
        };
        let span = error.span().unwrap_or_else(|| at.clone());
        let wrong = table.iter().find(|(_, value)| {
            let value = value.span();
            value.start <= span.start && span.end <= value.end
        });
        let key = wrong.map(|(key, _)| key.get_ref().clone());
        let name = key.as_deref().unwrap_or("a value");
        complaints.add_error(span, &format!("`{name}`"), error.message());
        table.remove(key?.as_ref());
    }
}
