//! Who gets the next connection of a lane.

use std::ops::Range;
use std::time::Duration;

use dalbe::weight::MIN_WEIGHT;
use jiff::Timestamp;

use super::{Core, MemberId, MemberState, Rank, RequestId, Service};
use crate::lane::places::KEPT;
use crate::lane::wire::Class;

/// After this time without a request, a connection has lost its place among those that carry
/// weight, at a sending end as well, where it takes up to 0.6 s to see that nothing moves.
const REST: Duration = KEPT.saturating_add(Duration::from_millis(700));

/// A request, and when it was made.
type Request<'a> = (&'a (Rank, RequestId), &'a Duration);

/// The same of one that was found.
type FoundRequest = Option<((Rank, RequestId), Duration)>;

impl Core {
    /// A member asks for a connection.
    pub(crate) fn request(&mut self, now: Duration, id: MemberId) -> RequestId {
        let request = RequestId(self.requested);
        self.requested += 1;
        if let Some(member) = self.members.get_mut(&id) {
            member.has_requested = true;
            self.requests.insert((member.rank(id), request), now);
        }
        request
    }

    /// The request of a member is no longer wanted.
    pub(crate) fn withdraw(&mut self, id: MemberId, request: RequestId) {
        if let Some(member) = self.members.get(&id) {
            self.requests.remove(&(member.rank(id), request));
        }
    }

    /// Grants the first request in order, of the stream or of the others, for which there may
    /// be one more connection. A member that asks what it has to move goes before all of them.
    pub(crate) fn grant(&mut self, now: Duration) -> Option<(RequestId, MemberId, Service)> {
        let first_in_order = || {
            let in_stream = self.next_in_stream(now);
            let of_others = self.next_of_others(now, in_stream.is_some());
            let has_room = self.active < self.settings.max_connections as usize;
            let in_stream = in_stream.filter(|_| has_room);
            in_stream.into_iter().chain(of_others).min()
        };
        let next = self.next_that_asks(now).or_else(first_in_order)?;
        self.requests.remove(&next);
        let (rank, request) = next;
        let id = MemberId(rank.arrival);
        let service = self.members.get(&id)?.service;
        self.outer.used(Class::of(service));
        self.count(now, id, service, 1);
        Some((request, id, service))
    }

    /// The first of these requests in order whose host takes one more connection, and when it
    /// was made.
    fn first<'a>(
        &self,
        now: Duration,
        requests: impl Iterator<Item = Request<'a>>,
    ) -> FoundRequest {
        let mut requests = requests;
        let found = requests.find(|((rank, _), _)| self.host_admits(now, MemberId(rank.arrival)));
        found.map(|(&request, &made)| (request, made))
    }

    /// The requests of the stream: they lie between those with a deadline and those that
    /// scavenge.
    fn of_stream() -> Range<(Rank, RequestId)> {
        let [first, end] = [Service::Stream, Service::Scavenge]
            .map(|service| (Rank::new(service, 0), RequestId(0)));
        first..end
    }

    /// Transfers of the stream that wait for their connection.
    pub(super) fn waiting_in_stream(&self, now: Duration) -> u64 {
        let members = self
            .members
            .iter()
            .filter(|(_, it)| it.service == Service::Stream);
        let waiting = members.filter(|(id, member)| {
            let asks = match self.mode.is_shared() {
                true => self.has_request(member.rank(**id)),
                // A run asks for the first of its transfers only.
                false => member.backlog.inactive > 0,
            };
            member.active == 0 && asks && self.waits_until(now, **id).is_none()
        });
        waiting.count() as u64
    }

    /// Whether the member of this rank waits for a connection.
    pub(super) fn has_request(&self, rank: Rank) -> bool {
        self.requests_range(rank).next().is_some()
    }

    /// The number of the requests of the member of this rank.
    pub(super) fn requests_of(&self, rank: Rank) -> u32 {
        u32::try_from(self.requests_range(rank).count()).unwrap_or(u32::MAX)
    }

    /// The requests of the member of this rank, and when each was made.
    pub(super) fn requests_range(&self, rank: Rank) -> impl Iterator<Item = (RequestId, Duration)> {
        let requests = (rank, RequestId(0))..=(rank, RequestId(u64::MAX));
        let requests = self.requests.range(requests);
        requests.map(|(&(_, request), &made)| (request, made))
    }

    /// The next request of the stream, while it has fewer connections than its m allows.
    fn next_in_stream(&self, now: Duration) -> Option<(Rank, RequestId)> {
        let is_allowed = || self.active_in_stream < self.stream.connections();
        if !self.outer_allows(Class::Stream).unwrap_or_else(is_allowed) {
            return None;
        }
        let requests = self.requests.range(Self::of_stream());
        // A transfer gets no second one: n and m are about transfers.
        let requests = requests.filter(|((rank, _), _)| {
            let member = self.members.get(&MemberId(rank.arrival));
            member.is_some_and(|member| member.active == 0)
        });
        self.first(now, requests).map(|(request, _)| request)
    }

    /// The next request of the others, while they have fewer connections than their m allows.
    /// Of several connections they leave one to the stream, if it `has_next`.
    ///
    /// In a shared lane a request that is due before all connections in use gets one
    /// more than m: a part of those may take as long as is left until the deadline,
    /// and cannot be taken back. One that is due later may have to wait for [`REST`].
    fn next_of_others(&self, now: Duration, has_next: bool) -> Option<(Rank, RequestId)> {
        let Range { start, end } = Self::of_stream();
        let before = self.requests.range(..start);
        let requests = before.chain(self.requests.range(end..));
        let max = self.settings.max_connections as usize;
        let spare = usize::from(self.mode.is_shared());
        if self.active >= max + spare {
            return None;
        }
        let is_filled = self.is_path_filled(now);
        let requests = requests.filter(|((rank, _), _)| !is_filled || !self.waits_for_path(*rank));
        if let Some(is_allowed) = self.outer_allows(Class::Others) {
            let first = is_allowed.then(|| self.first(now, requests)).flatten();
            return first.map(|(request, _)| request);
        }
        let in_use = self.active - self.active_in_stream - self.in_use_by_asking(now);
        let connections = self.controller.connections();
        let kept = usize::from(has_next && max > 1);
        let left = max.saturating_sub(self.active_in_stream.max(kept));
        let allowed = connections.min(left);
        if connections == 0 || in_use >= allowed + spare {
            return None;
        }
        let (next, made) = self.first(now, requests)?;
        let is_to_rest = now < made + REST && self.is_to_rest(now, next.0);
        let has_room = in_use < allowed || self.is_due_first(next.0);
        (has_room && !is_to_rest).then_some(next)
    }

    /// Whether the outer lane allows one more connection of this class, if there is one.
    pub(super) fn outer_allows(&self, class: Class) -> Option<bool> {
        self.outer.allows(class, self.in_use_by_class())
    }

    /// The members that use connections, with their ranks.
    fn in_use(&self) -> impl Iterator<Item = (Rank, &MemberState)> {
        let active = self.users().filter(|(_, member)| member.active > 0);
        active.map(|(id, member)| (member.rank(id), member))
    }

    /// Whether a member is due before all members that use a connection.
    pub(super) fn is_due_first(&self, rank: Rank) -> bool {
        rank.due != Timestamp::MAX && self.in_use().all(|(other, _)| rank.due < other.due)
    }

    /// Whether some connections are to weigh more than those that yield.
    pub(crate) fn is_pressed(&self, now: Duration) -> bool {
        self.settings.is_held && self.flow_target(now).w > MIN_WEIGHT
    }

    /// Whether a connection is to rest before it goes on to what is due later: connections
    /// are in use for what is due before, and one of these has just come or gone.
    ///
    /// A sending end cannot tell for what each connection is used. So the one that carries
    /// the weight might go on to what is due later, while what is due first waits on
    /// connections that yield. After a rest it is the last of them.
    fn is_to_rest(&self, now: Duration, rank: Rank) -> bool {
        let mut before = self.in_use().filter(|(other, _)| other.due < rank.due);
        self.mode.is_shared()
            && self.active - self.active_in_stream >= self.settings.carriers() as usize
            && before.any(|(_, member)| now < member.changed_at + REST)
            && self.is_pressed(now)
    }
}
