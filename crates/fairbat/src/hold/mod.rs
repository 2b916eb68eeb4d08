//! Holds the connections of other programs: together they yield as one flow of the lane's
//! weight.
//!
//! - `settings`: what a caller chooses; `event`: what is reported;
//! - `plan`: what is to be moved, and by when; `group`: connections that share a plan;
//! - `scope`: whose connections, and which processes cannot be reached; `sockets`: what their
//!   sockets are;
//! - `unit`: where systemd keeps the processes of a unit;
//! - `history`: what earlier runs have moved, and what the next one is expected to;
//! - `handle`: where a socket is; `connecting`: sockets that may connect; `connection`: the levers
//!   on one of them;
//! - `joining`: when its lane takes part in that of the machine;
//! - `looks`: when to look for processes and sockets;
//! - `holder`: finds connections, updates them and lets them go.
//!
//! A socket belongs to its program. Here it is duplicated for one look at a time, since a
//! duplicate keeps a connection open that its owner has closed.

mod connecting;
mod connection;
mod event;
mod group;
mod handle;
pub mod history;
mod holder;
mod joining;
mod looks;
mod plan;
mod scope;
mod settings;
mod sockets;
pub mod unit;

pub use self::event::{HoldControl, HoldEvent, HoldReport, TimedHoldEvent};
pub use self::group::GroupReport;
pub use self::holder::Holder;
pub use self::plan::{FLOOR, HoldPlan};
pub use self::scope::{Scope, allow_descriptors, is_running};
pub use self::settings::HoldSettings;
pub use self::sockets::free;
