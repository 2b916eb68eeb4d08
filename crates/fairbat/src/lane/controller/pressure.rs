//! How hard each flow presses, and who says so. Knows nothing of time.

use dalbe::weight::WeightController;

/// What decides how hard each flow presses.
#[derive(Debug)]
pub(super) enum Pressure {
    /// Nothing brakes the flows: they weigh 1.
    Unbraked,
    /// What the deadlines ask for.
    Deadlines(WeightController),
    /// m: where it is below one connection, that one yields to anybody in the slots
    /// in which there would be none.
    Limit {
        /// The weight that yields.
        least: f64,
        /// Whether it yields in this slot.
        yields: bool,
    },
}

impl Pressure {
    /// Weight of each flow now.
    pub(super) fn w(&self) -> f64 {
        match self {
            Self::Limit {
                least,
                yields: true,
            } => *least,
            Self::Unbraked | Self::Limit { .. } => 1.0,
            Self::Deadlines(weight) => weight.w(),
        }
    }

    /// How many connections there may be in the next slot, where the limit has room
    /// for so many.
    pub(super) fn allow(&mut self, connections: u32) -> u32 {
        match self {
            Self::Unbraked | Self::Deadlines(_) => connections,
            Self::Limit { yields, .. } => {
                *yields = connections == 0;
                connections.max(1)
            }
        }
    }

    /// How many of those in use count against the limit: who yields takes nothing
    /// from anybody.
    pub(super) fn counted(&self, in_use: u32) -> u32 {
        match self {
            Self::Limit { yields: true, .. } => 0,
            _ => in_use,
        }
    }
}
