//! Where the lane stands against its deadlines: what they ask for, how far it
//! is from an even pace, which will probably be missed, and what becomes of
//! them when the wall clock is set.

use std::time::Duration;

use dalbe::deadline::{Deadline, Demand};
use dalbe::weight::MIN_WEIGHT;
use jiff::SignedDuration;

use super::lane::Lane;
use super::transfer::{Phase, Transfer};
use crate::clock::JUMP;
use crate::download::queue::TransferId;
use crate::event::Event;
use crate::http::priority::DeadlineHint;
use crate::lane::controller::PaceSample;
use crate::lane::forecast::{Look, foreseen, lateness};

/// An even pace, from when a transfer's size was known to the moment that is
/// aimed at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    from: Duration,
    bytes: u64,
}

impl Line {
    /// Bytes that an even pace has left at `now`.
    fn remaining(&self, now: Duration, aim: Duration) -> f64 {
        let all = aim.saturating_sub(self.from).as_secs_f64();
        let left = aim.saturating_sub(now).as_secs_f64();
        if all > 0.0 {
            self.bytes as f64 * (left / all).min(1.0)
        } else {
            0.0
        }
    }
}

impl Lane {
    /// What the deadlines ask for now. While the only thing to move is a
    /// stream of unknown size the demand is infinite, which means one
    /// best-effort flow and no more than one.
    pub(super) fn demand(&self) -> Option<Demand> {
        let mean = self.mean_size();
        let due = self
            .due()
            .map(|(transfer, deadline)| (deadline, self.expected(transfer, mean).unwrap_or(0)));
        let mut demand = Demand::of(self.now, due)?;
        let is_endless = |transfer: &Transfer| {
            matches!(transfer.phase, Phase::Moving(_)) && self.remaining(transfer).is_none()
        };
        if mean.is_none() && self.due().any(|(transfer, _)| is_endless(transfer)) {
            demand.zeta = f64::INFINITY;
        }
        Some(demand)
    }

    /// Mean size of the transfers with deadlines whose size is known, those
    /// that are done included.
    fn mean_size(&self) -> Option<u64> {
        let due = self.transfers.iter().filter(|it| it.deadline.is_some());
        let (sum, count) = due
            .filter_map(|transfer| transfer.total)
            .fold((0_u64, 0_u64), |(sum, count), size| {
                (sum.saturating_add(size), count + 1)
            });
        sum.checked_div(count)
    }

    /// Bytes that a transfer still has to move; what is not known is taken
    /// for the mean.
    fn expected(&self, transfer: &Transfer, mean: Option<u64>) -> Option<u64> {
        self.remaining(transfer)
            .or_else(|| Some(mean?.saturating_sub(transfer.done)))
    }

    /// What a server of ours is told of a transfer alone: its deadline and the
    /// least weight, if that says more than that the transfer yields. `None`
    /// where nothing yields.
    pub(super) fn own_terms(&self, id: TransferId) -> Option<DeadlineHint> {
        let deadline = self.transfers[id.0 as usize].deadline;
        let terms = DeadlineHint {
            due: deadline.map(|due| due.by().saturating_sub(self.now)),
            remaining: None,
            w: Some(self.weight).filter(|&w| w > MIN_WEIGHT || deadline.is_some()),
        };
        (self.weight < 1.0 && terms != DeadlineHint::default()).then_some(terms)
    }

    /// What it is told with a request for a range: how much there is to move
    /// over this connection by then, too, its part of all that is due.
    pub(super) fn terms(&self, id: TransferId) -> Option<DeadlineHint> {
        // Adding up takes its time where there are many files.
        if !self.shared.client.knows_fairbat_server() {
            return None;
        }
        let own = self.own_terms(id)?;
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

    /// Time to the nearest deadline that is not over.
    pub(super) fn time_left(&self) -> Option<Duration> {
        let ahead = self.due().filter(|(_, due)| !due.is_over(self.now));
        ahead.map(|(_, due)| due.by() - self.now).min()
    }

    /// Bytes that the transfers with deadlines are behind an even pace.
    pub(super) fn lag(&mut self) -> Option<f64> {
        let now = self.now;
        let remaining: Vec<_> = self
            .due()
            .filter_map(|(transfer, due)| Some((transfer.id, due, self.remaining(transfer)?)))
            .collect();
        let lags = remaining.into_iter().map(|(id, due, bytes)| {
            let line = self
                .transfer(id)
                .line
                .get_or_insert(Line { from: now, bytes });
            bytes as f64 - line.remaining(now, due.aim())
        });
        lags.reduce(|sum, lag| sum + lag)
    }

    /// Says of each deadline once that it will probably be missed, as soon as
    /// that is known. The earliest deadline goes first, which keeps the
    /// largest lateness smallest (Jackson 1955).
    pub(super) fn forecast(&mut self, sample: &PaceSample, zeta: f64) {
        let shown = self.shown(sample);
        let Some(rate) = foreseen(zeta, self.ceiling, shown) else {
            return;
        };
        // Of what has no size nothing can be said.
        if zeta.is_finite() {
            self.foretell(zeta, rate);
        }
    }

    /// What the connections have shown that they can carry, as many as there
    /// may be, byte/s.
    fn shown(&mut self, sample: &PaceSample) -> Option<f64> {
        let (now, most) = (self.now, f64::from(self.most_connections));
        let left = self.time_left().unwrap_or_default();
        let rate = self.saturation.look(Look {
            now,
            w: sample.w,
            rate: sample.rate,
            left,
            may_grow: sample.m < most,
        })?;
        // Beyond what the path carries nothing can.
        Some(
            (rate * most / sample.m)
                .min(self.admission.capacity(now))
                .max(rate),
        )
    }

    fn foretell(&mut self, zeta: f64, rate: f64) {
        let now = self.now;
        let mean = self.mean_size();
        let mut due: Vec<_> = self
            .due()
            .map(|(transfer, due)| (due.by(), transfer.id, self.expected(transfer, mean)))
            .collect();
        due.sort();
        let (mut before_it, mut said) = (0_u64, None);
        for (by, id, bytes) in due {
            before_it = before_it.saturating_add(bytes.unwrap_or(0));
            let Some(late_s) = lateness(now, by, before_it, rate) else {
                continue;
            };
            let transfer = self.transfer(id);
            let is_first = !std::mem::replace(&mut transfer.is_foretold, true) && said != Some(by);
            said = Some(by);
            if is_first {
                let url = transfer.url.clone();
                self.emit(Event::Forecast {
                    url,
                    late_s,
                    zeta,
                    rate,
                });
            }
        }
    }

    /// A deadline is a moment of the wall clock, but time passes by another
    /// one. When the wall clock has been set, all deadlines are planned anew.
    pub(super) fn notice_jump(&mut self) {
        self.plan_anew_if_off(self.shared.clock.drift());
    }

    /// `drift` is what the wall clock is off by.
    fn plan_anew_if_off(&mut self, drift: SignedDuration) {
        let jump = drift - self.drift;
        if jump.abs() < JUMP {
            return;
        }
        self.drift = drift;
        let (clock, now) = (self.shared.clock, self.now);
        let mut planned = 0;
        for transfer in &mut self.transfers {
            if let Some(moment) = transfer.request.deadline {
                transfer.deadline = Some(Deadline::new(now, clock.since_start(moment, drift)));
                transfer.line = None;
                transfer.is_foretold = false;
                planned += 1;
            }
        }
        if planned == 0 {
            return;
        }
        let transfers = &self.transfers;
        self.queue.reorder(|id| transfers[id.0 as usize].deadline);
        tracing::warn!("the clock was set by {jump:#}; all deadlines are planned anew");
    }

    /// Transfers that have a deadline and are not done.
    fn due(&self) -> impl Iterator<Item = (&Transfer, Deadline)> {
        self.transfers
            .iter()
            .filter(|transfer| !transfer.is_ended())
            .filter_map(|transfer| Some((transfer, transfer.deadline?)))
    }

    /// Bytes that a transfer still has to move, if that is known.
    fn remaining(&self, transfer: &Transfer) -> Option<u64> {
        match transfer.phase {
            Phase::Finishing => Some(0),
            Phase::Moving(_) => self.queue.remaining(transfer.id),
            _ => Some(transfer.total?.saturating_sub(transfer.done)),
        }
    }
}

#[cfg(test)]
mod tests;
