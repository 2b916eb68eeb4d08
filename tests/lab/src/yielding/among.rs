//! What contenders got beside each other. Each has a server of its own, so that
//! it is known by the port of the sender. Knows the connections that a link saw.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::record::Connection;
use crate::statistics::jain;

/// Payload of each contender in the whole seconds of a span, bytes, in the order
/// in which they were first seen.
fn shares(connections: &[Connection], span: &Range<f64>) -> Vec<f64> {
    let mut servers: BTreeMap<u16, (u64, f64)> = BTreeMap::new();
    for connection in connections {
        let seconds = (connection.from_s..).zip(&connection.payload);
        let within = seconds.filter(|(second, _)| span.contains(&(*second as f64)));
        let bytes: f64 = within.map(|(_, &bytes)| bytes as f64).sum();
        let server = servers.entry(connection.ports.0);
        let server = server.or_insert((connection.from_s, 0.0));
        server.0 = server.0.min(connection.from_s);
        server.1 += bytes;
    }
    let mut all: Vec<_> = servers.into_values().collect();
    all.sort_by_key(|(from, _)| *from);
    all.into_iter().map(|(_, bytes)| bytes).collect()
}

/// Jain's index of what they got in a span; `None` with fewer than two.
pub(crate) fn fairness(connections: &[Connection], span: &Range<f64>) -> Option<f64> {
    let shares = shares(connections, span);
    if shares.len() < 2 {
        return None;
    }
    jain(&shares)
}

/// What the last to come got of what all of them got in a span, 0 to 1; `None`
/// with fewer than two, or when nobody got anything.
pub(super) fn share_of_last(connections: &[Connection], span: &Range<f64>) -> Option<f64> {
    let shares = shares(connections, span);
    let all: f64 = shares.iter().sum();
    let last = shares.last().filter(|_| shares.len() > 1 && all > 0.0)?;
    Some(last / all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(server: u16, from_s: u64, payload: &[u64]) -> Connection {
        Connection {
            ports: (server, 1),
            from_s,
            payload: payload.to_vec(),
        }
    }

    #[test]
    fn contenders_share_more_or_less_evenly() {
        // Of the span from 4 s: 3 and 1, whatever the connections.
        let all = [
            connection(80, 3, &[9, 1, 1]),
            connection(81, 5, &[1]),
            connection(80, 8, &[1]),
        ];
        assert_eq!(fairness(&all, &(4.0..10.0)), jain(&[3.0, 1.0]));
        assert_eq!(fairness(&all[..1], &(4.0..10.0)), None);
    }

    #[test]
    fn the_last_to_come_is_known_by_its_first_packet() {
        let all = [
            connection(80, 7, &[1, 1]),
            connection(90, 2, &[5, 5, 5, 5, 5, 5, 6]),
            connection(80, 9, &[1, 1]),
        ];
        assert_eq!(share_of_last(&all, &(8.0..12.0)), Some(3.0 / 9.0));
        assert_eq!(share_of_last(&all, &(20.0..30.0)), None);
        assert_eq!(share_of_last(&all[..1], &(0.0..30.0)), None);
    }
}
