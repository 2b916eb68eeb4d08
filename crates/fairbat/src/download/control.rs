//! What a run tells others: its lane what is left, its caller once a second how it stands
//! against its deadlines, and servers when the bytes are needed.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use dalbe::deadline::Deadline;
use dalbe::receive_window::{BottleneckKind, HELD_BACK_SHARE, ReceiveWindowState};
use dalbe::weight::MIN_WEIGHT;

use super::run::Run;
use super::transfer::{Stage, Transfer};
use super::worker::TransferId;
use crate::clock::jump;
use crate::event::{Control, Event, FileProgress, PathSample};
use crate::http::priority::DeadlineHint;
use crate::lane::core::Core;
use crate::lane::{Backlog, EvenPace, Extent, LaneSample};
use crate::transport::{Connection, WindowManager};

#[cfg(test)]
mod tests;

impl Run {
    /// Ends a control period: tells the lanes what is left, samples them, and reports.
    pub(crate) fn on_tick(&mut self) {
        self.notice_clock();
        let rtt_ms = self.rtt_ms();
        let sample = if self.place.is_some() {
            self.sample_shared_lane()
        } else {
            self.sample_own_lanes(rtt_ms)
        };
        self.predict();
        self.report_control(&sample, rtt_ms);
        self.take_checkpoints();
        if self.place.is_some() {
            self.set_backlogs();
        }
    }

    /// Ends a control period of the run's own lanes, and reports which transfers will be late.
    fn sample_own_lanes(&mut self, rtt_ms: Option<f64>) -> LaneSample {
        for path in &self.paths {
            path.lane.notice_clock();
        }
        self.set_backlogs();
        let mut samples = Vec::new();
        for paths in self.lanes() {
            let path = &self.paths[paths[0]];
            let natural = path.sizer.natural_length();
            path.lane.with_core(|core, _| {
                core.rtt = rtt_ms.map(|ms| Duration::from_secs_f64(ms / 1e3));
                core.chunk_len = natural;
            });
            let sample = path.lane.sample();
            for index in paths {
                self.paths[index].end_period(self.now, sample);
            }
            samples.push(sample);
        }
        // The rate of a lane that is held back says nothing of what it carries.
        let was_held = self.held_back.is_some();
        self.test_sharing();
        if !was_held {
            self.divide_paths();
        }
        if self.knows_sizes() {
            self.report_late();
        }
        samples
            .into_iter()
            .reduce(|sum, sample| sum.beside(&sample))
            .unwrap_or_default()
    }

    /// Reports which transfers will be late. What one of several paths carries says nothing.
    fn report_late(&self) {
        let [path] = self.paths.as_slice() else {
            return;
        };
        for late in path.lane.with_core(Core::report_late) {
            let of = |transfer: &&Transfer| {
                let mut ways = transfer.ways().iter();
                ways.any(|way| way.member.id() == late.id)
            };
            if let Some(transfer) = self.transfers.iter().find(of) {
                self.emit(Event::late(&transfer.url, &late));
            }
        }
    }

    /// Reports the state of the control loop.
    fn report_control(&mut self, sample: &LaneSample, rtt_ms: Option<f64>) {
        let lag = self.lag();
        let window = self.window();
        for path in &self.paths {
            if let (Some(_), Some(window)) = (&self.place, window) {
                path.lane.set_window(window, None);
            }
            if let (None, Some(manager)) = (&self.place, &path.context.window_manager) {
                path.lane.set_path_limited(manager.is_path_limited());
            }
        }
        let done = self.transfers.iter().map(|transfer| transfer.done);
        let mut totals = self.transfers.iter().map(|transfer| transfer.total);
        let files = self.in_progress().map(|transfer| FileProgress {
            url: transfer.url.clone(),
            bytes_done: transfer.done,
            bytes_total: transfer.total,
        });
        self.emit(Event::Control(Control {
            n: sample.n,
            m: sample.m,
            tau: self.is_stream.then_some(sample.stream.tau),
            active: self.workers.len(),
            w: sample.w,
            window,
            brake: self.window_state(sample),
            g_ms: None,
            bottleneck: self.bottleneck(),
            lag,
            zeta: sample.zeta.filter(|zeta| zeta.is_finite()),
            rate: sample.rate,
            rtt_ms,
            bytes_done: done.fold(0, u64::saturating_add),
            bytes_total: totals.try_fold(0, |sum: u64, total| Some(sum.saturating_add(total?))),
            paths: self.path_samples(),
            files: files.collect(),
        }));
    }

    /// How each of the named paths stands.
    fn path_samples(&self) -> Vec<PathSample> {
        let paths = self.paths.iter().enumerate();
        let named = paths.filter_map(|(index, path)| {
            let settings = path.settings.as_ref()?;
            let workers = self.workers.values();
            Some(PathSample {
                interface: settings.local_end.to_string(),
                up: path.is_up,
                active: workers.filter(|it| it.way.path == index).count(),
                m: path.sample.m,
                w: path.sample.w,
                rate: path.rate,
                bytes_done: path.bytes,
            })
        });
        named.collect()
    }

    /// The last sample of a shared lane, with the rate of this run.
    pub(crate) fn sample_shared_lane(&mut self) -> LaneSample {
        let mut sample = *self.paths[0].lane.samples().borrow();
        if let Some(place) = &mut self.place {
            let elapsed = self.now.saturating_sub(place.sampled).as_secs_f64();
            let bytes = std::mem::take(&mut place.bytes) as f64;
            place.sampled = self.now;
            if self.is_stream {
                sample = sample.of_stream();
            }
            sample.rate = if elapsed > 0.0 { bytes / elapsed } else { 0.0 };
        }
        sample
    }

    /// Mean round-trip time over the sockets in use, ms.
    pub(crate) fn rtt_ms(&self) -> Option<f64> {
        self.mean_over_connections(|socket| {
            let rtt = socket.info().ok()?.path_rtt()?;
            Some(rtt.as_secs_f64() * 1e3)
        })
    }

    /// Mean receive window of the connections in use, bytes.
    fn window(&self) -> Option<f64> {
        self.paths[0].context.window_manager.as_ref()?;
        self.mean_over_connections(|it| it.window().map(f64::from))
    }

    /// What the receive windows of the connections in use do. A run of full weight yields to
    /// nobody, although connections beyond its largest weight do. Nor do connections that hold
    /// each other back, and together carry what the path does or what the user allows.
    fn window_state(&self, sample: &LaneSample) -> Option<ReceiveWindowState> {
        let managers = self.window_managers();
        let state = managers.filter_map(|it| it.activity(self.now)).max()?;
        let limit = self.limit_rate.unwrap_or(f64::INFINITY);
        let is_held_back = sample.rate < HELD_BACK_SHARE * sample.capacity.min(limit);
        Some(match state {
            _ if sample.w >= 1.0 => ReceiveWindowState::Free,
            ReceiveWindowState::Yielding if !is_held_back => ReceiveWindowState::Filling,
            state => state,
        })
    }

    /// The kind of bottleneck that the connections have seen.
    fn bottleneck(&self) -> Option<BottleneckKind> {
        let mut kinds = self.window_managers().filter_map(|it| it.bottleneck());
        let first = kinds.next()?;
        kinds.all(|kind| kind == first).then_some(first)
    }

    fn window_managers(&self) -> impl Iterator<Item = &Arc<WindowManager>> {
        let paths = self.paths.iter();
        paths.filter_map(|path| path.context.window_manager.as_ref())
    }

    /// `None` when there is no connection to ask.
    fn mean_over_connections(&self, of: impl Fn(&Connection) -> Option<f64>) -> Option<f64> {
        let workers = self.workers.values();
        let connections = workers.filter_map(|worker| worker.connection.as_ref());
        let values: Vec<f64> = connections.filter_map(of).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    /// Plans all deadlines anew when the wall clock has been set.
    pub(crate) fn notice_clock(&mut self) {
        if jump(&mut self.drift, self.context.clock.drift()).is_some() {
            self.plan_deadlines();
        }
    }

    /// Plans the deadlines on the run's clock. The even pace to them starts anew.
    pub(crate) fn plan_deadlines(&mut self) {
        let (clock, drift, now) = (self.context.clock, self.drift, self.now);
        for transfer in &mut self.transfers {
            let by = transfer.request.deadline;
            let by = by.map(|moment| clock.since_start(moment, drift));
            transfer.deadline = by.map(|by| Deadline::new(now, by));
            transfer.even_pace = None;
        }
    }

    /// Tells the lane what each transfer has left.
    pub(crate) fn set_backlogs(&self) {
        let mean = self.mean_size();
        for (index, path) in self.paths.iter().enumerate() {
            let unfinished = self.transfers.iter().filter(|it| !it.is_ended());
            path.lane.with_core(|core, _| {
                for transfer in unfinished {
                    let whole = self.backlog(transfer, mean);
                    let present = transfer.sources.present_index();
                    for way in transfer.ways().iter().filter(|it| it.id.path == index) {
                        let backlog = match way.id.source == present {
                            true => whole.part(path.share),
                            false => Backlog::default(),
                        };
                        core.set_backlog(way.member.id(), backlog);
                    }
                }
            });
        }
    }

    /// What a transfer has left. In a lane of its own a transfer to be probed is one
    /// chunk, and its size is estimated by the mean of the others. All that waits of a
    /// transfer of a stream is one chunk. In a shared lane it
    /// counts nothing: it waits with a request there.
    fn backlog(&self, transfer: &Transfer, mean: Option<u64>) -> Backlog {
        let sizer = &self.paths[0].sizer;
        let unit = match sizer.fixed() {
            _ if self.is_stream => NonZeroU64::MAX,
            fixed => fixed.unwrap_or(sizer.natural_length()),
        };
        let (inactive, unwritten) = match &transfer.stage {
            Stage::Waiting => (u64::from(self.place.is_none()), 0),
            Stage::Moving(moving) => (
                moving.pieces.inactive_chunks(unit),
                moving.pieces.unwritten_bytes(),
            ),
            _ => (0, 0),
        };
        let (bytes, extent) = if self.place.is_some() || transfer.deadline.is_none() {
            (unwritten, Extent::Known)
        } else {
            match self.expected(transfer, mean) {
                Some(bytes) => (bytes, Extent::Estimated),
                None if matches!(transfer.stage, Stage::Moving(_)) => (0, Extent::Unbounded),
                None => (0, Extent::Estimated),
            }
        };
        Backlog {
            bytes,
            inactive,
            extent,
        }
    }

    /// Mean size of the transfers with deadlines whose size is known, those that are done
    /// included.
    pub(crate) fn mean_size(&self) -> Option<u64> {
        let due = self.transfers.iter().filter(|it| it.deadline.is_some());
        // A file that does not exist says nothing of the others.
        let sizes = due
            .filter_map(|transfer| transfer.total)
            .filter(|&size| size > 0);
        let (sum, count) = sizes.fold((0_u64, 0_u64), |(sum, count), size| {
            (sum.saturating_add(size), count + 1)
        });
        sum.checked_div(count)
    }

    /// Bytes that a transfer still has to move. The mean stands for an unknown size.
    pub(crate) fn expected(&self, transfer: &Transfer, mean: Option<u64>) -> Option<u64> {
        transfer
            .remaining()
            .or_else(|| Some(mean?.saturating_sub(transfer.done)))
    }

    /// The hint for a fairbat server about one transfer: its deadline, and w_min if there
    /// is a deadline or w_min is not the lowest. `None` if nothing yields.
    pub(crate) fn own_hint(&self, id: TransferId) -> Option<DeadlineHint> {
        let deadline = self.transfers[id.0 as usize].deadline;
        let hint = DeadlineHint {
            due: deadline.map(|due| due.by().saturating_sub(self.now)),
            remaining: None,
            w: Some(self.weight).filter(|&w| w > MIN_WEIGHT || deadline.is_some()),
        };
        (self.weight < 1.0 && hint != DeadlineHint::default()).then_some(hint)
    }

    /// The hint with a request for a range. It also says how much this connection has to
    /// move by the deadline: its part of all that is due.
    pub(crate) fn hint(&self, id: TransferId) -> Option<DeadlineHint> {
        let own = self.own_hint(id)?;
        // The sum takes its time where there are many files. Other servers hear only whether there
        // is a deadline.
        let mut paths = self.paths.iter();
        if !paths.any(|path| path.context.client.knows_fairbat_server()) {
            return Some(own);
        }
        let Some(deadline) = self.transfers[id.0 as usize].deadline else {
            return Some(own);
        };
        let mean = self.mean_size();
        let unfinished = self.transfers.iter().filter(|it| !it.is_ended());
        let remaining = unfinished
            .filter(|it| it.deadline.is_some_and(|due| due.by() <= deadline.by()))
            .map(|transfer| self.expected(transfer, mean))
            .try_fold(0_u64, |sum, bytes| Some(sum.saturating_add(bytes?)));
        // This one, and those that are moving something.
        let connections = self.workers.len() as u64 + 1;
        Some(DeadlineHint {
            remaining: remaining.map(|bytes| bytes.div_ceil(connections)),
            ..own
        })
    }

    /// Bytes that the transfers with deadlines are behind an even pace.
    pub(crate) fn lag(&mut self) -> Option<f64> {
        let now = self.now;
        let due = self.transfers.iter_mut().filter(|it| !it.is_ended());
        let lags = due.filter_map(|transfer| {
            let aim = transfer.deadline?.aim();
            let bytes = transfer.remaining()?;
            let pace = transfer.even_pace.get_or_insert(EvenPace::new(now, bytes));
            Some(pace.lag(now, aim, bytes))
        });
        lags.reduce(|sum, lag| sum + lag)
    }
}
