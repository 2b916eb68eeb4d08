//! Where a run stands against its deadlines: what each transfer has left, how far it is
//! from an even pace, and what servers are told about it.

use dalbe::deadline::Deadline;
use dalbe::weight::MIN_WEIGHT;

use super::message::TransferId;
use super::state::Run;
use super::transfer::{Phase, Transfer};
use crate::http::priority::DeadlineHint;
use crate::lane::{Backlog, EvenPace, Extent};

#[cfg(test)]
mod tests;

impl Run {
    /// Takes over the deadlines as the lane has planned them. When the wall clock was set
    /// they have moved, and the even pace starts anew.
    pub(crate) fn note_deadlines(&mut self) {
        let transfers = &mut self.transfers;
        self.lane.with_core(|core, _| {
            for transfer in transfers {
                let planned = core.deadline(transfer.member.id());
                if planned.is_some() && planned != transfer.deadline {
                    transfer.deadline = planned;
                    transfer.even_pace = None;
                }
            }
        });
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
    /// chunk, and its size is estimated by the mean of the others. In a shared lane it
    /// counts nothing: it waits with a request there.
    fn backlog(&self, transfer: &Transfer, mean: Option<u64>) -> Backlog {
        let unit = self.sizer.fixed().unwrap_or(self.sizer.natural_length());
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
        let (sum, count) = due
            .filter_map(|transfer| transfer.total)
            .fold((0_u64, 0_u64), |(sum, count), size| {
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

    /// What a fairbat server is told of a transfer alone: its deadline, and w_min if that
    /// says more than that the transfer yields. `None` where nothing yields.
    pub(crate) fn own_hint(&self, id: TransferId) -> Option<DeadlineHint> {
        let deadline = self.transfers[id.0 as usize].deadline;
        let hint = DeadlineHint {
            due: deadline.map(|due| due.by().saturating_sub(self.now)),
            remaining: None,
            w: Some(self.weight).filter(|&w| w > MIN_WEIGHT || deadline.is_some()),
        };
        (self.weight < 1.0 && hint != DeadlineHint::default()).then_some(hint)
    }

    /// What it is told with a request for a range: also how much there is to move over
    /// this connection by the deadline, its part of all that is due.
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
        let by_then = self.due().filter(|(_, due)| due.by() <= deadline.by());
        let remaining = by_then
            .map(|(transfer, _)| self.expected(transfer, mean))
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

    /// Transfers that have a deadline and have not ended.
    fn due(&self) -> impl Iterator<Item = (&Transfer, Deadline)> {
        self.transfers
            .iter()
            .filter(|transfer| !transfer.is_ended())
            .filter_map(|transfer| Some((transfer, transfer.deadline?)))
    }
}
