//! Those who share a lane: a member, what it wishes, and what it is given.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::Lane;
use super::book::{Backlog, MemberId, WishId};
use super::outlook::Outlook;
use super::shared::Shared;

/// A job's place in a lane, until it is dropped.
#[derive(Debug)]
pub struct Member {
    pub(super) lane: Arc<Shared>,
    pub(super) id: MemberId,
}

impl Member {
    /// What there is to move from now on.
    pub fn set_backlog(&self, backlog: Backlog) {
        let mut state = self.lane.state();
        state.book.set_backlog(self.id, backlog);
    }

    /// Its flows weigh so much at least, 0.02 to 1, while it has something to
    /// move, and so do those of all others then: they share the connections.
    pub fn set_weight(&self, weight: f64) {
        let mut state = self.lane.state();
        state.book.set_weight(self.id, weight);
    }

    /// Waits for its turn to use a connection. Cancel-safe.
    pub async fn admit(&self) -> Permit {
        let (granted, turn) = oneshot::channel();
        let wish = {
            let mut state = self.lane.state();
            let wish = state.book.wish(self.id);
            state.waiting.insert(wish, granted);
            self.lane.dispatch(&mut state);
            Wish {
                lane: &self.lane,
                id: wish,
                member: self.id,
                turn,
            }
        };
        wish.wait().await
    }

    /// The host refused the load of a connection, whose permit has been given
    /// back: it is to have fewer, and none before so long from now.
    pub fn pushed_back(&self, not_for: Option<Duration>) {
        let mut state = self.lane.state();
        let now = self.lane.clock.now();
        if let Some((host, active)) = state.book.refused(self.id) {
            let not_before = not_for.map(|time| now + time);
            state.hosts.pushed_back(&host, now, active + 1, not_before);
        }
    }

    /// The lane that it is a member of.
    #[must_use]
    pub fn lane(&self) -> Lane {
        Lane(Arc::clone(&self.lane))
    }

    /// For whoever wants to know how it stands.
    #[must_use]
    pub fn outlook(&self) -> Outlook {
        Outlook::new(&self.lane, self.id)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut state = self.lane.state();
        state.book.leave(self.id);
        state.moments.remove(&self.id);
    }
}

/// A wish until it is granted or dropped.
struct Wish<'a> {
    lane: &'a Arc<Shared>,
    id: WishId,
    member: MemberId,
    turn: oneshot::Receiver<()>,
}

impl Wish<'_> {
    async fn wait(mut self) -> Permit {
        // The other end is dropped only with the wish.
        while (&mut self.turn).await.is_err() {
            std::future::pending::<()>().await;
        }
        // Dropping the wish now gives nothing back.
        self.turn.close();
        Permit {
            lane: Arc::clone(self.lane),
            member: self.member,
        }
    }
}

impl Drop for Wish<'_> {
    fn drop(&mut self) {
        let mut state = self.lane.state();
        state.book.withdraw(self.id);
        state.waiting.remove(&self.id);
        // Granted in the very moment, and nobody came for it.
        if self.turn.try_recv().is_ok() {
            state.book.give_back(self.member);
            self.lane.dispatch(&mut state);
        }
    }
}

/// The right to use one connection, until it is dropped.
#[derive(Debug)]
pub struct Permit {
    lane: Arc<Shared>,
    member: MemberId,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.lane.state();
        state.book.give_back(self.member);
        self.lane.dispatch(&mut state);
    }
}
