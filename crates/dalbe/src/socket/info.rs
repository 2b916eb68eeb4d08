//! The kernel's `struct tcp_info` (`TCP_INFO`, tcp(7)) with types and units.
//!
//! The structure has only ever grown at its end, and the kernel writes as
//! much of it as it has: a field is known if the answer is long enough. This
//! is a pure function of those bytes; asking the kernel is not done here.

use std::time::Duration;

/// Where each field starts in `struct tcp_info`, as `linux/tcp.h` has it.
mod offset {
    pub(crate) const CA_STATE: usize = 1;
    pub(crate) const SND_MSS: usize = 16;
    pub(crate) const RCV_MSS: usize = 20;
    pub(crate) const UNACKED: usize = 24;
    pub(crate) const SACKED: usize = 28;
    pub(crate) const RTT: usize = 68;
    pub(crate) const SND_CWND: usize = 80;
    pub(crate) const ADVMSS: usize = 84;
    pub(crate) const RCV_RTT: usize = 92;
    pub(crate) const TOTAL_RETRANS: usize = 100;
    pub(crate) const PACING_RATE: usize = 104;
    pub(crate) const BYTES_ACKED: usize = 120;
    pub(crate) const BYTES_RECEIVED: usize = 128;
    pub(crate) const SEGS_IN: usize = 140;
    pub(crate) const NOTSENT_BYTES: usize = 144;
    pub(crate) const MIN_RTT: usize = 148;
    pub(crate) const DATA_SEGS_IN: usize = 152;
    pub(crate) const DELIVERED: usize = 192;
    pub(crate) const RCV_OOOPACK: usize = 224;
    pub(crate) const SND_WND: usize = 228;
    pub(crate) const RCV_WND: usize = 232;
}

/// Up to here every Linux since 2.6.12 fills the structure.
const REQUIRED: usize = offset::TOTAL_RETRANS + 4;

/// The fields beyond [`REQUIRED`]: name, end in bytes, and the first Linux
/// that has it.
const OPTIONAL: [(&str, usize, &str); 11] = [
    ("pacing_rate", offset::PACING_RATE + 8, "3.15"),
    ("bytes_acked", offset::BYTES_ACKED + 8, "4.1"),
    ("bytes_received", offset::BYTES_RECEIVED + 8, "4.1"),
    ("segs_in", offset::SEGS_IN + 4, "4.2"),
    ("notsent_bytes", offset::NOTSENT_BYTES + 4, "4.6"),
    ("min_rtt", offset::MIN_RTT + 4, "4.6"),
    ("data_segs_in", offset::DATA_SEGS_IN + 4, "4.6"),
    ("delivered", offset::DELIVERED + 4, "4.18"),
    ("rcv_ooopack", offset::RCV_OOOPACK + 4, "5.4"),
    ("snd_wnd", offset::SND_WND + 4, "5.4"),
    ("rcv_wnd", offset::RCV_WND + 4, "6.2"),
];

/// The first state of the kernel's `enum tcp_ca_state` (`linux/tcp.h`) in which
/// the congestion window is reduced.
const TCP_CA_CWR: u8 = 2;

/// The kernel's state of one connection.
///
/// "Sent" and "received" are from this end. An `Option` is `None` when this
/// kernel's structure ends before the field, or when there is nothing to
/// report yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpInfo {
    /// Whether what we send meets congestion: the window is being reduced, or
    /// lost segments are being repaired.
    pub is_reducing: bool,
    /// Largest segment we send, bytes of payload.
    pub snd_mss: u32,
    /// Size of the segments we receive, estimated by the kernel, bytes.
    pub rcv_mss: u32,
    /// Largest segment we have told the peer to send, bytes: what fits the
    /// MTU of the first hop.
    pub advmss: u32,
    /// Segments sent that the peer has not acknowledged.
    pub unacked: u32,
    /// Segments sent that have arrived beyond a hole (SACK, RFC 2018).
    pub sacked: u32,
    /// Segments sent again since the connection was opened.
    pub total_retrans: u32,
    /// Smoothed round-trip time of what we send (RFC 6298 SRTT). On a
    /// connection that only receives it stays what the handshake measured.
    pub rtt: Option<Duration>,
    /// Congestion window, segments.
    pub snd_cwnd: u32,
    /// Round-trip time as the receiver estimates it from the arriving data.
    pub rcv_rtt: Option<Duration>,
    /// Rate at which the sender spaces its packets, byte/s; `None` also when
    /// it does not.
    pub pacing_rate: Option<u64>,
    /// Bytes sent that the peer has acknowledged (RFC 4898); SYN and FIN
    /// count as one byte each.
    pub bytes_acked: Option<u64>,
    /// Bytes received in order (RFC 4898); a FIN counts as one byte.
    pub bytes_received: Option<u64>,
    /// Segments received, with data or without (RFC 4898).
    pub segs_in: Option<u32>,
    /// Bytes that were handed to the kernel and that it has not sent yet.
    pub notsent_bytes: Option<u32>,
    /// Smallest round-trip time of what we sent in the kernel's window
    /// (`net.ipv4.tcp_min_rtt_wlen`, 5 minutes unless changed).
    pub min_rtt: Option<Duration>,
    /// Segments received that carried data (RFC 4898).
    pub data_segs_in: Option<u32>,
    /// Segments sent that have arrived, in order or not (SACK).
    pub delivered: Option<u32>,
    /// Segments received out of order.
    pub rcv_ooopack: Option<u32>,
    /// The receive window the peer offers us now, bytes.
    pub snd_wnd: Option<u32>,
    /// The receive window we offer the peer now, bytes.
    pub rcv_wnd: Option<u32>,
}

impl TcpInfo {
    /// Of a connection of which nothing is known.
    #[cfg(feature = "quic")]
    pub(crate) const NOTHING: Self = Self {
        is_reducing: false,
        snd_mss: 0,
        rcv_mss: 0,
        advmss: 0,
        unacked: 0,
        sacked: 0,
        total_retrans: 0,
        rtt: None,
        snd_cwnd: 0,
        rcv_rtt: None,
        pacing_rate: None,
        bytes_acked: None,
        bytes_received: None,
        segs_in: None,
        notsent_bytes: None,
        min_rtt: None,
        data_segs_in: None,
        delivered: None,
        rcv_ooopack: None,
        snd_wnd: None,
        rcv_wnd: None,
    };

    /// Round-trip time of the path of a connection that receives: the
    /// receiver's own estimate follows the path; until data has come for a
    /// round trip there is only that of the handshake.
    pub fn path_rtt(&self) -> Option<Duration> {
        self.rcv_rtt.or(self.rtt)
    }

    /// Whether the peer has still to acknowledge something that this end was
    /// given to send, as far as the kernel tells.
    pub fn is_owed(&self) -> bool {
        self.unacked > 0 || self.notsent_bytes.is_some_and(|bytes| bytes > 0)
    }

    /// Reads the bytes that the kernel wrote for `TCP_INFO`; `None` if they
    /// are fewer than Linux has ever written.
    pub fn parse(raw: &[u8]) -> Option<Self> {
        let required = raw.first_chunk::<REQUIRED>()?;
        let field = |at| u32_at(required, at).unwrap_or(0);
        Some(Self {
            is_reducing: raw[offset::CA_STATE] >= TCP_CA_CWR,
            snd_mss: field(offset::SND_MSS),
            rcv_mss: field(offset::RCV_MSS),
            advmss: field(offset::ADVMSS),
            unacked: field(offset::UNACKED),
            sacked: field(offset::SACKED),
            total_retrans: field(offset::TOTAL_RETRANS),
            rtt: measured_micros(field(offset::RTT)),
            snd_cwnd: field(offset::SND_CWND),
            rcv_rtt: measured_micros(field(offset::RCV_RTT)),
            pacing_rate: u64_at(raw, offset::PACING_RATE).filter(|&rate| rate != u64::MAX),
            bytes_acked: u64_at(raw, offset::BYTES_ACKED),
            bytes_received: u64_at(raw, offset::BYTES_RECEIVED),
            segs_in: u32_at(raw, offset::SEGS_IN),
            notsent_bytes: u32_at(raw, offset::NOTSENT_BYTES),
            min_rtt: u32_at(raw, offset::MIN_RTT).and_then(measured_micros),
            data_segs_in: u32_at(raw, offset::DATA_SEGS_IN),
            delivered: u32_at(raw, offset::DELIVERED),
            rcv_ooopack: u32_at(raw, offset::RCV_OOOPACK),
            snd_wnd: u32_at(raw, offset::SND_WND),
            rcv_wnd: u32_at(raw, offset::RCV_WND),
        })
    }
}

/// The optional fields that an answer of `length` bytes lacks, each with the
/// first Linux that has it.
pub(crate) fn fields_beyond(length: usize) -> Vec<(&'static str, &'static str)> {
    OPTIONAL
        .iter()
        .filter(|(_, end, _)| *end > length)
        .map(|(name, _, since)| (*name, *since))
        .collect()
}

fn u32_at(raw: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*raw.get(at..)?.first_chunk()?))
}

fn u64_at(raw: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*raw.get(at..)?.first_chunk()?))
}

/// A time that the kernel leaves at 0, or at its largest for a minimum, until
/// it has measured it.
fn measured_micros(value: u32) -> Option<Duration> {
    (value != 0 && value != u32::MAX).then(|| Duration::from_micros(value.into()))
}

#[cfg(test)]
mod tests;
