//! Holds the connections of other programs: together they yield as one flow of the lane's
//! weight.
//!
//! - `scope`: whose connections, and which processes cannot be reached;
//! - `connection`: the levers on one of them;
//! - `holder`: finds connections, updates them and lets them go.
//!
//! A socket belongs to its program. Here it is duplicated for one look at a time, since a
//! duplicate keeps a connection open that its owner has closed.

mod connection;
mod event;
mod holder;
mod scope;

pub use self::event::{HoldControl, HoldEvent, HoldReport, TimedHoldEvent};
pub use self::holder::{HoldSettings, Holder, free};
pub use self::scope::Scope;
