//! Brings a store in step with a directory, or a directory with a store: one way, by
//! what was synced last.
//!
//! - push: `push` follows a `plan` (from a scan and the state) and sends each file by
//!   `upload`; `publisher` writes the manifests; `adopt` continues a place that the
//!   state does not know; `orphans` aborts abandoned uploads. `job` is what they share.
//! - pull: `pull` reads the manifests (`manifest_store`), compares them with the disk,
//!   fetches, and installs by `install`
//! - check: `check` compares the store with the state: by a listing (`differing`), and
//!   by reading a `sample`; the next push sends again what is damaged
//! - all: `settings` says what a run works with, `retry_store` retries requests,
//!   `progress` counts, `spool` keeps long lists, `stop` ends a run early, `report` says
//!   how it ended
//!
//! However a run ends, the next one continues: the state knows each file and each
//! part that the store has.

mod adopt;
mod check;
mod damaged;
mod differing;
mod install;
mod job;
mod manifest_store;
mod orphans;
mod plan;
mod progress;
mod publisher;
mod pull;
mod push;
mod report;
mod retry_store;
mod sample;
mod settings;
mod source;
mod spool;
mod stop;
mod upload;

pub use self::check::{CheckSettings, check};
pub use self::damaged::DamagedFiles;
pub use self::job::{PushContext, PushSettings};
pub use self::orphans::collect;
pub use self::progress::{ProgressTotals, RunProgress};
pub use self::publisher::PUBLISH_INTERVAL;
pub use self::pull::{MANIFEST_PAUSES, PullSettings, pull};
pub(crate) use self::push::accept_unmounted;
pub use self::push::push;
pub use self::report::{EntryFailure, RunProblem, RunReport};
pub(crate) use self::retry_store::RETRIES;
pub use self::settings::{LaneStore, RunSettings};
pub(crate) use self::stop::until_stopped;
pub use crate::config::{Delete, Detect, MaxDelete, Verify};
