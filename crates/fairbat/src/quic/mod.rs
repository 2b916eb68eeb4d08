//! What clients and servers of HTTP/3 have in common: the streams of a QUIC connection.

mod streams;

pub(crate) use self::streams::{Priorities, Receiving, Sending, Streams, code};
