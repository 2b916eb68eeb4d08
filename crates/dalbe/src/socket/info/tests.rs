use std::mem::offset_of;

use libc::tcp_info;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

#[test]
fn offsets_are_those_of_the_c_structure() {
    let pairs = [
        (offset::CA_STATE, offset_of!(tcp_info, tcpi_ca_state)),
        (offset::SND_MSS, offset_of!(tcp_info, tcpi_snd_mss)),
        (offset::RCV_MSS, offset_of!(tcp_info, tcpi_rcv_mss)),
        (offset::UNACKED, offset_of!(tcp_info, tcpi_unacked)),
        (offset::SACKED, offset_of!(tcp_info, tcpi_sacked)),
        (offset::RTT, offset_of!(tcp_info, tcpi_rtt)),
        (offset::SND_CWND, offset_of!(tcp_info, tcpi_snd_cwnd)),
        (offset::RCV_RTT, offset_of!(tcp_info, tcpi_rcv_rtt)),
        (
            offset::TOTAL_RETRANS,
            offset_of!(tcp_info, tcpi_total_retrans),
        ),
        (offset::PACING_RATE, offset_of!(tcp_info, tcpi_pacing_rate)),
        (offset::BYTES_ACKED, offset_of!(tcp_info, tcpi_bytes_acked)),
        (
            offset::BYTES_RECEIVED,
            offset_of!(tcp_info, tcpi_bytes_received),
        ),
        (offset::SEGS_IN, offset_of!(tcp_info, tcpi_segs_in)),
        (
            offset::NOTSENT_BYTES,
            offset_of!(tcp_info, tcpi_notsent_bytes),
        ),
        (offset::MIN_RTT, offset_of!(tcp_info, tcpi_min_rtt)),
        (
            offset::DATA_SEGS_IN,
            offset_of!(tcp_info, tcpi_data_segs_in),
        ),
        (offset::DELIVERED, offset_of!(tcp_info, tcpi_delivered)),
        (offset::RCV_OOOPACK, offset_of!(tcp_info, tcpi_rcv_ooopack)),
        (offset::SND_WND, offset_of!(tcp_info, tcpi_snd_wnd)),
        (offset::RCV_WND, offset_of!(tcp_info, tcpi_rcv_wnd)),
    ];
    for (ours, theirs) in pairs {
        assert_eq!(ours, theirs);
    }
}

#[test]
fn an_old_kernels_answer_lacks_the_newer_fields() {
    let through_bytes_received = offset::BYTES_RECEIVED + 8;
    let info = TcpInfo::parse(&vec_of(through_bytes_received, 1)).expect("long enough");
    assert!(info.bytes_received.is_some());
    assert_eq!(info.min_rtt, None);
    assert_eq!(info.rcv_wnd, None);
    let missing = fields_beyond(through_bytes_received);
    assert_eq!(missing.first(), Some(&("segs_in", "4.2")));
    assert_eq!(missing.last(), Some(&("rcv_wnd", "6.2")));
    assert_eq!(missing.len(), 8);
}

#[test]
fn a_value_that_the_kernel_has_not_measured_is_none() {
    let info = TcpInfo::parse(&vec_of(256, 0)).expect("long enough");
    assert_eq!((info.rtt, info.rcv_rtt), (None, None));
    let info = TcpInfo::parse(&vec_of(256, 0xff)).expect("long enough");
    assert_eq!((info.min_rtt, info.pacing_rate), (None, None));
}

fn vec_of(length: usize, byte: u8) -> Vec<u8> {
    std::iter::repeat_n(byte, length).collect()
}

proptest! {
    #[test]
    fn any_bytes_parse_or_are_too_short(raw in vec(any::<u8>(), 0..600)) {
        prop_assert_eq!(TcpInfo::parse(&raw).is_some(), raw.len() >= REQUIRED);
    }

    #[test]
    fn a_field_needs_no_more_than_its_own_bytes(
        raw in vec(any::<u8>(), 256),
        length in REQUIRED..256usize,
    ) {
        let (short, full) = (TcpInfo::parse(&raw[..length]), TcpInfo::parse(&raw));
        let (short, full) = (short.expect("long enough"), full.expect("long enough"));
        let missing = fields_beyond(length);
        let is_missing = |name| missing.iter().any(|(field, _)| *field == name);
        prop_assert_eq!(short.rtt, full.rtt);
        prop_assert_eq!(short.total_retrans, full.total_retrans);
        prop_assert_eq!(short.bytes_received.is_none(), is_missing("bytes_received"));
        prop_assert_eq!(short.rcv_wnd.is_none(), is_missing("rcv_wnd"));
        if let Some(bytes) = short.bytes_received {
            prop_assert_eq!(Some(bytes), full.bytes_received);
        }
    }
}
