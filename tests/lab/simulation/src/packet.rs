//! What travels in a simulation: segments of TCP, their acknowledgements, datagrams.

use std::time::Duration;

use lab_run::link::{MTU, PAYLOAD};

/// Payload of a full segment, bytes.
pub(crate) const SEGMENT: u64 = PAYLOAD as u64;

/// Headers of IP and TCP with timestamps, bytes.
pub(crate) const HEADERS: u64 = MTU as u64 - SEGMENT;

/// A packet on its way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packet {
    /// The connection, or the source of datagrams, by its number.
    pub(crate) flow: usize,
    /// When it was sent.
    pub(crate) sent: Duration,
    /// Length with all headers, bytes.
    pub(crate) bytes: u64,
    /// Whether its sender knows ECN.
    pub(crate) is_ect: bool,
    pub(crate) content: Content,
}

/// What it carries.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Content {
    Syn,
    SynAck,
    /// The request, which ends the handshake too.
    Request,
    Data(Data),
    Acknowledgement(Acknowledgement),
    Datagram,
}

/// A segment with data; an empty one asks for an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Data {
    /// Number of the first byte.
    pub(crate) first: u64,
    /// Payload, bytes.
    pub(crate) length: u64,
    /// The receiver's timestamp that it echoes, ms.
    pub(crate) echo_ms: u64,
}

/// An acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Acknowledgement {
    /// The next byte that is expected.
    pub(crate) next: u64,
    /// End of the window on offer.
    pub(crate) edge: u64,
    /// From where to where data has come beyond a hole, newest first; empty ones do
    /// not count (RFC 2018).
    pub(crate) blocks: [(u64, u64); 3],
    /// Segments that were marked since the last one. TCP says less of it (RFC 3168).
    pub(crate) marks: u32,
    /// One-way delay of the segment that it answers.
    pub(crate) delay: Duration,
}
