//! A way in which a matrix is run.

use dalbe::weight::ControllerPolicy;
use serde::Deserialize;

use lab_run::scenario;
use lab_run::scenario::{Path, Scenario, within};

/// A way to run a matrix.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// What it is called, in tables and in names of directories.
    pub name: String,
    /// Why it is there, a sentence for people.
    pub why: Option<String>,
    /// So many labs side by side, in place of what the machine bears.
    pub jobs: Option<usize>,
    /// How often the links are sampled, ms.
    pub sampling_ms: Option<u64>,
    /// The least weight of the contenders' connections, in place of the
    /// scenario's.
    pub weight: Option<f64>,
    /// Connections that the contenders begin with, in place of the scenario's.
    pub connections: Option<u32>,
    /// Priorities of these connections of the lab's senders, in place of the scenario's.
    #[serde(default)]
    pub priorities: Vec<u32>,
    /// CDG's back-off scale of the lab's senders, ms, in place of the
    /// scenario's.
    pub g_ms: Option<f64>,
    /// What sets the weight of `fairbat` and the lab's senders by a deadline, in
    /// place of the scenario's.
    pub controller: Option<ControllerPolicy>,
    /// Another path in place of the scenarios'.
    pub path: Option<Path>,
}

/// Variants that another matrix lists.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VariantsOf {
    /// Name of the other matrix.
    pub matrix: String,
    /// Names of its variants.
    pub names: Vec<String>,
}

impl Variant {
    /// A scenario as this variant runs it.
    ///
    /// # Errors
    /// When it cannot be run like that.
    pub fn as_run(&self, scenario: &Scenario) -> Result<Scenario, String> {
        let mut scenario = scenario.clone();
        if let Some(path) = &self.path {
            if scenario.is_parallel() {
                return Err("paths side by side cannot be put on another path".to_owned());
            }
            scenario.put_on(path);
        }
        let background = &mut scenario.background;
        background.weight = self.weight.or(background.weight);
        background.connections = self.connections.or(background.connections);
        if !self.priorities.is_empty() {
            background.priorities.clone_from(&self.priorities);
        }
        background.g_ms = self.g_ms.or(background.g_ms);
        background.controller = self.controller.or(background.controller);
        scenario.check()?;
        Ok(scenario)
    }

    /// The options of `lab run` that run a scenario as this variant does, with their values.
    #[must_use]
    pub fn options(&self) -> Vec<(&'static str, String)> {
        let Self {
            name: _,
            why: _,
            jobs: _,
            sampling_ms,
            weight,
            connections,
            priorities,
            g_ms,
            controller,
            path,
        } = self;
        let priorities: Vec<_> = priorities.iter().map(ToString::to_string).collect();
        let options = [
            ("--sampling", sampling_ms.map(|value| value.to_string())),
            ("--weight", weight.map(|value| value.to_string())),
            ("--connections", connections.map(|value| value.to_string())),
            (
                "--priorities",
                (!priorities.is_empty()).then(|| priorities.join(",")),
            ),
            ("--g-ms", g_ms.map(|value| value.to_string())),
            (
                "--controller",
                controller.map(|value| value.name().to_owned()),
            ),
            ("--path", path.map(|value| value.to_string())),
        ];
        let given = options.into_iter();
        given
            .filter_map(|(option, value)| Some((option, value?)))
            .collect()
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if self.name.is_empty() || self.name.starts_with('.') || self.name.contains('/') {
            return Err(format!(
                "variants: no directory can be called {:?}",
                self.name
            ));
        }
        let jobs = self.jobs.map(|jobs| jobs as f64);
        let jobs = jobs.map_or(Ok(()), |jobs| within("jobs", jobs, 1.0..=64.0));
        let sampling = self.sampling_ms.map(|sampling| sampling as f64);
        let sampling = sampling.map_or(Ok(()), |sampling| {
            within("sampling_ms", sampling, 1.0..=10_000.0)
        });
        let weight = self.weight.map_or(Ok(()), scenario::weight);
        let connections = self.connections.map_or(Ok(()), scenario::connections);
        let scale = self.g_ms.map_or(Ok(()), scenario::scale);
        let all = jobs.and(sampling).and(weight).and(connections).and(scale);
        all.map_err(|error| format!("variants: {error}"))
    }
}
