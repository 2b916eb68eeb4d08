//! Paths that share a bottleneck are one lane: what the test of that needs of the run, and what
//! follows from it.

use std::sync::Arc;

use super::run::Run;
use super::transfer::Transfer;
use super::worker::RunContext;
use crate::event::Event;
use crate::lane::Lane;
use crate::shared_bottleneck::{LanePair, LanePeriod, SharingTest};

impl Run {
    /// Ends a control period of the test: holds a lane back, or lets it go, and joins two that
    /// turn out to share a bottleneck.
    pub(crate) fn test_sharing(&mut self) {
        let lanes = self.lanes();
        if lanes.len() < 2 {
            return;
        }
        let periods = lanes.iter().map(|paths| self.period(paths[0]));
        let periods: Vec<LanePeriod> = periods.collect();
        let found = self.sharing.update(self.now, &periods);
        let held = self.sharing.held();
        self.hold_back(held.map(|lane| self.paths[lanes[lane][0]].lane.clone()));
        if let Some(LanePair { one, other }) = found {
            // The joint lane presses no more than the less pressing of the two.
            let least = |lane: usize| self.least_weight(lanes[lane][0]);
            let (guests, host) = match least(other) < least(one) {
                true => (one, other),
                false => (other, one),
            };
            let lane = self.paths[lanes[host][0]].lane.clone();
            for &path in &lanes[guests] {
                self.enter_lane(path, &lane);
                self.emit_bottleneck(path, lanes[host][0]);
            }
        }
    }

    /// What the lane of a path did in the last period, as far as a test may use it. A path that
    /// costs money is left out, and one that presses because the user wants it.
    fn period(&self, path: usize) -> LanePeriod {
        let sample = self.paths[path].sample;
        let is_metered = self.paths[path].metered.is_some();
        let is_raised = sample.w > self.least_weight(path);
        LanePeriod {
            rate: if is_metered { 0.0 } else { sample.rate },
            w: if is_raised { sample.w } else { 0.0 },
        }
    }

    /// w_min of a path.
    fn least_weight(&self, path: usize) -> f64 {
        let settings = self.paths[path].settings.as_ref();
        settings.and_then(|path| path.weight).unwrap_or(self.weight)
    }

    /// Gives this lane its least weight, and no other one.
    fn hold_back(&mut self, lane: Option<Lane>) {
        let same = |one: &Lane| lane.as_ref().is_some_and(|other| one.is(other));
        if self.held_back.as_ref().is_some_and(same) {
            return;
        }
        if let Some(before) = self.held_back.take() {
            before.set_held_back(false);
        }
        if let Some(lane) = &lane {
            lane.set_held_back(true);
        }
        self.held_back = lane;
    }

    /// A path that comes back may lead another way: those that shared its lane have lanes of their
    /// own again.
    pub(crate) fn leave_shared_lane(&mut self, path: usize) {
        let shared = self.paths[path].lane.clone();
        for index in 0..self.paths.len() {
            let own = self.paths[index].own_lane.clone();
            if self.paths[index].lane.is(&shared) && !own.is(&shared) {
                self.enter_lane(index, &own);
            }
        }
    }

    /// From now on this path belongs to that lane.
    fn enter_lane(&mut self, index: usize, lane: &Lane) {
        self.hold_back(None);
        self.sharing = SharingTest::default();
        let before = self.paths[index].lane.clone();
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
        for lane in [&before, lane] {
            let limit = self.limit_of(lane);
            lane.with_core(|core, _| core.controller.limit_rate = limit);
        }
        let unfinished = self.transfers.iter_mut().filter(|it| !it.is_ended());
        unfinished.for_each(|transfer: &mut Transfer| transfer.enter_lane(index, lane));
        self.tell_least_connections();
        self.set_backlogs();
    }

    /// The limit on the rate of a lane, byte/s: that of the run, and what its paths may together.
    fn limit_of(&self, lane: &Lane) -> Option<f64> {
        let paths = self.paths.iter().filter(|path| path.lane.is(lane));
        let limits = paths.map(|path| Some(path.settings.as_ref()?.limit_rate? as f64));
        let together = limits.collect::<Option<Vec<f64>>>();
        let together = together.filter(|limits| !limits.is_empty());
        let together = together.map(|limits| limits.iter().sum::<f64>());
        self.limit_rate.into_iter().chain(together).reduce(f64::min)
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
