//! Other programs: start one, find what descends from it, and reach its sockets.
//!
//! Our levers act on sockets, and a process may act on those of the processes that it has
//! started, whatever they are written in.
//!
//! - `launch`: starts a program whose system calls are told; `listener`: is told of them;
//! - `inherited`: what this process has from its parent;
//! - `halves`: a second process that goes on when the first is killed;
//! - `tree`: which processes there are;
//! - `descriptors`: the sockets of a process;
//! - `trial`: whether all this works here.
//!
//! This room knows neither weights nor deadlines.

mod descriptors;
mod halves;
mod inherited;
mod launch;
mod listener;
mod sys;
mod tree;
mod trial;

pub use self::descriptors::ForeignProcess;
pub use self::halves::{Half, split};
pub use self::inherited::Inherited;
pub use self::launch::{ListenError, launch, receive, start};
pub use self::listener::{Intent, LastNotice, Listener, Notice};
pub use self::tree::{descendants, members_of, own_number};
pub(crate) use self::trial::{notices, sockets};
