//! The permits that all hosts together use.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::CONNECTIONS;
use super::record::Used;

/// One more than m_max: a lane gives it to what is due before all that is in use.
const MOST: u32 = CONNECTIONS + 1;

/// The permits of one direction of the site.
#[derive(Debug, Default)]
pub(super) struct Uses(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    in_use: u32,
    /// When permits were given back that are not granted again. Only of a site whose permits
    /// were all in use: else its law may have no next one.
    free: VecDeque<Instant>,
    /// Since it was started anew.
    used: Used,
    /// From a permit that is free and wanted to its use, s.
    waits: Vec<f64>,
}

impl Uses {
    /// A permit is used that was asked for then.
    pub(super) fn begin(&self, asked: Instant) {
        let state = &mut *self.state();
        state.in_use += 1;
        state.used.grants += 1;
        state.used.most = state.used.most.max(state.in_use);
        state.used.beyond += u64::from(state.in_use > MOST);
        if let Some(since) = state.free.pop_front() {
            state.waits.push(since.max(asked).elapsed().as_secs_f64());
        }
    }

    /// A permit is given back.
    pub(super) fn end(&self) {
        let state = &mut *self.state();
        if state.in_use >= CONNECTIONS {
            state.free.push_back(Instant::now());
        }
        state.in_use -= 1;
    }

    /// Counts from now on.
    pub(super) fn start_anew(&self) {
        let state = &mut *self.state();
        state.used = Used {
            most: state.in_use,
            ..Used::default()
        };
        state.waits.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The waits of both directions, and how permits were used in each.
pub(super) fn told(uses: &[Arc<Uses>; 2]) -> (Vec<f64>, [Used; 2]) {
    let waits = uses.iter().flat_map(|uses| uses.state().waits.clone());
    (
        waits.collect(),
        [0, 1].map(|index: usize| uses[index].state().used),
    )
}
