//! NATS servers that are one, by JetStream's Raft.

use std::net::{IpAddr, TcpListener};

use crate::nats::Nats;

/// Starts so many at this address. They find a leader a little later.
#[must_use]
pub fn start(address: IpAddr, count: usize) -> Vec<Nats> {
    // They are free at the same time, so they differ.
    let free: Vec<_> = (0..count)
        .map(|_| TcpListener::bind((address, 0)).expect("a free port"))
        .collect();
    let url = |free: &TcpListener| format!("nats://{}", free.local_addr().expect("an address"));
    let urls: Vec<_> = free.iter().map(url).collect();
    drop(free);
    let start = |(number, url): (usize, &String)| {
        let words = [
            ("--name", format!("node-{number}")),
            ("--cluster_name", "fairbat".to_owned()),
            ("--cluster", url.clone()),
            ("--routes", urls.join(",")),
        ];
        let words = words
            .into_iter()
            .flat_map(|(flag, value)| [flag.to_owned(), value]);
        Nats::start_at(address, words.collect())
    };
    urls.iter().enumerate().map(start).collect()
}
