//! Suites of end-to-end tests once more, over HTTP/3: versions, lying servers, kill -9, full disks.
//! By the name of this program, [`fairbat_tests::front`] knows what to put in front of the servers.
#![allow(
    clippy::disallowed_methods,
    reason = "tests watch real processes, by the real clock"
)]

mod broken;
mod disk;
mod exact;
mod integrity;
mod version_change;
mod version_flux;
