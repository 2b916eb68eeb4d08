//! Times what passes between some of the hosts and the coordinator, by a connection that sees it
//! too.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use async_nats::{ConnectOptions, Message, Subscriber};
use fairbat_agent::fleet::message::{HostDemand, HostGrant, all_of, demands_of};
use futures_util::StreamExt as _;

use super::SITE;
use super::hosts::name;

/// The name of its connection.
pub(super) const NAME: &str = "observer";

/// Times from a demand to the first grant that has heard it, s.
#[derive(Debug, Clone, Default)]
pub(super) struct Watch(Arc<Mutex<Vec<f64>>>);

impl Watch {
    /// Watches the hosts of these numbers.
    pub(super) async fn begin(url: &str, hosts: &[usize]) -> Self {
        let options = ConnectOptions::new()
            .name(NAME)
            .subscription_capacity(4_096);
        let client = options.connect(url).await.expect("connect to NATS");
        let watch = Self::default();
        for &host in hosts {
            let host = name(host);
            let subscribed = client.subscribe(all_of(SITE, &host)).await;
            let messages = subscribed.expect("subscribe");
            tokio::spawn(follow(messages, demands_of(SITE, &host), watch.clone()));
        }
        client.flush().await.expect("tell NATS");
        watch
    }

    /// Counts from now on.
    pub(super) fn start_anew(&self) {
        self.locked(Vec::clear);
    }

    /// What has been timed.
    pub(super) fn answers(&self) -> Vec<f64> {
        self.locked(|times| times.clone())
    }

    fn locked<R>(&self, act: impl FnOnce(&mut Vec<f64>) -> R) -> R {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn follow(mut messages: Subscriber, demands: String, watch: Watch) {
    // Demands without an answer, oldest first.
    let mut open = VecDeque::<(u64, Instant)>::new();
    while let Some(Message {
        subject, payload, ..
    }) = messages.next().await
    {
        let now = Instant::now();
        if *subject == *demands {
            let demand = HostDemand::read(&payload).expect("a demand");
            open.push_back((demand.push.seq, now));
            continue;
        }
        let heard = HostGrant::read(&payload).expect("a grant").push.seq;
        let answered = open.iter().take_while(|(seq, _)| *seq <= heard).count();
        let times = open.drain(..answered).map(|(_, told)| now - told);
        watch.locked(|all| all.extend(times.map(|time| time.as_secs_f64())));
    }
}
