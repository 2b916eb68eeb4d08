//! The file as written: its keys, their positions and their types.
//!
//! A value that may have several types stays a [`Value`]. `resolve` knows the meaning.

use std::ops::Range;

use serde::Deserialize;
use serde::de::value::Error;
use serde::de::{Deserializer, Error as _, Visitor};
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Value};

use super::problem::{Checker, suggestion};

/// The whole file.
#[derive(Debug, Default)]
pub(crate) struct Raw {
    pub(crate) agent: Option<RawAgent>,
    pub(crate) stores: Vec<(String, RawTable<RawStore>)>,
    pub(crate) jobs: Vec<RawTable<RawJob>>,
}

/// A table of the file.
#[derive(Debug)]
pub(crate) struct RawTable<T> {
    pub(crate) header: TableHeader,
    /// `None` if the table cannot be read at all.
    pub(crate) content: Option<T>,
}

/// A table as a whole, for problems.
#[derive(Debug)]
pub(crate) struct TableHeader {
    /// The name of the table in messages.
    pub(crate) title: String,
    /// The position of the table.
    pub(crate) at: Range<usize>,
    /// Whether every key of the table was understood. If not, a value that seems to be
    /// missing may be there under a misspelled key.
    pub(crate) is_complete: bool,
}

/// `[agent]`
#[derive(Debug, Default, Deserialize)]
pub(crate) struct RawAgent {
    pub(crate) state: Option<Spanned<String>>,
    pub(crate) socket: Option<Spanned<String>>,
    pub(crate) listen: Option<Spanned<Value>>,
    pub(crate) connections: Option<Spanned<i64>>,
    pub(crate) min_weight: Option<Spanned<f64>>,
    pub(crate) limit_rate: Option<Spanned<Value>>,
}

/// `[stores.NAME]`, by its `type`.
#[derive(Debug)]
pub(crate) enum RawStore {
    S3(RawS3),
    Webdav(RawHttp),
    Fairbat(RawHttp),
    Local(RawLocal),
}

/// `type = "s3"`
#[derive(Debug, Deserialize)]
pub(crate) struct RawS3 {
    pub(crate) endpoint: Option<Spanned<String>>,
    pub(crate) region: Option<Spanned<String>>,
    pub(crate) bucket: Option<Spanned<String>>,
    pub(crate) prefix: Option<Spanned<String>>,
    pub(crate) path_style: Option<bool>,
    pub(crate) credentials: Option<Spanned<String>>,
    pub(crate) cacert: Option<Spanned<String>>,
}

/// `type = "webdav"` and `type = "fairbat"`
#[derive(Debug, Deserialize)]
pub(crate) struct RawHttp {
    pub(crate) url: Option<Spanned<String>>,
    pub(crate) credentials: Option<Spanned<String>>,
    pub(crate) cacert: Option<Spanned<String>>,
}

/// `type = "local"`
#[derive(Debug, Deserialize)]
pub(crate) struct RawLocal {
    pub(crate) path: Option<Spanned<String>>,
}

/// `[[jobs]]`
#[derive(Debug, Deserialize)]
pub(crate) struct RawJob {
    pub(crate) name: Option<Spanned<String>>,
    pub(crate) direction: Option<Spanned<String>>,
    pub(crate) source: Option<Spanned<String>>,
    pub(crate) destination: Option<Spanned<String>>,
    pub(crate) schedule: Option<Spanned<Value>>,
    pub(crate) every: Option<Spanned<String>>,
    pub(crate) by: Option<Spanned<Value>>,
    pub(crate) within: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) include: Vec<String>,
    #[serde(default)]
    pub(crate) exclude: Vec<String>,
    pub(crate) delete: Option<Spanned<String>>,
    pub(crate) max_delete: Option<Spanned<Value>>,
    pub(crate) verify: Option<Spanned<String>>,
    pub(crate) detect: Option<Spanned<String>>,
    pub(crate) one_file_system: Option<Spanned<bool>>,
    pub(crate) limit_rate: Option<Spanned<Value>>,
    pub(crate) min_weight: Option<Spanned<f64>>,
}

/// The values of `type`.
const TYPES: [&str; 4] = ["s3", "webdav", "fairbat", "local"];

/// Reads the file. The result is empty if the text is not TOML.
pub(crate) fn read(text: &str, check: &mut Checker<'_>) -> Raw {
    let mut raw = Raw::default();
    let root = match DeTable::parse(text) {
        Ok(root) => root.into_inner(),
        Err(error) => {
            let at = error.span().unwrap_or_default();
            check.add(
                at,
                error.message(),
                "the file must be valid TOML, see https://toml.io",
            );
            return raw;
        }
    };
    for (key, value) in root {
        match key.get_ref().as_ref() {
            "agent" => raw.agent = table(value, "[agent]".to_owned(), check).content,
            "stores" => raw.stores = stores(value, check),
            "jobs" => raw.jobs = jobs(value, check),
            other => {
                let advice = suggestion(other, &["agent", "stores", "jobs"]);
                check.add(key.span(), format!("unknown key `{other}`"), advice);
            }
        }
    }
    raw
}

fn stores(
    value: Spanned<DeValue<'_>>,
    check: &mut Checker<'_>,
) -> Vec<(String, RawTable<RawStore>)> {
    let at = value.span();
    let DeValue::Table(stores) = value.into_inner() else {
        check.add(
            at,
            "`stores` is not a table",
            "write [stores.NAME] for each store",
        );
        return Vec::new();
    };
    let store = |(name, value): (Spanned<_>, _)| {
        let name = String::from(name.into_inner());
        let store = store(&name, value, check);
        (name, store)
    };
    stores.into_iter().map(store).collect()
}

/// Reads a store. Its valid keys depend on its type.
fn store(
    name: &str,
    mut value: Spanned<DeValue<'_>>,
    check: &mut Checker<'_>,
) -> RawTable<RawStore> {
    let title = format!("store `{name}`");
    let kind = match value.get_mut() {
        DeValue::Table(table) => table.remove("type"),
        _ => None,
    };
    let at = value.span();
    let Some(kind) = kind else {
        let advice = "write type = \"s3\", \"webdav\", \"fairbat\" or \"local\"";
        check.add(at.clone(), format!("{title} has no `type`"), advice);
        return RawTable::empty(title, at);
    };
    match kind.get_ref().as_str() {
        Some("s3") => table(value, title, check).map(RawStore::S3),
        Some("webdav") => table(value, title, check).map(RawStore::Webdav),
        Some("fairbat") => table(value, title, check).map(RawStore::Fairbat),
        Some("local") => table(value, title, check).map(RawStore::Local),
        other => {
            let advice = suggestion(other.unwrap_or_default(), &TYPES);
            check.add(
                kind.span(),
                format!("the type of {title} is unknown"),
                advice,
            );
            RawTable::empty(title, at)
        }
    }
}

fn jobs(value: Spanned<DeValue<'_>>, check: &mut Checker<'_>) -> Vec<RawTable<RawJob>> {
    let at = value.span();
    let DeValue::Array(jobs) = value.into_inner() else {
        check.add(
            at,
            "`jobs` is not a list",
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
        table(value, title, check)
    };
    jobs.into_iter().map(job).collect()
}

impl<T> RawTable<T> {
    /// A table that cannot be read.
    fn empty(title: String, at: Range<usize>) -> Self {
        let header = TableHeader {
            title,
            at,
            is_complete: false,
        };
        Self {
            header,
            content: None,
        }
    }

    fn map<U>(self, f: impl FnOnce(T) -> U) -> RawTable<U> {
        RawTable {
            header: self.header,
            content: self.content.map(f),
        }
    }
}

/// Reads a table. Reports and leaves out all keys that are unknown or of a wrong type.
fn table<'de, T: Deserialize<'de>>(
    value: Spanned<DeValue<'de>>,
    title: String,
    check: &mut Checker<'_>,
) -> RawTable<T> {
    let at = value.span();
    let problems_before = check.len();
    let content = match value.into_inner() {
        DeValue::Table(table) => {
            let table = known_keys::<T>(table, &title, check);
            typed(at.clone(), table, check)
        }
        _ => {
            let advice = "write lines KEY = VALUE below its heading";
            check.add(at.clone(), format!("{title} is not a table"), advice);
            None
        }
    };
    let is_complete = check.len() == problems_before;
    let header = TableHeader {
        title,
        at,
        is_complete,
    };
    RawTable { header, content }
}

/// Reports and leaves out the unknown keys of a table.
fn known_keys<'de, T: Deserialize<'de>>(
    table: DeTable<'de>,
    title: &str,
    check: &mut Checker<'_>,
) -> DeTable<'de> {
    let known = fields::<T>();
    let (expected, unknown): (DeTable<'_>, DeTable<'_>) = table
        .into_iter()
        .partition(|(key, _)| known.contains(&key.get_ref().as_ref()));
    for (key, _) in &unknown {
        let (name, at) = (key.get_ref(), key.span());
        let advice = suggestion(name, known);
        check.add(at, format!("unknown key `{name}` in {title}"), advice);
    }
    expected
}

/// Reads the values. Reports and leaves out each value of a wrong type.
fn typed<'de, T: Deserialize<'de>>(
    at: Range<usize>,
    mut table: DeTable<'de>,
    check: &mut Checker<'_>,
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
        check.value(span, &format!("`{name}`"), Err::<(), _>(error.message()));
        table.remove(key?.as_ref());
    }
}

/// The names of the fields of a structure, as serde knows them.
pub(crate) fn fields<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    let mut fields: &'static [&'static str] = &[];
    // This is always an error: nothing is read.
    let _ = T::deserialize(FieldNames(&mut fields));
    fields
}

/// A deserializer that stores the fields that a structure asks for.
struct FieldNames<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for FieldNames<'_> {
    type Error = Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Error> {
        *self.0 = fields;
        Err(Error::custom("the fields are known"))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Error> {
        Err(Error::custom("not a structure"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_a_structure_are_as_serde_names_them() {
        #[derive(Deserialize)]
        #[allow(dead_code, reason = "only its names matter")]
        struct Example {
            first: Option<String>,
            #[serde(rename = "type")]
            kind: u8,
        }
        assert_eq!(fields::<Example>(), ["first", "type"]);
    }
}
