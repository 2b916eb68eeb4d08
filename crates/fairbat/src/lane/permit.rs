//! The right to use a connection, and the request for it.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::oneshot;

use super::core::{MemberId, RequestId};
use super::handle::{Lane, Member};
use super::settings::Service;

impl Member {
    /// Asks for a connection. The request waits its turn until it is granted or dropped.
    #[must_use]
    pub fn request(&self) -> PermitRequest {
        let (granted, turn) = oneshot::channel();
        let mut state = self.lane.state();
        let id = state.core.request(self.lane.now(), self.id);
        state.waiting.insert(id, granted);
        self.lane.grant(&mut state);
        drop(state);
        PermitRequest {
            lane: self.lane.clone(),
            id,
            member: self.id,
            service: self.service(),
            turn,
            is_taken: false,
        }
    }

    /// Waits for a connection. Cancel-safe.
    pub async fn admit(&self) -> Permit {
        self.request().await
    }
}

/// A request for a [`Permit`], until it is granted or dropped. It is never granted once its
/// member has left.
#[derive(Debug)]
pub struct PermitRequest {
    lane: Lane,
    id: RequestId,
    member: MemberId,
    service: Service,
    turn: oneshot::Receiver<()>,
    is_taken: bool,
}

impl PermitRequest {
    /// The permit, if the request has been granted. Does not wait.
    pub fn try_take(&mut self) -> Option<Permit> {
        self.turn.try_recv().ok().map(|()| self.permit())
    }

    /// Whether this is a request of that member.
    pub(crate) fn is_of(&self, member: &Member) -> bool {
        self.member == member.id
    }

    fn permit(&mut self) -> Permit {
        self.is_taken = true;
        Permit {
            lane: self.lane.clone(),
            member: self.member,
            service: self.service,
            refused: None,
        }
    }
}

impl Future for PermitRequest {
    type Output = Permit;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Permit> {
        if self.is_taken {
            // There is one permit, and it has been taken.
            return Poll::Pending;
        }
        match Pin::new(&mut self.turn).poll(context) {
            Poll::Ready(Ok(())) => Poll::Ready(self.permit()),
            // The other end is dropped only with the request.
            Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
        }
    }
}

impl Drop for PermitRequest {
    fn drop(&mut self) {
        if self.is_taken {
            return;
        }
        let mut state = self.lane.state();
        state.core.withdraw(self.member, self.id);
        state.waiting.remove(&self.id);
        // It was granted, and nobody took the permit.
        if self.turn.try_recv().is_ok() {
            let now = self.lane.now();
            state.core.give_back(now, self.member, self.service);
            self.lane.grant(&mut state);
        }
    }
}

/// The right to use one connection, until it is dropped.
#[derive(Debug)]
pub struct Permit {
    lane: Lane,
    member: MemberId,
    service: Service,
    /// The pause that the host wants, if it refused the connection.
    refused: Option<Duration>,
}

impl Permit {
    /// Whether this is a permit of that member.
    pub(crate) fn is_of(&self, member: &Member) -> bool {
        self.member == member.id
    }

    /// The host refused the connection: it gets fewer, and none before `pause` is over. The
    /// permit is given back. No request, of whatever member, takes the place of the
    /// refused connection before the lane knows.
    pub fn refused(mut self, pause: Duration) {
        self.refused = Some(pause);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.lane.state();
        let now = self.lane.now();
        state.core.give_back(now, self.member, self.service);
        if let Some(pause) = self.refused {
            state.core.pushed_back(now, self.member, pause);
        }
        self.lane.grant(&mut state);
    }
}
