//! What an upload tells others: its lanes what is left, and its caller once a second how it stands.

use std::convert::Infallible;

use dalbe::deadline::{Deadline, Demand};
use dalbe::receive_window::ReceiveWindowState;

use super::connection::UploadConnection;
use super::path::{PathUsage, UploadPath};
use super::send::Upload;
use crate::download::division::{Needs, PathLoad, PathShare};
use crate::download::outage::for_money;
use crate::event::{Control, Event, FileProgress, PathSample};
use crate::interfaces::Interfaces;
use crate::lane::core::Core;
use crate::lane::handle::control_periods;
use crate::lane::{Backlog, EvenPace, Extent, Lane, LaneSample};

impl Upload {
    /// Reports once a second.
    pub(super) async fn report(&self) -> Infallible {
        let mut tick = control_periods();
        loop {
            tick.tick().await;
            if self.state().version.is_some() {
                self.tick();
            }
        }
    }

    /// Bytes that have come in this try.
    pub(super) fn done(&self) -> u64 {
        let under_way: u64 = self.paths.iter().map(|path| path.state().arrived).sum();
        self.state().parts.done + under_way
    }

    /// Tells the lanes what is left.
    pub(super) fn set_backlogs(&self) {
        let whole = Backlog {
            bytes: self.total().saturating_sub(self.done()),
            inactive: 0,
            extent: Extent::Estimated,
        };
        for path in &self.paths {
            let (share, is_waiting) = {
                let state = path.state();
                (state.share, state.is_waiting)
            };
            path.member.set_backlog(Backlog {
                inactive: u64::from(is_waiting),
                ..whole.part(share)
            });
        }
    }

    /// Ends a control period.
    fn tick(&self) {
        for path in &self.paths {
            path.lane.notice_clock();
            path.measure();
            let mut state = path.state();
            let bytes = state.bytes;
            state.rate.end_period(self.clock.now(), bytes);
        }
        self.look_at_interfaces();
        let (now, total, done) = (self.clock.now(), self.total(), self.done());
        let remaining = total.saturating_sub(done);
        let first = &self.paths[0];
        let planned = first
            .lane
            .with_core(|core, _| core.deadline(first.member.id()));
        let lag = {
            let mut state = self.state();
            if planned != state.deadline {
                state.deadline = planned;
                state.even_pace = EvenPace::new(now, total);
            }
            let lag = |due: Deadline| state.even_pace.lag(now, due.aim(), remaining);
            planned.map(lag)
        };
        self.set_backlogs();
        let mut samples = Vec::new();
        for paths in self.lanes() {
            let sample = self.paths[paths[0]].lane.sample();
            for path in paths {
                self.paths[path].state().sample = sample;
            }
            samples.push(sample);
        }
        self.divide(planned, remaining);
        self.report_late();
        self.report_control(&samples, (done, total), lag);
    }

    /// Divides what the deadline demands among the paths of an upload in parts.
    fn divide(&self, deadline: Option<Deadline>, remaining: u64) {
        let now = self.clock.now();
        let mut state = self.state();
        if self.paths.len() < 2 || state.begun.is_none() {
            return;
        }
        let zeta = |due: Deadline| Demand::of(now, [(due, remaining)]).map(|demand| demand.zeta);
        let limit = self.settings.limit_rate;
        let needs = deadline.and_then(|due| {
            Some(Needs {
                zeta: zeta(due)?,
                least: zeta(for_money(due))?,
                limit: limit.map_or(f64::INFINITY, |limit| limit as f64),
                left: for_money(due).by().saturating_sub(now),
            })
        });
        let lanes = self.lanes();
        let loads = lanes.iter().map(|paths| self.load(paths));
        let loads: Vec<PathLoad> = loads.collect();
        let divided = state.divider.divide_lanes(now, needs, &lanes, &loads);
        drop(state);
        for (index, PathShare { share, limit }) in divided {
            let path = &self.paths[index];
            path.state().share = share;
            let limit = limit.unwrap_or(f64::INFINITY);
            if let Some(metered) = &path.metered
                && limit > 0.0
            {
                // Saturates.
                metered.set_rate(limit as u64);
            }
            path.usage.send_if_modified(|usage| {
                let wanted = match limit > 0.0 {
                    true => PathUsage::Used,
                    false => PathUsage::Spared,
                };
                *usage != PathUsage::Gone && std::mem::replace(usage, wanted) != wanted
            });
        }
    }

    /// A path without its interface is not used, and what was under way there goes over the others.
    fn look_at_interfaces(&self) {
        if self.paths.len() < 2 {
            return;
        }
        let Ok(interfaces) = Interfaces::list() else {
            return;
        };
        for path in &self.paths {
            let Some(settings) = &path.settings else {
                continue;
            };
            let up = interfaces.has(&settings.local_end);
            if path.is_up() == up {
                continue;
            }
            let interface = settings.local_end.to_string();
            self.emit(Event::Path { interface, up });
            if up {
                path.leave_connections();
                let mut state = path.state();
                state.backoff.progress();
                state.is_exhausted = false;
            }
            path.usage.send_replace(match (up, &path.metered) {
                (false, _) => PathUsage::Gone,
                // What a metered path is needed for is known later.
                (true, Some(_)) => PathUsage::Spared,
                (true, None) => PathUsage::Used,
            });
        }
    }

    /// Reports once that the deadline will probably be missed, as soon as that is known. What one
    /// of several paths carries says nothing.
    pub(super) fn report_late(&self) {
        let [path] = self.paths.as_slice() else {
            return;
        };
        for late in path.lane.with_core(Core::report_late) {
            self.emit(Event::late(&self.url, &late));
        }
    }

    /// The paths of each lane.
    fn lanes(&self) -> Vec<Vec<usize>> {
        Lane::groups(self.paths.iter().map(|path| &path.lane))
    }

    /// What is known of a lane with these paths.
    fn load(&self, paths: &[usize]) -> PathLoad {
        let all = || paths.iter().map(|path| &self.paths[*path]);
        let first = &self.paths[paths[0]];
        let sample = first.state().sample;
        let rates = all().filter_map(|path| path.state().meter.sizer.rate());
        let is_up = all().any(UploadPath::is_up);
        let is_metered = all().all(|path| path.metered.is_some());
        let limit = first.lane.with_core(|core, _| core.limit_rate());
        PathLoad::of(&sample, limit, rates, (is_up, is_metered))
    }

    fn report_control(&self, samples: &[LaneSample], (done, total): (u64, u64), lag: Option<f64>) {
        let samples = samples.iter().copied();
        let sample = samples
            .reduce(|sum, it| sum.beside(&it))
            .unwrap_or_default();
        let of_flows = |read: &dyn Fn(&UploadConnection) -> Option<f64>| -> Vec<f64> {
            let paths = self.paths.iter();
            paths
                .filter_map(|path| read(path.state().open.carrier()?))
                .collect()
        };
        let rtts = of_flows(&|flow| Some(flow.rtt()?.as_secs_f64() * 1e3));
        let rtt_ms = (!rtts.is_empty()).then(|| rtts.iter().sum::<f64>() / rtts.len() as f64);
        let brakes = self.paths.iter().filter_map(brake);
        self.emit(Event::Control(Control {
            tau: None,
            n: sample.n,
            m: sample.m,
            active: self.paths.iter().map(active).sum(),
            w: sample.w,
            window: None,
            brake: brakes.reduce(|one, other| match one {
                ReceiveWindowState::Yielding => one,
                _ => other,
            }),
            g_ms: of_flows(&UploadConnection::g_ms).first().copied(),
            bottleneck: None,
            zeta: sample.zeta,
            lag,
            rate: sample.rate,
            rtt_ms,
            bytes_done: done,
            bytes_total: Some(total),
            paths: self.paths.iter().filter_map(path_sample).collect(),
            files: vec![FileProgress {
                url: self.url.clone(),
                bytes_done: done,
                bytes_total: Some(total),
            }],
        }));
    }
}

/// Connections in use.
fn active(path: &UploadPath) -> usize {
    usize::from(path.state().open.carrier().is_some())
}

fn brake(path: &UploadPath) -> Option<ReceiveWindowState> {
    let state = path.state();
    state.open.carrier()?.window_state(state.sample.w)
}

fn path_sample(path: &UploadPath) -> Option<PathSample> {
    let settings = path.settings.as_ref()?;
    let state = path.state();
    let LaneSample { m, w, .. } = state.sample;
    Some(PathSample {
        interface: settings.local_end.to_string(),
        up: path.is_up(),
        active: usize::from(state.open.carrier().is_some()),
        m,
        w,
        // Other paths may share the lane.
        rate: state.rate.get(),
        bytes_done: state.bytes,
    })
}
