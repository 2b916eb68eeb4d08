//! The one place that reads the wall clock.

/// The present moment, in the local time zone.
#[allow(
    clippy::disallowed_methods,
    reason = "the shell around the pure parts: the one place that reads the clock"
)]
pub(crate) fn now() -> jiff::Zoned {
    jiff::Zoned::now()
}
