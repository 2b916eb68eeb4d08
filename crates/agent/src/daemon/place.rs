//! Where a job writes, as it is remembered: what is in step there is so nowhere else,
//! whatever the configuration calls either.

use crate::config::{Config, Course, Store};
use crate::state::PlaceRecord;

/// What the directories of this machine are called that pulls fill.
const HERE: &str = "this machine";

/// Where a course of this configuration leads.
pub(super) fn place(config: &Config, course: &Course) -> PlaceRecord {
    match course {
        Course::Push { to, .. } => PlaceRecord {
            store: address(config, &to.store),
            path: to.path.clone(),
        },
        Course::Pull { to, .. } => PlaceRecord {
            store: HERE.to_owned(),
            path: to.display().to_string(),
        },
    }
}

/// What a store is reached at, by its name.
pub(super) fn address(config: &Config, store: &str) -> String {
    let store = config.stores.get(store);
    store.map(Store::address).unwrap_or_default()
}
