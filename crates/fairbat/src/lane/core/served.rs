//! How long a member of a lane has been served, as its turns count it.

use std::time::Duration;

/// A member may take so many times as long as the fastest one for the same bytes.
const MOST_PATIENCE: u32 = 4;

/// How long a member has been served.
#[derive(Debug, Default)]
pub(super) struct Served {
    pub(super) total: Duration,
    /// Time on connections and bytes that are counted in it.
    used: Duration,
    moved: u64,
    /// Whether it has a place among the others.
    pub(super) has_begun: bool,
}

impl Served {
    /// Counts what is new, where the fastest member moves so many bytes a second. Of a member whose
    /// bytes are not known, the time counts.
    pub(super) fn count(&mut self, used: Duration, moved: u64, fastest: f64) {
        let new = used.saturating_sub(self.used);
        let bytes = moved.saturating_sub(self.moved) as f64;
        let of_bytes = Duration::try_from_secs_f64(bytes / fastest).ok();
        let of_bytes = of_bytes.filter(|_| moved > 0);
        self.total += of_bytes.map_or(new, |it| it.max(new / MOST_PATIENCE));
        (self.used, self.moved) = (used, moved);
    }
}
