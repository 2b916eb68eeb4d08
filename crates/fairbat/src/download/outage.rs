//! Paths that come and go: with the interfaces of the machine, and with what deadlines need of those
//! that cost money.

use std::sync::Arc;
use std::time::Duration;

use dalbe::deadline::{Deadline, Demand};

use super::division::{Needs, PathLoad, PathShare};
use super::run::Run;
use super::worker::RunContext;
use crate::event::Event;
use crate::interfaces::Interfaces;
use crate::lane::Lane;

/// A metered path is to be through so long before a deadline, or this share of the margin that paths
/// without costs have: what it carries too early may have been carried for nothing.
const RESERVE: Duration = Duration::from_millis(500);
const RESERVE_SHARE: f64 = 0.12;

impl Run {
    /// The machine's interfaces may have changed: a path without its own is not used, and what was
    /// under way there is asked for over the others.
    pub(crate) fn look_at_interfaces(&mut self) {
        if !self.names_paths() {
            return;
        }
        let interfaces = match Interfaces::list() {
            Ok(interfaces) => interfaces,
            Err(error) => {
                tracing::warn!(%error, "the network interfaces cannot be listed");
                return;
            }
        };
        for index in 0..self.paths.len() {
            let path = &mut self.paths[index];
            let Some(settings) = &path.settings else {
                continue;
            };
            let is_up = interfaces.has(&settings.local_end);
            if is_up == path.is_up {
                continue;
            }
            path.is_up = is_up;
            let interface = settings.local_end.to_string();
            self.emit(Event::Path {
                interface,
                up: is_up,
            });
            if is_up {
                self.leave_shared_lane(index);
                self.renew_ways(index);
            } else {
                self.leave_path(index);
            }
        }
    }

    /// Answers that wait to be read over a path that is not used any more are asked for anew.
    pub(crate) fn leave_lost_answers(&mut self) {
        if !self.names_paths() {
            return;
        }
        let usable = (0..self.paths.len()).map(|path| self.is_usable(path));
        let usable: Vec<bool> = usable.collect();
        for index in &self.in_progress {
            if let Some(moving) = self.transfers[*index].moving() {
                moving.answer.take_if(|(way, _)| !usable[way.path]);
            }
        }
    }

    /// Whether the user names the ways out of the machine.
    pub(crate) fn names_paths(&self) -> bool {
        self.paths.iter().any(|path| path.settings.is_some())
    }

    /// The ways over a path begin as if nothing had failed.
    fn renew_ways(&mut self, path: usize) {
        let retry = self.retry;
        for transfer in &mut self.transfers {
            transfer.renew_ways(path, retry);
        }
    }

    /// Divides what the deadlines demand among the paths, for the next control period.
    pub(crate) fn divide_paths(&mut self) {
        if self.paths.len() < 2 {
            return;
        }
        let lanes = self.lanes();
        let loads = lanes.iter().map(|paths| self.load(paths));
        let loads: Vec<PathLoad> = loads.collect();
        // Nothing is known of a file that only metered paths can be asked for.
        let needs = self.needs();
        let mut unfinished = self.transfers.iter().filter(|it| !it.is_ended());
        let has_free = self.paths.iter().any(|it| it.is_up && it.metered.is_none());
        let must_pay = needs.is_none() && !has_free && unfinished.any(|it| it.deadline.is_some());
        let divided = self.divider.divide_lanes(self.now, needs, &lanes, &loads);
        for (index, PathShare { share, limit }) in divided {
            let path = &mut self.paths[index];
            path.share = share;
            let (Some(metered), Some(limit)) = (&mut path.metered, limit) else {
                continue;
            };
            let limit = if must_pay { f64::INFINITY } else { limit };
            if limit > 0.0 {
                // Saturates.
                metered.limit.set_rate(limit as u64);
            }
            let was_used = std::mem::replace(&mut metered.is_used, limit > 0.0);
            // What is under way ends: much of it is paid for already. But not at any rate.
            if was_used && limit <= 0.0 && metered.limit.rate() == u64::MAX {
                self.stop_using(index);
            }
        }
    }

    /// The paths of each lane.
    pub(crate) fn lanes(&self) -> Vec<Vec<usize>> {
        Lane::groups(self.paths.iter().map(|path| &path.lane))
    }

    /// What is known of a lane with these paths.
    fn load(&self, paths: &[usize]) -> PathLoad {
        let all = || paths.iter().map(|index| &self.paths[*index]);
        let rates = all().filter_map(|path| path.sizer.rate());
        let first = &self.paths[paths[0]];
        let is_up = all().any(|path| path.is_up);
        let is_metered = all().all(|path| path.metered.is_some());
        let limit = first.lane.with_core(|core, _| core.limit_rate());
        PathLoad::of(&first.sample, limit, rates, (is_up, is_metered))
    }

    /// What the deadlines ask of all paths together.
    fn needs(&self) -> Option<Needs> {
        let due = |margin: bool| {
            let mean = self.mean_size();
            let unfinished = self.transfers.iter().filter(|it| !it.is_ended());
            unfinished.filter_map(move |transfer| {
                let deadline = transfer.deadline?;
                let by = match margin {
                    true => deadline,
                    false => for_money(deadline),
                };
                Some((by, self.expected(transfer, mean)?))
            })
        };
        let left = due(false).map(|(deadline, _)| deadline.by().saturating_sub(self.now));
        let least = Demand::of(self.now, due(false))?.zeta;
        Some(Needs {
            zeta: Demand::of(self.now, due(true))?.zeta,
            least,
            limit: self.limit_rate.unwrap_or(f64::INFINITY),
            left: left.min()?,
        })
    }

    /// What is under way over a path is asked for over the others.
    pub(crate) fn stop_using(&mut self, index: usize) {
        self.cut_workers(|it| it.way.path == index);
        let path = &mut self.paths[index];
        (path.request, path.granted, path.relieved) = (None, None, None);
    }

    /// The connections over a path have lost their local end.
    fn leave_path(&mut self, index: usize) {
        self.stop_using(index);
        let path = &mut self.paths[index];
        let mut context = RunContext::clone(&path.context);
        context.client.leave_connections();
        path.context = Arc::new(context);
    }
}

/// When what costs money is to be through, for this deadline.
pub(crate) fn for_money(deadline: Deadline) -> Deadline {
    let usual = deadline.by().saturating_sub(deadline.aim());
    let reserve = usual.mul_f64(RESERVE_SHARE).max(RESERVE).min(usual);
    Deadline::exact(deadline.by().saturating_sub(reserve))
}
