//! What a link needs to know of a packet: whose it is and how much of it is
//! payload. IPv4 with TCP or UDP; anything else is nobody's.

use crate::host::Class;

/// A packet, to a bottleneck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// Length with all headers, bytes.
    pub bytes: usize,
    /// Payload of TCP or UDP, bytes.
    pub payload: usize,
    /// Whose it is.
    pub class: Option<Class>,
    /// Ports of source and destination.
    pub ports: (u16, u16),
}

impl Packet {
    /// Reads the headers of an IP packet.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Self {
        let nobody = Self {
            bytes: bytes.len(),
            payload: 0,
            class: None,
            ports: (0, 0),
        };
        if bytes.len() < 20 || bytes[0] >> 4 != 4 {
            return nobody;
        }
        let ip_header = usize::from(bytes[0] & 0x0f) * 4;
        let transport_header = match bytes[9] {
            6 => bytes
                .get(ip_header + 12)
                .map_or(0, |offset| usize::from(offset >> 4) * 4),
            17 => 8,
            _ => return nobody,
        };
        let port = |at: usize| match bytes.get(at..at + 2) {
            Some(&[high, low]) => u16::from_be_bytes([high, low]),
            _ => 0,
        };
        // The last octet of the destination; the source's is the same.
        let octet = bytes[19];
        Self {
            payload: bytes.len().saturating_sub(ip_header + transport_header),
            class: Class::ALL.into_iter().find(|class| class.octet() == octet),
            ports: (port(ip_header), port(ip_header + 2)),
            ..nobody
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tcp_segment_is_its_payload_and_its_class() {
        let mut bytes = vec![0; 1500];
        bytes[0] = 0x45;
        bytes[9] = 6;
        bytes[19] = 2;
        bytes[20..24].copy_from_slice(&[0, 80, 0x12, 0x34]);
        // 32 bytes of TCP header, with timestamps.
        bytes[32] = 8 << 4;
        let packet = Packet::read(&bytes);
        assert_eq!((packet.bytes, packet.payload), (1500, 1448));
        assert_eq!(packet.class, Some(Class::Background));
        assert_eq!(packet.ports, (80, 0x1234));
    }

    #[test]
    fn what_is_not_ipv4_is_nobodys() {
        assert_eq!(Packet::read(&[0x60; 60]).class, None);
        assert_eq!(Packet::read(&[]).payload, 0);
        assert_eq!(Packet::read(&[0x4f; 20]).class, None);
    }
}
