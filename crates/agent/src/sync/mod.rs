//! Bringing a store in step with a directory: one way, by what was synced last.
//!
//! A run scans, sends what is new or changed, and deletes what is gone if it is
//! told to. Whatever happens to it, the next one goes on from where it was: what
//! the store has is remembered file by file, and part by part.

mod adopt;
mod attempts;
mod fetched;
mod ledger;
mod manifests;
mod placing;
mod plan;
mod pull;
mod push;
mod report;
mod source;
mod spool;
mod tell;
mod upload;

pub use self::ledger::{Ledger, Standing};
pub use self::pull::{Origin, PullSettings, pull};
pub use self::push::{Context, PushSettings, push};
pub use self::report::{Failure, Problem, Report};

/// By what it is seen that a file has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detect {
    /// Size, times and inode; where these leave it open, the content.
    #[default]
    Metadata,
    /// The content of each file.
    Content,
}

/// What becomes of files that are gone from the source.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Delete {
    /// The store keeps them.
    #[default]
    Never,
    /// They are deleted, if they are no more than this.
    Mirror {
        /// Beyond it nothing is deleted.
        most: MaxDelete,
    },
}

/// How many files may be deleted in one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MaxDelete {
    /// So many.
    Files(u64),
    /// This share of those in step, 0 to 1.
    Share(f64),
}
