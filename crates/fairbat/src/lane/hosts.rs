//! How many connections each host tolerates.
//!
//! A host that answers 429 or 503, or refuses connections, gets one connection less than
//! it had. It gets one more only after a long quiet time. What counts as a push-back, and
//! how long to wait after it, is the caller's decision.

use std::collections::HashMap;
use std::time::Duration;

/// Push-backs within this time of a step down belong to the same event: connections opened
/// together are refused together.
const EVENT_DURATION: Duration = Duration::from_secs(2);
/// Quiet time before one more connection is tried. A limit at the server does not go away,
/// so this costs it at most one refused request a minute.
const MIN_QUIET: Duration = Duration::from_secs(60);
/// The quiet time doubles with each step down, up to this.
const MAX_QUIET: Duration = Duration::from_secs(16 * 60);

/// Per-host limits on connections, learnt from push-backs.
///
/// Hosts are named by their authority (name and port); moments are durations
/// since the start of the run.
#[derive(Debug, Clone, Default)]
pub(crate) struct HostLimits {
    hosts: HashMap<String, HostLimit>,
}

#[derive(Debug, Clone, Copy)]
struct HostLimit {
    /// Connections tolerated after the last push-back.
    limit: u32,
    /// When the limit last went down.
    stepped: Option<Duration>,
    /// Last push-back, or the end of the wait it asked for.
    quiet_since: Duration,
    /// Time until each further connection is regained; doubles at each step
    /// down, the first included.
    quiet: Duration,
    not_before: Duration,
}

impl HostLimits {
    /// Notes that a host pushed back while it had `active` connections, the
    /// refused one included, and wants no new request before `not_before`
    /// (its Retry-After, or the caller's back-off).
    ///
    /// The limit becomes one less than `active`, at least 1, and never rises here. One
    /// less and not half: that finds a limit per client exactly, which is the usual reason.
    /// With few connections in use, half would hardly be faster.
    pub(crate) fn pushed_back(
        &mut self,
        host: &str,
        now: Duration,
        active: u32,
        not_before: Duration,
    ) {
        let limit = self.limit(host, now);
        let wait_until = not_before.max(now);
        let state = self.hosts.entry(host.to_owned()).or_insert(HostLimit {
            limit,
            stepped: None,
            quiet_since: now,
            quiet: MIN_QUIET / 2,
            not_before: wait_until,
        });
        // What had been regained is now part of the limit.
        state.limit = limit;
        state.not_before = state.not_before.max(wait_until);
        state.quiet_since = state.not_before;
        let same_event = state
            .stepped
            .is_some_and(|stepped| now < stepped.saturating_add(EVENT_DURATION));
        if !same_event {
            state.limit = limit.min(active.saturating_sub(1)).max(1);
            state.quiet = (state.quiet * 2).min(MAX_QUIET);
            state.stepped = Some(now);
        }
    }

    /// Connections that the host tolerates; `u32::MAX` if it never pushed back.
    #[must_use]
    pub(crate) fn limit(&self, host: &str, now: Duration) -> u32 {
        self.hosts.get(host).map_or(u32::MAX, |host| {
            let quiet = now.saturating_sub(host.quiet_since);
            let regained = quiet.as_nanos() / host.quiet.as_nanos().max(1);
            host.limit
                .saturating_add(u32::try_from(regained).unwrap_or(u32::MAX))
        })
    }

    /// The moment before which the host wants no new request; `None` if it never pushed
    /// back.
    #[must_use]
    pub(crate) fn not_before(&self, host: &str) -> Option<Duration> {
        self.hosts.get(host).map(|host| host.not_before)
    }

    /// Ends the pause that a host wants. What it tolerates stays as it was.
    pub(crate) fn end_pause(&mut self, host: &str) {
        if let Some(host) = self.hosts.get_mut(host) {
            host.not_before = Duration::ZERO;
        }
    }

    /// Whether a host with `active` connections may be given one more now.
    #[must_use]
    pub(crate) fn admits(&self, host: &str, now: Duration, active: u32) -> bool {
        active < self.limit(host, now) && self.not_before(host).is_none_or(|moment| now >= moment)
    }

    /// Connections all these hosts (each named once) tolerate together,
    /// `u32::MAX` if there are none: what
    /// [`Admission::tolerate`](crate::lane::Admission::tolerate) takes.
    pub(crate) fn tolerated<'a>(
        &self,
        hosts: impl IntoIterator<Item = &'a str>,
        now: Duration,
    ) -> u32 {
        hosts
            .into_iter()
            .map(|host| self.limit(host, now))
            .reduce(u32::saturating_add)
            .unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOST: &str = "mirror.example:443";

    fn secs(s: u64) -> Duration {
        Duration::from_secs(s)
    }

    #[test]
    fn a_host_that_never_pushed_back_has_no_limit() {
        let limits = HostLimits::default();
        assert!(limits.admits(HOST, secs(0), 1000));
        assert_eq!(limits.not_before(HOST), None);
    }

    #[test]
    fn one_event_steps_down_once_however_many_connections_it_hits() {
        let mut limits = HostLimits::default();
        for (millis, active) in [(0, 4), (10, 3), (20, 2), (1_900, 1)] {
            limits.pushed_back(HOST, Duration::from_millis(millis), active, Duration::ZERO);
        }
        assert_eq!(limits.limit(HOST, secs(2)), 3);
        limits.pushed_back(HOST, secs(3), 3, Duration::ZERO);
        assert_eq!(limits.limit(HOST, secs(3)), 2);
        assert!(limits.admits(HOST, secs(3), 1) && !limits.admits(HOST, secs(3), 2));
    }

    #[test]
    fn one_connection_is_always_left() {
        let mut limits = HostLimits::default();
        for event in 0..5 {
            limits.pushed_back(HOST, secs(10 * event), 1, Duration::ZERO);
        }
        limits.pushed_back(HOST, secs(100), 0, Duration::ZERO);
        assert_eq!(limits.limit(HOST, secs(100)), 1);
    }

    #[test]
    fn waits_as_long_as_the_host_asked() {
        let mut limits = HostLimits::default();
        limits.pushed_back(HOST, secs(5), 2, secs(125));
        limits.pushed_back(HOST, secs(6), 1, secs(10));
        assert_eq!(limits.not_before(HOST), Some(secs(125)));
        assert!(!limits.admits(HOST, secs(124), 0));
        assert!(limits.admits(HOST, secs(125), 0));
        assert!(limits.admits("other.example:443", secs(5), 3));
    }

    #[test]
    fn regains_one_connection_per_quiet_minute_and_ever_later() {
        let mut limits = HostLimits::default();
        limits.pushed_back(HOST, secs(0), 3, secs(30));
        assert_eq!(limits.limit(HOST, secs(89)), 2);
        assert_eq!(limits.limit(HOST, secs(90)), 3);
        limits.pushed_back(HOST, secs(100), 3, Duration::ZERO);
        assert_eq!(limits.limit(HOST, secs(219)), 2);
        assert_eq!(limits.limit(HOST, secs(220)), 3);
        assert_eq!(limits.limit(HOST, secs(340)), 4);
    }

    #[test]
    fn hosts_add_up() {
        let mut limits = HostLimits::default();
        limits.pushed_back("a:80", secs(0), 3, Duration::ZERO);
        limits.pushed_back("b:80", secs(0), 2, Duration::ZERO);
        assert_eq!(limits.tolerated(["a:80", "b:80"], secs(1)), 3);
        assert_eq!(limits.tolerated(["a:80", "c:80"], secs(1)), u32::MAX);
        assert_eq!(limits.tolerated([], secs(1)), u32::MAX);
    }

    proptest! {
        #[test]
        fn never_below_one_and_never_raised_by_a_push_back(
            events in prop::collection::vec((0_u64..100_000, 0_u32..9, 0_u64..600_000), 1..60),
        ) {
            let mut limits = HostLimits::default();
            let mut now = Duration::ZERO;
            for (step, active, wait) in events {
                now += Duration::from_millis(step);
                let before = limits.limit(HOST, now);
                limits.pushed_back(HOST, now, active, now + Duration::from_millis(wait));
                let after = limits.limit(HOST, now);
                prop_assert!((1..=before).contains(&after), "{before} -> {after}");
            }
        }
    }
}
