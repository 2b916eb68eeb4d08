//! What must hold for anything that those who take part in a lane say.

use std::time::Duration;

use fairbat::lane::wire::{LaneDemand, LaneGrant};
use fairbat::lane::{Lane, LaneSettings};
use fairbat_agent::fleet::message::{HostDemand, HostGrant};

/// Panics if what a guest says makes a grant that its lane could not mean.
///
/// Each line of the input is a demand, of one of two guests in turn. It is also read as each of
/// the messages between hosts.
pub(crate) fn check(data: &[u8]) {
    let _ = (HostDemand::read(data), HostGrant::read(data));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let lane = Lane::start(LaneSettings::new(4)).expect("settings that can be");
        let guests = [lane.invite("a"), lane.invite("b")];
        for (line, guest) in data.split(|byte| *byte == b'\n').zip(guests.iter().cycle()) {
            if let Ok(grant) = serde_json::from_slice::<LaneGrant>(line) {
                let _ = grant.check();
            }
            let demand = serde_json::from_slice::<LaneDemand>(line);
            if let Some(demand) = demand.ok().filter(|it| it.check().is_ok()) {
                guest.hear(&demand);
            }
            let grant = guest.grant(Duration::from_secs(5)).expect("a guest");
            assert_eq!(grant.check(), Ok(()), "{grant:?}");
        }
    });
}
