//! The largest w_min of the members that have something to move. It is asked for at each change
//! and for each guest, so it is kept up to date: the lane of a site has thousands of members.

use std::collections::BTreeMap;

use super::member::MemberState;
use crate::lane::settings::Service;

/// How many members there are of each weight, in the stream and of the others.
#[derive(Debug, Default)]
pub(super) struct Weights {
    stream: BTreeMap<u64, usize>,
    others: BTreeMap<u64, usize>,
}

impl Weights {
    fn of(&mut self, member: &MemberState) -> &mut BTreeMap<u64, usize> {
        match member.service {
            Service::Stream => &mut self.stream,
            Service::ByDeadline(_) | Service::Scavenge => &mut self.others,
        }
    }

    /// A member is what it is now.
    pub(super) fn add(&mut self, member: &MemberState) {
        if member.is_pending() {
            *self.of(member).entry(key(member.weight)).or_default() += 1;
        }
    }

    /// A member is no longer what it was.
    pub(super) fn remove(&mut self, member: &MemberState) {
        if member.is_pending() {
            let weights = self.of(member);
            let key = key(member.weight);
            if let Some(count) = weights.get_mut(&key) {
                *count -= 1;
                if *count == 0 {
                    weights.remove(&key);
                }
            }
        }
    }
}

/// The bits of numbers that are not below zero are in the order of the numbers.
fn key(weight: f64) -> u64 {
    weight.max(0.0).to_bits()
}

impl Weights {
    /// The largest, of the stream or of the others.
    pub(super) fn largest(&self, in_stream: bool) -> f64 {
        let weights = match in_stream {
            true => &self.stream,
            false => &self.others,
        };
        let largest = weights.last_key_value();
        largest.map_or(0.0, |(bits, _)| f64::from_bits(*bits))
    }
}
