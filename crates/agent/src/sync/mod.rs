//! Bringing a store in step with a directory: one way, by what was synced last.
//!
//! A run scans, sends what is new or changed, and deletes what is gone if it is
//! told to. Whatever happens to it, the next one goes on from where it was: what
//! the store has is remembered file by file, and part by part.

mod adopt;
mod attempts;
mod begun;
mod fetched;
mod ledger;
mod manifests;
mod orphans;
mod placing;
mod plan;
mod pull;
mod push;
mod removal;
mod report;
mod sending;
mod source;
mod spool;
mod tell;
mod teller;
mod unsettled;
mod upload;
mod window;

pub use self::ledger::{Progress, ProgressTotals};
pub use self::orphans::collect;
pub use self::pull::{MANIFEST_PAUSES, PullOrigin, PullSettings, pull};
pub use self::push::{PushContext, PushSettings, push};
pub use self::report::{EntryFailure, RunProblem, RunReport};
pub use self::teller::PUBLISH_INTERVAL;
pub use crate::config::{Delete, Detect, MaxDelete, Verify};
