//! The plain sender rung. To be written.

/// The rate of one connection under control.
#[derive(Debug, Clone, Default)]
pub struct Pacer {}

impl Pacer {
    /// For a connection of which nothing is known yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}
