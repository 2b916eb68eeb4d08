//! Paths that share a bottleneck are one lane: what the test of that needs of the run, and what
//! follows from it.

use std::sync::Arc;

use super::run::Run;
use super::transfer::Transfer;
use super::worker::RunContext;
use crate::event::Event;
use crate::lane::Lane;
use crate::shared_bottleneck::{LanePeriod, Shared};

impl Run {
    /// Ends a control period of the test: holds a lane back, or lets it go, and joins two that
    /// turn out to share a bottleneck.
    pub(crate) fn test_sharing(&mut self) {
        let lanes = self.lanes();
        if lanes.len() < 2 {
            return;
        }
        let periods = lanes.iter().map(|paths| {
            let sample = self.paths[paths[0]].sample;
            LanePeriod {
                rate: sample.rate,
                w: sample.w,
            }
        });
        let periods: Vec<LanePeriod> = periods.collect();
        let was_held = self.sharing.held();
        let found = self.sharing.update(self.now, &periods);
        let is_held = self.sharing.held();
        if was_held != is_held {
            for (lane, is_held) in [(was_held, false), (is_held, true)] {
                if let Some(lane) = lane {
                    let path = &self.paths[lanes[lane][0]];
                    path.lane.set_held_back(is_held);
                }
            }
        }
        if let Some(Shared { held, other }) = found {
            let lane = self.paths[lanes[other][0]].lane.clone();
            for &path in &lanes[held] {
                self.enter_lane(path, &lane);
                self.emit_bottleneck(path, lanes[other][0]);
            }
        }
    }

    /// A path that comes back may lead another way: it has a lane of its own again.
    pub(crate) fn enter_own_lane(&mut self, path: usize) {
        let own = self.paths[path].own_lane.clone();
        if !own.is(&self.paths[path].lane) {
            self.enter_lane(path, &own);
        }
    }

    /// From now on this path belongs to that lane.
    fn enter_lane(&mut self, index: usize, lane: &Lane) {
        // What is under way has its permits from the other lane.
        self.stop_using(index);
        let path = &mut self.paths[index];
        let window_manager = path.context.window_manager.as_ref();
        let window_manager = window_manager.map(|manager| Arc::new(manager.in_lane(lane.clone())));
        path.context = Arc::new(RunContext {
            window_manager,
            ..RunContext::clone(&path.context)
        });
        path.free_carrier = None;
        path.lane = lane.clone();
        let unfinished = self.transfers.iter_mut().filter(|it| !it.is_ended());
        unfinished.for_each(|transfer: &mut Transfer| transfer.enter_lane(index, lane));
        self.tell_least_connections();
        self.set_backlogs();
    }

    fn emit_bottleneck(&self, path: usize, other: usize) {
        let name = |index: usize| {
            let settings = self.paths[index].settings.as_ref();
            settings.map(|settings| settings.local_end.to_string())
        };
        if let (Some(interface), Some(with)) = (name(path), name(other)) {
            self.emit(Event::Bottleneck { interface, with });
        }
    }
}
