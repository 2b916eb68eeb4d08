//! `[[hold]]`: units and control groups whose connections yield, held by `fairbat-agent hold`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use fairbat::hold::Scope;
use fairbat::hold::history::History;
use fairbat::hold::unit::CONTROL_GROUPS;
use fairbat::hours::{Hours, is_within};
use jiff::Zoned;
use toml::Spanned;
use toml::de::DeValue;

use super::due::Due;
use super::problem::Checker;
use super::table::Table;

pub(crate) const KEYS: [&str; 9] = [
    "name",
    "unit",
    "cgroup",
    "hours",
    "by",
    "within",
    "bytes",
    "min_weight",
    "include_local",
];

/// Connections that are held.
#[derive(Debug, Clone, PartialEq)]
pub struct HoldConfig {
    /// A unique name.
    pub name: String,
    /// Whose.
    pub target: HoldTarget,
    /// They are held in these hours; always if there are none.
    pub hours: Vec<Hours>,
    /// The soft deadline of each run, counted from its start.
    pub due: Option<Due>,
    /// What a run moves, bytes; `None` to learn it from earlier runs.
    pub bytes: Option<u64>,
    /// w_min: all connections together have at least this weight, 0.02 to 1.
    pub min_weight: f64,
    /// Whether connections to this machine's own addresses are held as well.
    pub include_local: bool,
}

/// Whose connections are held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HoldTarget {
    /// A unit of systemd.
    Unit(String),
    /// A control group, by its directory.
    Group(PathBuf),
}

impl HoldConfig {
    /// Whether its connections are held at this moment, in local time.
    #[must_use]
    pub fn is_due(&self, now: &Zoned) -> bool {
        is_within(&self.hours, now)
    }

    /// The processes.
    #[must_use]
    pub fn scope(&self) -> Scope {
        match &self.target {
            HoldTarget::Unit(unit) => Scope::Unit(unit.clone()),
            HoldTarget::Group(directory) => Scope::Group(directory.clone()),
        }
    }

    /// What is held, for people.
    #[must_use]
    pub fn what(&self) -> String {
        match &self.target {
            HoldTarget::Unit(unit) => unit.clone(),
            HoldTarget::Group(directory) => directory.display().to_string(),
        }
    }
}

/// Reads all of them. One without a `min_weight` has this one.
pub(crate) fn holds<'t>(
    value: Spanned<DeValue<'t>>,
    min_weight: f64,
    check: &mut Checker<'t>,
) -> Vec<HoldConfig> {
    let at = value.span();
    let DeValue::Array(values) = value.into_inner() else {
        let advice = "write [[hold]] before each, with two brackets";
        check.add(at, "`hold` is not a list", advice);
        return Vec::new();
    };
    let mut names = BTreeSet::new();
    let hold = |value| {
        let table = Table::new(value, "[[hold]]".to_owned(), &KEYS, check);
        hold(table, &mut names, min_weight)
    };
    values.into_iter().filter_map(hold).collect()
}

/// Reads all keys before it gives up.
fn hold(
    mut table: Table<'_, '_>,
    names: &mut BTreeSet<String>,
    min_weight: f64,
) -> Option<HoldConfig> {
    let target = target(&mut table);
    let name = name(&mut table, target.as_ref(), names);
    let hours = hours(&mut table);
    let due = table.due();
    let advice = "write bytes, such as \"500M\" or \"40G\"";
    let bytes = table.bytes("bytes", "is not a number of bytes", advice);
    if bytes.is_some() && !table.has("by") && !table.has("within") {
        let advice = "add `by` or `within`, or take it out";
        table.wrong("bytes", "has no meaning without a deadline", advice);
    }
    let own_weight = table.min_weight();
    let include_local = table.get("include_local").unwrap_or(false);
    Some(HoldConfig {
        name: name?,
        target: target?,
        hours: hours?,
        due,
        bytes,
        min_weight: own_weight.unwrap_or(min_weight),
        include_local,
    })
}

fn target(table: &mut Table<'_, '_>) -> Option<HoldTarget> {
    if table.exclude_each_other("unit", "cgroup") {
        return None;
    }
    if table.has("cgroup") {
        let directory = table.path("cgroup")?;
        if !directory.starts_with(CONTROL_GROUPS) {
            let advice = "write its directory, such as \"/sys/fs/cgroup/system.slice\"";
            table.wrong("cgroup", "is no control group", advice);
            return None;
        }
        return Some(HoldTarget::Group(directory));
    }
    let advice = "write unit = \"NAME.service\", or cgroup = \"/sys/fs/cgroup/...\"";
    let unit = table.required("unit", advice)?;
    if unit.is_empty() || unit.contains('/') {
        table.wrong("unit", "is not the name of a unit", advice);
        return None;
    }
    Some(HoldTarget::Unit(unit))
}

/// The name, or else that of the unit.
fn name(
    table: &mut Table<'_, '_>,
    target: Option<&HoldTarget>,
    taken: &mut BTreeSet<String>,
) -> Option<String> {
    let name = match (table.has("name"), target) {
        (false, Some(HoldTarget::Unit(unit))) => unit.clone(),
        (false, None) => return None,
        (true, _) | (false, Some(HoldTarget::Group(_))) => {
            table.required("name", "write name = \"NAME\"")?
        }
    };
    // It names a file of the state.
    if let Err(error) = History::below(&PathBuf::new(), &name) {
        table.report("name", format!("{name:?} is not a valid name"), error);
        return None;
    }
    if !taken.insert(name.clone()) {
        let what = format!("there is a [[hold]] `{name}` already");
        table.report("name", what, "give each a `name` of its own");
        return None;
    }
    Some(name)
}

fn hours(table: &mut Table<'_, '_>) -> Option<Vec<Hours>> {
    if !table.has("hours") {
        return Some(Vec::new());
    }
    let Some(texts) = table.texts("hours") else {
        let advice = "write for example \"Mon..Fri 08:00-18:00\", or a list";
        table.wrong("hours", "is not a text or a list of texts", advice);
        return None;
    };
    let parsed = texts.iter().map(|text| table.parsed("hours", text.parse()));
    let parsed: Vec<Option<Hours>> = parsed.collect();
    parsed.into_iter().collect()
}
