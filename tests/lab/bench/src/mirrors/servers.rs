//! The five servers of a run.

use std::net::Ipv4Addr;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::draw::{Draw, Kind, Lie, Stale, Stall};
use super::{RATE, ROUND_TRIP};
use fairbat_tests::content::Content;
use fairbat_tests::fault::{FaultServer, Reach};
use fairbat_tests::message::{End, Framing, Reply, Request};
use fairbat_tests::version::{LAST_MODIFIED, Version};

/// Where each of them has the file.
const PATH: &str = "/pub/file";

/// One of them.
pub(super) struct Mirror {
    pub(super) kind: Kind,
    pub(super) server: FaultServer,
}

impl Mirror {
    pub(super) fn url(&self) -> String {
        self.server.url(PATH)
    }
}

/// What each mirror has, made once for all contenders.
pub(super) struct Mirrors(Vec<Version>);

impl Mirrors {
    pub(super) fn new(draw: &Draw, file: &Content) -> Self {
        let right = file.all();
        let versions = draw.order.iter().enumerate().map(|(index, kind)| {
            let bytes = match kind {
                Kind::Good | Kind::Stalling => right.clone(),
                Kind::Stale => stale(draw, &right),
                Kind::Lying => lying(draw, &right),
            };
            let version = Version::of(bytes);
            if draw.same_validators {
                return version
                    .etag(Some("\"same\""))
                    .last_modified(Some(LAST_MODIFIED));
            }
            version
                .etag(Some(&format!("\"mirror-{index}\"")))
                .last_modified(Some(&format!("Wed, 01 Jan 2020 00:00:0{index} GMT")))
        });
        Self(versions.collect())
    }

    /// Starts them anew. Each has an address of its own, as aria2c counts connections by host.
    pub(super) fn start(&self, draw: &Draw) -> Vec<Mirror> {
        let starting = draw.order.iter().zip(&self.0).enumerate();
        let started = starting.map(|(index, (&kind, version))| {
            let server = FaultServer::reached(&Reach {
                address: Ipv4Addr::new(127, 0, 0, index as u8 + 1),
                rate: Some(RATE),
                round_trip: ROUND_TRIP,
            });
            let version = version.clone();
            match (kind, draw.stall, draw.lie) {
                (Kind::Stalling, Stall::Silent, _) => server.script(PATH, |_| {
                    let nothing = Reply::status(200).framing(Framing::Nothing);
                    nothing.end(End::Stall(0))
                }),
                (Kind::Stalling, Stall::After(bytes), _) => server.script(PATH, move |request| {
                    version.answer(request).end(End::Stall(bytes))
                }),
                (Kind::Lying, _, Lie::BreaksOff(length)) => {
                    server.script(PATH, move |request| breaking_off(&version, request, length));
                }
                (Kind::Good | Kind::Stale | Kind::Lying, _, _) => server.serve(PATH, version),
            }
            Mirror { kind, server }
        });
        started.collect()
    }
}

/// The answer of a server that says what `version` says, and has only the first `length` bytes.
fn breaking_off(version: &Version, request: &Request, length: u64) -> Reply {
    let (size, reply) = (version.bytes().len() as u64, version.answer(request));
    let sent = reply.body_bytes().len() as u64;
    let begin = match request.range() {
        Some((first, _)) if first >= size => return reply,
        Some((first, _)) if sent < size => first,
        _ => 0,
    };
    if begin + sent <= length {
        return reply;
    }
    reply.end(End::Close(length.saturating_sub(begin)))
}

/// The version before, with the same length.
fn stale(draw: &Draw, right: &[u8]) -> Vec<u8> {
    let mut bytes = right.to_vec();
    let mut random = StdRng::seed_from_u64(!draw.seed);
    // XOR with what is not 0: a byte that differs.
    let mut change = |byte: &mut u8| *byte ^= random.random_range(1..=255u8);
    match draw.stale {
        Stale::Everywhere => bytes.iter_mut().for_each(change),
        Stale::Stretch(begin) => {
            let begin = begin as usize;
            bytes[begin..][..right.len() / 10]
                .iter_mut()
                .for_each(change);
        }
        Stale::Scattered => {
            let mut which = StdRng::seed_from_u64(draw.seed);
            for byte in &mut bytes {
                if which.random_ratio(1, 10) {
                    change(byte);
                }
            }
        }
    }
    bytes
}

/// The file with another length.
fn lying(draw: &Draw, right: &[u8]) -> Vec<u8> {
    let mut bytes = right.to_vec();
    match draw.lie {
        Lie::Shorter(length) => bytes.truncate(length as usize),
        Lie::Longer(length) => {
            let more = Content::new(!draw.seed, length - right.len() as u64);
            bytes.extend(more.all());
        }
        Lie::BreaksOff(_) => {}
    }
    bytes
}
