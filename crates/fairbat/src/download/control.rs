//! What a run tells others: its lane what is left, its caller once a second how it stands
//! against its deadlines, and servers when the bytes are needed.

use std::num::NonZeroU64;

use dalbe::deadline::Deadline;
use dalbe::receive_window::{BottleneckKind, HELD_BACK_SHARE, ReceiveWindowState};
use dalbe::socket::TcpSocket;
use dalbe::weight::MIN_WEIGHT;

use super::run::Run;
use super::transfer::{Phase, Transfer};
use super::worker::TransferId;
use crate::clock::jump;
use crate::event::{Control, Event, FileProgress};
use crate::http::priority::DeadlineHint;
use crate::lane::{Backlog, EvenPace, Extent, LaneSample};

#[cfg(test)]
mod tests;

impl Run {
    /// Reports the state of the control loop.
    pub(crate) fn report_control(&mut self, sample: &LaneSample, rtt_ms: Option<f64>) {
        let lag = self.lag();
        let window = self.window();
        if let (Some(_), Some(window)) = (&self.place, window) {
            self.lane.set_window(window, None);
        }
        if let (None, Some(manager)) = (&self.place, &self.context.window_manager) {
            self.lane.set_path_limited(manager.is_path_limited());
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
            files: files.collect(),
        }));
    }

    /// The last sample of a shared lane, with the rate of this run.
    pub(crate) fn sample_shared_lane(&mut self) -> LaneSample {
        let mut sample = *self.lane.samples().borrow();
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
        self.mean_over_sockets(|socket| {
            let rtt = socket.info().ok()?.path_rtt()?;
            Some(rtt.as_secs_f64() * 1e3)
        })
    }

    /// Mean receive window of the connections in use, bytes.
    fn window(&self) -> Option<f64> {
        self.context.window_manager.as_ref()?;
        self.mean_over_sockets(|socket| socket.receiver().window_clamp().ok().map(f64::from))
    }

    /// What the receive windows of the connections in use do. A run of full weight yields to
    /// nobody, although connections beyond its largest weight do. Nor do connections that hold
    /// each other back, and together carry what the path does or what the user allows.
    fn window_state(&self, sample: &LaneSample) -> Option<ReceiveWindowState> {
        let state = self.context.window_manager.as_ref()?.activity(self.now)?;
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
        self.context.window_manager.as_ref()?.bottleneck()
    }

    /// `None` when there is no socket to ask.
    fn mean_over_sockets(&self, of: impl Fn(&TcpSocket) -> Option<f64>) -> Option<f64> {
        let sockets = self
            .workers
            .values()
            .filter_map(|worker| worker.socket.as_ref());
        let values: Vec<f64> = sockets.filter_map(|socket| of(socket)).collect();
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
        let unfinished = self.transfers.iter().filter(|it| !it.is_ended());
        self.lane.with_core(|core, _| {
            for transfer in unfinished {
                core.set_backlog(transfer.member.id(), self.backlog(transfer, mean));
            }
        });
    }

    /// What a transfer has left. In a lane of its own a transfer to be probed is one
    /// chunk, and its size is estimated by the mean of the others. All that waits of a
    /// transfer of a stream is one chunk. In a shared lane it
    /// counts nothing: it waits with a request there.
    fn backlog(&self, transfer: &Transfer, mean: Option<u64>) -> Backlog {
        let unit = match self.sizer.fixed() {
            _ if self.is_stream => NonZeroU64::MAX,
            fixed => fixed.unwrap_or(self.sizer.natural_length()),
        };
        let (inactive, unwritten) = match &transfer.phase {
            Phase::Waiting => (u64::from(self.place.is_none()), 0),
            Phase::Moving(moving) => (
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
                None if matches!(transfer.phase, Phase::Moving(_)) => (0, Extent::Unbounded),
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
    fn mean_size(&self) -> Option<u64> {
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
    fn expected(&self, transfer: &Transfer, mean: Option<u64>) -> Option<u64> {
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
        // The sum takes its time where there are many files.
        if !self.context.client.knows_fairbat_server() {
            return None;
        }
        let own = self.own_hint(id)?;
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
