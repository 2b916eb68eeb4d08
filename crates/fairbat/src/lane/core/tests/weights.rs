use proptest::prelude::*;

use super::*;
use crate::lane::backlog::{Backlog, Extent};
use crate::lane::settings::{LaneSettings, Mode, Service};

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
