//! A receive window that the product's law holds: [`ReceiveWindowLimiter`] as
//! `dalbe::receive_window::WindowLever` feeds it, in virtual time.

use std::time::Duration;

use dalbe::receive_window::{
    ConnectionRenewals, PathFindings, ReceiveWindowLimiter, ReceiverPolicy, WindowGroup,
};
use dalbe::socket::TcpInfo;
use dalbe::weight::{CapacityEstimate, FlowTarget};

use crate::packet::SEGMENT;
use lab_run::scenario::WeightStep;

/// How often the worker that reads looks at the connection.
pub(crate) const LOOK: Duration = Duration::from_millis(20);

/// The lane counts what has come in steps of this length.
const LANE_STEP: Duration = Duration::from_millis(200);

/// Room in the buffer of a paused connection: two segments, and no third one.
const PAUSED_BYTES: u64 = SEGMENT * 295 / 100;

/// The least window that the kernel takes, bytes.
const MIN_CLAMP: u64 = 2048;

/// There is always more to come, bytes.
const REMAINING: u64 = 1 << 40;

/// The window of one connection, and of those after it on the same path.
#[derive(Debug)]
pub(crate) struct HeldWindow {
    limiter: ReceiveWindowLimiter,
    /// Its path.
    group: WindowGroup,
    policy: ReceiverPolicy,
    w: f64,
    /// From when on it has another weight.
    steps: Vec<WeightStep>,
    renewals: ConnectionRenewals,
    /// Whether this connection is a new one on trial.
    is_fresh: bool,
    capacity: CapacityEstimate,
    /// Bytes that were counted for the capacity, and when.
    counted: (u64, Duration),
    clamp: u64,
    /// From one read to the next, while reads are paused.
    pause: Option<Duration>,
    /// Whether the buffer holds no more than [`PAUSED_BYTES`].
    is_narrow: bool,
    unread: u64,
    next_read: Option<Duration>,
}

/// What a look at a connection comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Nothing that the sender would see at once.
    Nothing,
    /// The closed window opens.
    Opens,
    /// What is left is to come over a new connection.
    Renews,
}

impl HeldWindow {
    /// With Linux's first window.
    pub(crate) fn new(policy: ReceiverPolicy, w: f64, first_window: u64) -> Self {
        Self::joining(WindowGroup::default(), policy, w, first_window)
    }

    fn joining(group: WindowGroup, policy: ReceiverPolicy, w: f64, first_window: u64) -> Self {
        Self {
            limiter: ReceiveWindowLimiter::joining(policy, &group),
            group,
            policy,
            w,
            steps: Vec::new(),
            renewals: ConnectionRenewals::default(),
            is_fresh: false,
            capacity: CapacityEstimate::default(),
            counted: (0, Duration::ZERO),
            clamp: first_window,
            pause: None,
            is_narrow: false,
            unread: 0,
            next_read: None,
        }
    }

    /// With another weight from some moments on.
    pub(crate) fn with_steps(self, steps: Vec<WeightStep>) -> Self {
        Self { steps, ..self }
    }

    /// That of the new connection ([`Look::Renews`]), which knows the path.
    pub(crate) fn successor(self, now: Duration, first_window: u64) -> Self {
        let mut next = Self::joining(self.group, self.policy, self.w, first_window);
        if let Some(memory) = self.limiter.memory(now) {
            next.limiter.learn(memory);
        }
        next.steps = self.steps;
        next.is_fresh = self.renewals.is_on_trial();
        next.renewals = self.renewals;
        next.capacity = self.capacity;
        next
    }

    /// The connection is open.
    pub(crate) fn open(&mut self, now: Duration) {
        self.counted = (0, now);
    }

    /// The window on offer, bytes.
    pub(crate) fn window(&self) -> u64 {
        if !self.is_narrow {
            return self.clamp;
        }
        match PAUSED_BYTES.saturating_sub(self.unread) {
            room if room < SEGMENT => 0,
            room => room.min(2 * SEGMENT),
        }
    }

    pub(crate) fn is_narrow(&self) -> bool {
        self.is_narrow
    }

    /// The time between two reads, if they are paused.
    pub(crate) fn pause(&self) -> Option<Duration> {
        self.pause
    }

    /// What the connection has seen of its path.
    pub(crate) fn findings(&self) -> Option<PathFindings> {
        self.limiter.findings()
    }

    /// When a paused reader reads.
    pub(crate) fn next_read(&self) -> Option<Duration> {
        self.next_read
    }

    /// So many bytes have come in order.
    pub(crate) fn arrived(&mut self, now: Duration, bytes: u64) {
        if self.is_narrow {
            self.unread += bytes;
            let pause = self.pause.unwrap_or_default();
            self.next_read.get_or_insert(now + pause);
        }
    }

    /// The reader takes all that is there.
    pub(crate) fn read(&mut self) {
        (self.unread, self.next_read) = (0, None);
    }

    /// Asks the law.
    pub(crate) fn look(&mut self, now: Duration, info: &TcpInfo) -> Look {
        let bytes = info.bytes_received.unwrap_or(0);
        if now >= self.counted.1 + LANE_STEP {
            self.capacity.record(now, bytes - self.counted.0);
            self.counted = (bytes, now);
        }
        let due = self.steps.iter().rev();
        let mut due = due.filter(|step| now.as_secs_f64() >= step.at_s);
        if let Some(step) = due.next() {
            self.w = step.weight;
        }
        let target = FlowTarget {
            w: self.w,
            capacity: self.capacity.rate(now),
        };
        let window = self.limiter.update(now, info, target, None);
        // As the window manager does.
        if self.is_fresh {
            self.renewals
                .observe(now, bytes, self.limiter.meets_queue());
            self.is_fresh = self.renewals.is_on_trial();
        }
        if self.policy == ReceiverPolicy::Delay
            && let Some(rate) = self.limiter.stale_rate(now, REMAINING)
            && self.renewals.allows(now)
        {
            self.renewals.begin(now, rate);
            return Look::Renews;
        }
        let offered = u64::from(info.rcv_wnd.unwrap_or(0));
        if let Some(window) = window
            && offered > 0
        {
            self.clamp = u64::from(window).max(MIN_CLAMP);
        }
        self.pause = self.limiter.pause();
        if self.pause.is_none() && self.is_narrow {
            self.is_narrow = false;
            self.read();
            return Look::Opens;
        }
        if self.pause.is_some() && (1..=PAUSED_BYTES).contains(&offered) {
            self.is_narrow = true;
        }
        Look::Nothing
    }
}
