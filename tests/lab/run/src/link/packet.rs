//! A packet as a bottleneck sees it, and the mark that one may get.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::host::Class;

/// The bits of ECN in the second byte of an IPv4 header (RFC 3168, section 5).
const ECN: u8 = 0b11;

/// Those in the second byte of an IPv6 header: the traffic class is the 5th to 12th
/// bit (RFC 8200, section 3).
const ECN_V6: u8 = ECN << 4;

/// The bits of FIN, SYN, RST and ACK in the 14th byte of a TCP header (RFC 9293,
/// section 3.1).
const FLAGS: u8 = 0b1_0111;

/// That of ACK alone.
const ACK: u8 = 0b1_0000;

/// Protocol numbers.
pub const TCP: u8 = 6;
/// The number of UDP.
pub const UDP: u8 = 17;

/// What tells flows apart: the five-tuple.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flow {
    /// Protocol above IP.
    pub protocol: u8,
    /// Address of the sender.
    pub source: IpAddr,
    /// Address of the receiver.
    pub destination: IpAddr,
    /// Ports of source and destination; 0 where there are none.
    pub ports: (u16, u16),
}

impl Default for Flow {
    /// That of all packets that are not IP.
    fn default() -> Self {
        let nobody = Ipv4Addr::UNSPECIFIED.into();
        Self {
            protocol: 0,
            source: nobody,
            destination: nobody,
            ports: (0, 0),
        }
    }
}

/// What an IP header says.
struct Header {
    /// Bytes of it.
    length: usize,
    protocol: u8,
    source: IpAddr,
    destination: IpAddr,
    is_ect: bool,
}

impl Header {
    /// Of an IPv4 packet, or of an IPv6 packet without extension headers.
    fn read(bytes: &[u8]) -> Option<Self> {
        match bytes.first()? >> 4 {
            4 => {
                let header = bytes.first_chunk::<20>()?;
                let [.., s0, s1, s2, s3, d0, d1, d2, d3] = *header;
                Some(Self {
                    length: header_length(header),
                    protocol: header[9],
                    source: Ipv4Addr::new(s0, s1, s2, s3).into(),
                    destination: Ipv4Addr::new(d0, d1, d2, d3).into(),
                    is_ect: header[1] & ECN != 0,
                })
            }
            6 => {
                let header = bytes.first_chunk::<40>()?;
                let source: &[u8; 16] = header[8..].first_chunk()?;
                let destination: &[u8; 16] = header[24..].first_chunk()?;
                Some(Self {
                    length: header.len(),
                    protocol: header[6],
                    source: Ipv6Addr::from(*source).into(),
                    destination: Ipv6Addr::from(*destination).into(),
                    is_ect: header[1] & ECN_V6 != 0,
                })
            }
            _ => None,
        }
    }
}

/// A packet, to a bottleneck.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Packet {
    /// Length with all headers, bytes.
    pub bytes: usize,
    /// Payload of TCP or UDP, bytes.
    pub payload: usize,
    /// Whose it is.
    pub class: Option<Class>,
    /// The flow that it belongs to.
    pub flow: Flow,
    /// Whether it is an acknowledgement of TCP and nothing more.
    pub is_ack: bool,
    /// Whether its sender knows ECN.
    pub is_ect: bool,
    /// Whether it is to be marked when it is handed over.
    pub is_marked: bool,
    /// The buffer of the forwarder that holds it.
    pub buffer: usize,
}

impl Packet {
    /// Reads the headers of an IP packet in this buffer. All packets that are not
    /// IP share one flow.
    #[must_use]
    pub fn read(bytes: &[u8], buffer: usize) -> Self {
        let nobodys = Self {
            bytes: bytes.len(),
            buffer,
            ..Self::default()
        };
        let Some(header) = Header::read(bytes) else {
            return nobodys;
        };
        let (protocol, ip_header) = (header.protocol, header.length);
        let transport_header = match protocol {
            TCP => bytes
                .get(ip_header + 12)
                .map_or(0, |offset| usize::from(offset >> 4) * 4),
            UDP => 8,
            _ => 0,
        };
        let has_ports = protocol == TCP || protocol == UDP;
        let port = |at: usize| match bytes.get(at..at + 2) {
            Some(&[high, low]) if has_ports => u16::from_be_bytes([high, low]),
            _ => 0,
        };
        let mut packet = Self {
            flow: Flow {
                protocol,
                source: header.source,
                destination: header.destination,
                ports: (port(ip_header), port(ip_header + 2)),
            },
            is_ect: header.is_ect,
            ..nobodys
        };
        if has_ports {
            packet.payload = bytes.len().saturating_sub(ip_header + transport_header);
            let flags = bytes.get(ip_header + 13).copied().unwrap_or_default();
            packet.is_ack = protocol == TCP && packet.payload == 0 && flags & FLAGS == ACK;
            packet.class = Class::of(header.destination);
        }
        packet
    }

    /// Marks it in place of dropping it, if its sender knows ECN; returns whether it
    /// does.
    pub(crate) fn mark(&mut self) -> bool {
        self.is_marked |= self.is_ect;
        self.is_ect
    }
}

fn header_length(header: &[u8; 20]) -> usize {
    usize::from(header[0] & 0x0f) * 4
}

/// Sets "congestion experienced" in the header of an IP packet, and the checksum of an
/// IPv4 header: both bits.
pub(crate) fn mark_congestion(bytes: &mut [u8]) {
    let Some(first) = bytes.first_chunk::<20>() else {
        return;
    };
    if first[0] >> 4 == 6 {
        bytes[1] |= ECN_V6;
        return;
    }
    let length = header_length(first);
    let Some(header) = bytes.get_mut(..length.max(20)) else {
        return;
    };
    header[1] |= ECN;
    header[10..12].fill(0);
    let checksum = checksum(header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// The complement of the sum of all words, in ones' complement (RFC 1071).
fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks_exact(2);
    let sum: u32 = words
        .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A TCP segment with timestamps, its sender knowing ECN.
    fn segment() -> Vec<u8> {
        let mut bytes = vec![0; 1500];
        bytes[0] = 0x45;
        bytes[1] = 0b10;
        bytes[9] = TCP;
        bytes[12..20].copy_from_slice(&[10, 78, 0, 2, 10, 78, 1, 2]);
        bytes[20..24].copy_from_slice(&[0, 80, 0x12, 0x34]);
        // 32 bytes of TCP header.
        bytes[32] = 8 << 4;
        let sum = checksum(&bytes[..20]);
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    #[test]
    fn a_tcp_segment_is_its_payload_its_class_and_its_flow() {
        let packet = Packet::read(&segment(), 7);
        assert_eq!((packet.bytes, packet.payload), (1500, 1448));
        assert_eq!(packet.class, Some(Class::Background));
        assert_eq!(packet.flow.ports, (80, 0x1234));
        assert_eq!(packet.flow.source, Ipv4Addr::new(10, 78, 0, 2));
        assert_eq!(packet.flow.destination, Ipv4Addr::new(10, 78, 1, 2));
        assert!(packet.is_ect && !packet.is_marked);
        assert_eq!(packet.buffer, 7);
    }

    #[test]
    fn a_segment_over_ipv6_is_read_and_marked_as_well() {
        let [source, destination] =
            [0, 1].map(|host| Ipv6Addr::from_bits((0xfd78 << 112) + (host << 16) + 2));
        let mut bytes = vec![0; 1500];
        (bytes[0], bytes[1], bytes[6]) = (0x60, 0b10 << 4, TCP);
        bytes[8..24].copy_from_slice(&source.octets());
        bytes[24..40].copy_from_slice(&destination.octets());
        bytes[40..44].copy_from_slice(&[0, 80, 0x12, 0x34]);
        bytes[52] = 8 << 4;
        let packet = Packet::read(&bytes, 7);
        assert_eq!((packet.bytes, packet.payload), (1500, 1428));
        assert_eq!(packet.class, Some(Class::Background));
        assert_eq!(
            (packet.flow.source, packet.flow.destination),
            (source.into(), destination.into())
        );
        assert_eq!(packet.flow.ports, (80, 0x1234));
        assert!(packet.is_ect);
        mark_congestion(&mut bytes);
        assert_eq!((bytes[0], bytes[1]), (0x60, 0b11 << 4));
        assert_eq!(Packet::read(&bytes[..39], 7).class, None);
    }

    #[test]
    fn an_acknowledgement_has_no_data_and_opens_or_closes_nothing() {
        let read = |length: usize, flags: u8| {
            let mut bytes = segment();
            bytes.truncate(length);
            bytes[33] = flags;
            Packet::read(&bytes, 0).is_ack
        };
        assert!(read(52, ACK));
        // With data, SYN, FIN and RST.
        assert!(!read(53, ACK));
        for other in [0b10, 0b1, 0b100] {
            assert!(!read(52, ACK | other));
        }
    }

    #[test]
    fn what_is_not_tcp_or_udp_is_nobodys() {
        assert_eq!(Packet::read(&[0x60; 60], 0).class, None);
        assert_eq!(Packet::read(&[], 0).payload, 0);
        let mut bytes = segment();
        bytes[9] = 1;
        let packet = Packet::read(&bytes, 0);
        assert_eq!((packet.class, packet.payload), (None, 0));
        assert_eq!(packet.flow.ports, (0, 0));
    }

    #[test]
    fn a_mark_is_congestion_experienced_and_the_checksum_holds() {
        let mut bytes = segment();
        assert_eq!(checksum(&bytes[..20]), 0);
        mark_congestion(&mut bytes);
        assert_eq!(bytes[1] & ECN, ECN);
        assert_eq!(checksum(&bytes[..20]), 0);
        // What is no packet stays as it is.
        mark_congestion(&mut []);
    }

    #[test]
    fn only_who_knows_ecn_is_marked() {
        let mut bytes = segment();
        assert!(Packet::read(&bytes, 0).mark());
        bytes[1] = 0;
        let mut packet = Packet::read(&bytes, 0);
        assert!(!packet.mark() && !packet.is_marked);
    }
}
