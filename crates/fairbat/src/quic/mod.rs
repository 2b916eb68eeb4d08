//! What clients and servers of HTTP/3 have in common: the streams of a QUIC connection, and
//! what h3 does not check on them.

mod frames;
mod length;
mod streams;

pub(crate) use self::length::{BodyLength, WrongLength};
pub(crate) use self::streams::{Priorities, Receiving, Sending, Streams, code};
