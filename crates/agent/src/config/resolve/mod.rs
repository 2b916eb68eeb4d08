//! From what was written to what is meant: every value is checked here, and every
//! complaint says what to do instead. What is wrong is left out, so that all of it
//! can be told at once.

mod agent;
mod jobs;
mod overlaps;
mod stores;
mod values;

use std::ffi::OsString;

use super::Config;
use super::problem::Complaints;
use super::raw::Raw;

/// The configuration; only good if there are no complaints.
pub(super) fn resolve(
    raw: Raw,
    variable: impl Fn(&str) -> Option<OsString>,
    complaints: &mut Complaints<'_>,
) -> Config {
    let agent = agent::agent(raw.agent.unwrap_or_default(), variable, complaints);
    let stores = stores::stores(raw.stores, complaints);
    let jobs = jobs::jobs(raw.jobs, &stores, agent.min_weight, complaints);
    overlaps::complain(&jobs, &stores, complaints);
    let resolved = stores.into_iter();
    Config {
        agent,
        stores: resolved
            .filter_map(|(name, store)| Some((name, store?)))
            .collect(),
        jobs: jobs.into_iter().map(|located| located.job).collect(),
    }
}
