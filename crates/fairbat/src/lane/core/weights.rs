//! The largest w_min of the members that have something to move. It is asked for at each change
//! and for each guest, so it is kept up to date: the lane of a site has thousands of members.

use std::collections::BTreeMap;

use super::{Core, Member, MemberId, Service};

/// How many members there are of each weight, in the stream and of the others.
#[derive(Debug, Default)]
pub(super) struct Weights {
    stream: BTreeMap<u64, usize>,
    others: BTreeMap<u64, usize>,
}

impl Weights {
    fn of(&mut self, member: &Member) -> &mut BTreeMap<u64, usize> {
        match member.service {
            Service::Stream => &mut self.stream,
            Service::ByDeadline(_) | Service::Scavenge => &mut self.others,
        }
    }

    fn add(&mut self, member: &Member) {
        if member.is_pending() {
            *self.of(member).entry(key(member.weight)).or_default() += 1;
        }
    }

    /// A member is no longer what it was.
    pub(super) fn remove(&mut self, member: &Member) {
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

impl Core {
    /// Changes what a member has to move, or its weight.
    pub(super) fn change(&mut self, id: MemberId, act: impl FnOnce(&mut Member)) {
        if let Some(member) = self.members.get_mut(&id) {
            self.weights.remove(member);
            act(member);
            self.weights.add(member);
        }
    }

    /// The largest w_min of the members that have something to move, in the stream or of the
    /// others.
    pub(crate) fn weight(&self, in_stream: bool) -> f64 {
        let weights = match in_stream {
            true => &self.weights.stream,
            false => &self.weights.others,
        };
        let largest = weights.last_key_value();
        largest.map_or(0.0, |(bits, _)| f64::from_bits(*bits))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;
    use proptest::prelude::*;

    use super::*;
    use crate::lane::backlog::{Backlog, Extent};
    use crate::lane::settings::{LaneSettings, Mode};

    /// The same, from all members.
    fn looked_up(core: &Core, in_stream: bool) -> f64 {
        let members = core.members.values().filter(|member| member.is_pending());
        members
            .filter(|member| (member.service == Service::Stream) == in_stream)
            .map(|member| member.weight)
            .fold(0.0, f64::max)
    }

    proptest! {
        #[test]
        fn what_is_kept_is_what_the_members_say(
            steps in prop::collection::vec((0..5_u8, 0..6_u64, 0..4_u64), 1..100),
        ) {
            let settings = LaneSettings::new(4);
            let mut core = Core::new(settings, Mode::Shared, Timestamp::UNIX_EPOCH).unwrap();
            let now = Duration::ZERO;
            for (what, id, amount) in steps {
                let id = MemberId(id);
                match what {
                    0 => {
                        let stream = [Service::Scavenge, Service::Stream];
                        core.enter(now, "host", stream[amount as usize % 2]);
                    }
                    1 => core.set_weight(id, amount as f64 / 4.0),
                    2 => core.leave(now, id),
                    3 => core.use_connections(now, id, Service::Scavenge, 0, amount as u32),
                    _ => core.set_backlog(id, Backlog {
                        bytes: amount,
                        inactive: 0,
                        extent: [Extent::Known, Extent::Estimated][amount as usize % 2],
                    }),
                }
                for in_stream in [false, true] {
                    prop_assert_eq!(core.weight(in_stream), looked_up(&core, in_stream));
                }
                let in_use = core.members.iter().filter(|(_, it)| it.active + it.held > 0);
                prop_assert!(core.users.iter().eq(in_use.map(|(id, _)| id)));
            }
        }
    }
}
