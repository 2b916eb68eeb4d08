//! The congestion controls outside the kernel: the same C, compiled for this machine
//! (`src/bpf/native/flow.c`, which has the other half of what is below). QUIC's senders and
//! simulations call them.

#![allow(
    unsafe_code,
    reason = "it calls C. Each call gets a flow that `new` has made and `drop` has not \
        freed, and a view that outlives the call. The host is locked meanwhile"
)]

use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::{CongestionParameters, CongestionState};

/// The threshold before the first loss (`TCP_INFINITE_SSTHRESH`).
pub const INFINITE_THRESHOLD: u32 = 0x7fff_ffff;

/// `struct flow`.
#[repr(C)]
struct RawFlow {
    _private: [u8; 0],
}

/// `struct parameters`.
#[repr(C, align(4))]
struct Parameters([u8; 32]);

/// `struct telemetry`.
#[repr(C, align(8))]
struct Telemetry([u8; 88]);

/// `struct host`.
#[repr(C)]
struct RawHost {
    _private: [u8; 0],
}

/// Whether the window is being reduced (`enum tcp_ca_state`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum SenderPhase {
    /// Nothing is wrong.
    Open = 0,
    /// Packets were marked.
    Reduction = 2,
    /// Packets were lost.
    Recovery = 3,
    /// A timer has expired.
    Loss = 4,
}

/// What a sender knows, and what it takes back: window, threshold, pacing. Numbers of bytes and
/// packets wrap.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct SenderView {
    /// Now, µs.
    pub now_us: u64,
    /// When the next paced packet leaves, µs.
    pub next_us: u64,
    /// The first byte that is not acknowledged.
    pub acknowledged: u32,
    /// The next byte to be sent for the first time.
    pub next: u32,
    /// Congestion window, packets.
    pub window: u32,
    /// Slow start ends here, packets; [`INFINITE_THRESHOLD`] before the first loss.
    pub threshold: u32,
    /// Packets that have arrived.
    pub delivered: u32,
    /// Packets that are not acknowledged.
    pub outstanding: u32,
    /// The most of those in the last round trip.
    pub max_outstanding: u32,
    /// Size of a packet, bytes.
    pub segment: u32,
    /// The least round-trip time, µs; 0 while it is unknown.
    pub least_rtt_us: u32,
    /// Round-trip times vary by this without a queue, µs, as a round trip begins; by twice as much
    /// where packets of it have no time of their own. 0 if the law goes on with what it has learnt from
    /// how much they differ within one, as flows that share a host do.
    pub noise_us: u32,
    /// What is being repaired.
    pub phase: SenderPhase,
    /// Whether the window kept packets back in the last round trip.
    pub is_window_limited: u8,
    /// Whether packets are to be spaced.
    pub is_paced: u8,
    /// How many packets leave at once.
    pub at_once: u8,
    /// The window that the peer offers, bytes.
    pub offered: u32,
    /// The rate to space packets by, byte/s; 0 leaves it to the sender.
    pub rate: u32,
}

unsafe extern "C" {
    fn dalbe_host_new() -> *mut RawHost;
    fn dalbe_host_free(host: *mut RawHost);
    fn dalbe_flow_new(parameters: *const Parameters, seed: u64, host: *mut RawHost)
    -> *mut RawFlow;
    fn dalbe_flow_clone(flow: *const RawFlow) -> *mut RawFlow;
    fn dalbe_flow_set(flow: *mut RawFlow, parameters: *const Parameters);
    fn dalbe_flow_tell(flow: *const RawFlow, told: *mut Telemetry);
    fn dalbe_flow_free(flow: *mut RawFlow);
    fn dalbe_flow_begin(flow: *mut RawFlow, view: *mut SenderView);
    fn dalbe_flow_acknowledged(
        flow: *mut RawFlow,
        view: *mut SenderView,
        packets: u32,
        rtt_us: i32,
    );
    fn dalbe_flow_avoid(flow: *mut RawFlow, view: *mut SenderView, acknowledged: u32);
    fn dalbe_flow_threshold(flow: *mut RawFlow, view: *mut SenderView) -> u32;
    fn dalbe_flow_changed(flow: *mut RawFlow, view: *mut SenderView, phase: SenderPhase);
}

/// A host that connections are sent to, which yield as one. Clones are the same host.
#[derive(Debug, Clone)]
pub struct NativeHost(Arc<Mutex<OwnedHost>>);

#[derive(Debug)]
struct OwnedHost(NonNull<RawHost>);

// Nothing of a host belongs to a thread.
unsafe impl Send for OwnedHost {}

impl Default for NativeHost {
    /// # Panics
    /// There is no memory.
    fn default() -> Self {
        let raw = unsafe { dalbe_host_new() };
        let raw = NonNull::new(raw).expect("there is memory for a host");
        Self(Arc::new(Mutex::new(OwnedHost(raw))))
    }
}

impl Drop for OwnedHost {
    fn drop(&mut self) {
        unsafe { dalbe_host_free(self.0.as_ptr()) }
    }
}

/// A connection under a congestion control of ours.
pub struct NativeFlow {
    flow: NonNull<RawFlow>,
    /// The flow refers to it.
    host: NativeHost,
}

// Nothing of a flow belongs to a thread, and only `&mut self` changes it, but for the host, which
// is locked.
unsafe impl Send for NativeFlow {}
unsafe impl Sync for NativeFlow {}

impl fmt::Debug for NativeFlow {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("NativeFlow")
    }
}

impl Drop for NativeFlow {
    fn drop(&mut self) {
        self.with_host(|flow| unsafe { dalbe_flow_free(flow) });
    }
}

impl NativeFlow {
    /// One with these parameters, together with others to the host.
    ///
    /// # Panics
    /// There is no memory.
    #[must_use]
    pub fn new(parameters: &CongestionParameters, seed: u64, host: NativeHost) -> Self {
        let parameters = Parameters(parameters.to_bytes());
        let raw = {
            let host = host.0.lock().unwrap_or_else(PoisonError::into_inner);
            unsafe { dalbe_flow_new(&raw const parameters, seed, host.0.as_ptr()) }
        };
        Self {
            flow: NonNull::new(raw).expect("there is memory for a flow"),
            host,
        }
    }

    fn with_host<T>(&self, call: impl FnOnce(*mut RawFlow) -> T) -> T {
        let _host = self.host.0.lock().unwrap_or_else(PoisonError::into_inner);
        call(self.flow.as_ptr())
    }

    /// The same connection once more, for one that yields apart from others.
    ///
    /// # Panics
    /// There is no memory.
    #[must_use]
    pub fn duplicate(&self) -> Self {
        let raw = self.with_host(|flow| unsafe { dalbe_flow_clone(flow) });
        Self {
            flow: NonNull::new(raw).expect("there is memory for a flow"),
            host: self.host.clone(),
        }
    }

    /// Sets other parameters. Their law must be of the same congestion control, which is
    /// chosen once.
    pub fn set(&mut self, parameters: &CongestionParameters) {
        let parameters = Parameters(parameters.to_bytes());
        self.with_host(|flow| unsafe { dalbe_flow_set(flow, &raw const parameters) });
    }

    /// The state that it shows to a process; `None` before the first round trip.
    #[must_use]
    pub fn told(&self) -> Option<CongestionState> {
        let mut told = Telemetry([0; 88]);
        self.with_host(|flow| unsafe { dalbe_flow_tell(flow, &raw mut told) });
        CongestionState::from_bytes(told.0)
    }

    /// The connection is open.
    pub fn begin(&mut self, view: &mut SenderView) {
        self.with_host(|flow| unsafe { dalbe_flow_begin(flow, view) });
    }

    /// So many packets have arrived, and the newest of them took so long, if that is known.
    pub fn acknowledged(&mut self, view: &mut SenderView, packets: u32, rtt: Option<Duration>) {
        let rtt_us = rtt.map_or(-1, |rtt| i32::try_from(rtt.as_micros()).unwrap_or(i32::MAX));
        self.with_host(|flow| unsafe { dalbe_flow_acknowledged(flow, view, packets, rtt_us) });
    }

    /// The same, unless the sender reduces the window by itself.
    pub fn avoid(&mut self, view: &mut SenderView, packets: u32) {
        self.with_host(|flow| unsafe { dalbe_flow_avoid(flow, view, packets) });
    }

    /// The threshold after a loss.
    pub fn threshold(&mut self, view: &mut SenderView) -> u32 {
        self.with_host(|flow| unsafe { dalbe_flow_threshold(flow, view) })
    }

    /// Another phase begins.
    pub fn changed(&mut self, view: &mut SenderView, phase: SenderPhase) {
        self.with_host(|flow| unsafe { dalbe_flow_changed(flow, view, phase) });
    }
}
