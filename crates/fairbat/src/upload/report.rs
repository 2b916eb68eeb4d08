//! What an upload tells others: its lanes what is left, and its caller once a second how it stands.

use std::convert::Infallible;

use dalbe::deadline::{Deadline, Demand};
use dalbe::receive_window::ReceiveWindowState;

use super::connection::UploadConnection;
use super::send::Upload;
use super::way::{PathUsage, Way};
use crate::download::division::{Needs, PathLoad};
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
        let under_way: u64 = self.ways.iter().map(|way| way.state().arrived).sum();
        self.state().parts.done + under_way
    }

    /// Tells the lanes what is left.
    pub(super) fn set_backlogs(&self) {
        let whole = Backlog {
            bytes: self.total().saturating_sub(self.done()),
            inactive: 0,
            extent: Extent::Estimated,
        };
        for way in &self.ways {
            let (share, is_waiting) = {
                let state = way.state();
                (state.share, state.is_waiting)
            };
            way.member.set_backlog(Backlog {
                inactive: u64::from(is_waiting),
                ..whole.part(share)
            });
        }
    }

    /// Ends a control period.
    fn tick(&self) {
        for way in &self.ways {
            way.lane.notice_clock();
            way.measure();
            let mut state = way.state();
            let bytes = state.bytes;
            state.rate.end_period(self.clock.now(), bytes);
        }
        self.look_at_interfaces();
        let (now, total, done) = (self.clock.now(), self.total(), self.done());
        let remaining = total.saturating_sub(done);
        let first = &self.ways[0];
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
        for ways in self.lanes() {
            let sample = self.ways[ways[0]].lane.sample();
            for way in ways {
                self.ways[way].state().sample = sample;
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
        if self.ways.len() < 2 || state.begun.is_none() {
            return;
        }
        let zeta = |due: Deadline| Demand::of(now, [(due, remaining)]).map(|demand| demand.zeta);
        let needs = deadline.and_then(|due| {
            Some(Needs {
                zeta: zeta(due)?,
                least: zeta(for_money(due))?,
                left: for_money(due).by().saturating_sub(now),
            })
        });
        let lanes = self.lanes();
        let loads = lanes.iter().map(|ways| self.load(ways));
        let loads: Vec<PathLoad> = loads.collect();
        let parts = state.divider.divide(now, needs, &loads);
        drop(state);
        let parts = lanes.iter().zip(parts).flat_map(|(ways, part)| {
            let part = part.of(ways.len());
            ways.iter().map(move |way| (&self.ways[*way], part))
        });
        for (way, part) in parts {
            way.state().share = part.share;
            let limit = part.limit.unwrap_or(f64::INFINITY);
            if let Some(metered) = &way.metered
                && limit > 0.0
            {
                // Saturates.
                metered.set_rate(limit as u64);
            }
            way.usage.send_if_modified(|usage| {
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
        if self.ways.len() < 2 {
            return;
        }
        let Ok(interfaces) = Interfaces::list() else {
            return;
        };
        for way in &self.ways {
            let Some(settings) = &way.settings else {
                continue;
            };
            let up = interfaces.has(&settings.local_end);
            if way.is_up() == up {
                continue;
            }
            let interface = settings.local_end.to_string();
            self.emit(Event::Path { interface, up });
            if up {
                let mut state = way.state();
                state.backoff.progress();
                state.is_exhausted = false;
            }
            way.usage.send_replace(match (up, &way.metered) {
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
        let [way] = self.ways.as_slice() else {
            return;
        };
        for late in way.lane.with_core(Core::report_late) {
            self.emit(Event::late(&self.url, &late));
        }
    }

    /// The paths of each lane.
    fn lanes(&self) -> Vec<Vec<usize>> {
        Lane::groups(self.ways.iter().map(|way| &way.lane))
    }

    /// What is known of a lane with these paths.
    fn load(&self, ways: &[usize]) -> PathLoad {
        let all = || ways.iter().map(|way| &self.ways[*way]);
        let sample = self.ways[ways[0]].state().sample;
        let rates = all().filter_map(|way| way.state().meter.sizer.rate());
        PathLoad {
            rate: sample.rate,
            capacity: rates.fold(sample.capacity, f64::max),
            w: sample.w,
            is_up: all().any(Way::is_up),
            is_metered: all().all(|way| way.metered.is_some()),
        }
    }

    fn report_control(&self, samples: &[LaneSample], (done, total): (u64, u64), lag: Option<f64>) {
        let samples = samples.iter().copied();
        let sample = samples
            .reduce(|sum, it| sum.beside(&it))
            .unwrap_or_default();
        let of_flows = |read: &dyn Fn(&UploadConnection) -> Option<f64>| -> Vec<f64> {
            let ways = self.ways.iter();
            ways.filter_map(|way| read(way.state().open.carrier()?))
                .collect()
        };
        let rtts = of_flows(&|flow| Some(flow.rtt()?.as_secs_f64() * 1e3));
        let rtt_ms = (!rtts.is_empty()).then(|| rtts.iter().sum::<f64>() / rtts.len() as f64);
        let brakes = self.ways.iter().filter_map(brake);
        self.emit(Event::Control(Control {
            tau: None,
            n: sample.n,
            m: sample.m,
            active: self.ways.iter().map(active).sum(),
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
            paths: self.ways.iter().filter_map(path_sample).collect(),
            files: vec![FileProgress {
                url: self.url.clone(),
                bytes_done: done,
                bytes_total: Some(total),
            }],
        }));
    }
}

/// Connections in use.
fn active(way: &Way) -> usize {
    usize::from(way.state().open.carrier().is_some())
}

fn brake(way: &Way) -> Option<ReceiveWindowState> {
    let state = way.state();
    state.open.carrier()?.window_state(state.sample.w)
}

fn path_sample(way: &Way) -> Option<PathSample> {
    let settings = way.settings.as_ref()?;
    let state = way.state();
    let LaneSample { m, w, .. } = state.sample;
    Some(PathSample {
        interface: settings.local_end.to_string(),
        up: way.is_up(),
        active: usize::from(state.open.carrier().is_some()),
        m,
        w,
        // Other paths may share the lane.
        rate: state.rate.get(),
        bytes_done: state.bytes,
    })
}
