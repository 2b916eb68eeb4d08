//! The receiver lever.

mod bottleneck;
mod delays;
mod history;
mod lever;
mod limiter;
mod limits;
mod min_filter;
mod pause;
mod policy;
mod renewals;
mod samples;
mod stale;
mod state;
pub mod vulture;
mod watched;
mod yielding;

pub use self::lever::{PathMemory, WindowLever, WindowOffer, WindowSettings};
pub(crate) use self::limiter::MIN_SEGMENT;
pub use self::limiter::ReceiveWindowLimiter;
pub use self::policy::ReceiverPolicy;
pub use self::renewals::ConnectionRenewals;
pub use self::state::{HELD_BACK_SHARE, ReceiveWindowState};
pub use self::watched::PacketArrivals;
