//! Holds the connections of other programs: together they yield as one flow of the lane's
//! weight.
//!
//! - `settings`: what a caller chooses; `event`: what is reported;
//! - `scope`: whose connections, and which processes cannot be reached; `sockets`: what their
//!   sockets are;
//! - `connection`: the levers on one of them;
//! - `holder`: finds connections, updates them and lets them go.
//!
//! A socket belongs to its program. Here it is duplicated for one look at a time, since a
//! duplicate keeps a connection open that its owner has closed.

mod connection;
mod event;
mod holder;
mod scope;
mod settings;
mod sockets;

pub use self::event::{HoldControl, HoldEvent, HoldReport, TimedHoldEvent};
pub use self::holder::Holder;
pub use self::scope::Scope;
pub use self::settings::HoldSettings;
pub use self::sockets::free;
