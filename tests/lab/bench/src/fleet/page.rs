//! The page of what was measured.

use super::paper;
use super::record::{Record, Series};
use crate::report::verdict;

/// Longest p99 from a permit that is free and wanted to its use that is accepted, s.
const MAX_WAIT_S: f64 = 2.0;

/// A cost per agent that is as many times that of the size before still counts as linear.
const LINEAR: f64 = 1.1;

/// The page.
///
/// # Panics
/// When there is no series in the record.
#[must_use]
pub fn markdown(record: &Record) -> String {
    let first = &record.series[0];
    let mut text = format!(
        "# The lane of a site with many agents

<!-- Made by `bench fleet-scale` from fleet-scale.json. -->

Agents of one site share its lane over NATS, on one machine: three servers in a cluster with
JetStream, one `fairbat-agent` that is the coordinator, and the other agents in one process. Each
of these takes part by the agent's own code and over a connection of its own; its transfers are
simulated. A host has one or two at a time, some with a deadline and some without, each of 2 to 10
chunks that take 1 to 5 s, and a pause of up to 10 s between two. The site has {} connections in
each direction. Each size is measured for {:.0} s. *All candidates* means that every agent may
become the coordinator; otherwise only one may.

| agents | messages/s | kB/s | coordinator, % of a processor | its memory, MB | NATS, % of a processor | its memory, MB | grants/s |
|---|---|---|---|---|---|---|---|
",
        record.connections, first.seconds
    );
    for series in &record.series {
        text += &format!(
            "| {} | {:.0} | {:.0} | {:.1} | {:.1} | {:.1} | {:.0} | {:.1} |\n",
            series.name(),
            series.messages_per_s(),
            series.bytes_per_s() / 1e3,
            100.0 * series.coordinator_cpu(),
            series.coordinator.rss as f64 / 1e6,
            100.0 * series.servers_cpu(),
            series.servers_rss() as f64 / 1e6,
            series.grants_per_s(),
        );
    }
    text += "
Messages and bytes are those that clients publish and those that they get, without what passes
between the servers. NATS is all three servers together.

| agents | from a free permit to its use, ms: p50 / p99 / max | from a demand to its answer, ms: p50 / p99 / max | most permits in use, sent / received | m at the end |
|---|---|---|---|---|
";
    for series in &record.series {
        text += &format!(
            "| {} | {} | {} | {} / {} | {:.1} / {:.1} |\n",
            series.name(),
            series.waits.shown(),
            series.answers.shown(),
            series.used[0].most,
            series.used[1].most,
            series.m[0],
            series.m[1],
        );
    }
    text += &format!(
        "
A permit is free from the moment at which a host gives it back, and is used when the next host has
it. The time in between is that of a demand and a grant on their way, and of the coordinator; a
host that asks only later counts from then on. Only permits of a site whose permits were all in use
count. While some connections press, one that goes on to what is due later rests for up to 1.2 s.

A demand is answered by the first grant that has heard it. Up to {} hosts of each size are timed, by a
connection that gets their messages too and is not counted.

## Cost of an agent

| agents | messages/s | byte/s | coordinator, µs/s | coordinator, µs per message | NATS, µs/s |
|---|---|---|---|---|---|
",
        super::WATCHED
    );
    for series in &record.series {
        text += &format!(
            "| {} | {:.2} | {:.0} | {:.0} | {:.0} | {:.0} |\n",
            series.name(),
            series.per_agent(series.messages_per_s()),
            series.per_agent(series.bytes_per_s()),
            series.per_agent(1e6 * series.coordinator_cpu()),
            1e6 * series.coordinator_cpu() / series.messages_per_s(),
            series.per_agent(1e6 * series.servers_cpu()),
        );
    }
    text += &verdicts(record);
    text += &paper::markdown(record);
    let told = record.machine.told_with_tools(&record.command, record.seed);
    text += &format!("\n{told}\n");
    text
}

/// What is required, and whether it holds.
fn verdicts(record: &Record) -> String {
    let slowest = record.series.iter().map(|it| it.waits.p99);
    let slowest = slowest.fold(0.0, f64::max);
    let beyond: u64 = record
        .series
        .iter()
        .flat_map(|series| series.used)
        .map(|used| used.beyond)
        .sum();
    let growth = |of: &dyn Fn(&Series) -> f64| {
        let costs: Vec<_> = record.sizes().map(of).collect();
        let growths = costs.windows(2).map(|pair| pair[1] / pair[0]);
        growths.fold(0.0, f64::max)
    };
    let cpu = |series: &Series| series.per_agent(series.coordinator_cpu());
    let cpu_of_message = |series: &Series| series.coordinator_cpu() / series.messages_per_s();
    let messages = |series: &Series| series.per_agent(series.messages_per_s());
    let nats = |series: &Series| series.per_agent(series.servers_cpu());
    let mut text = format!(
        "
## What is required

A lane may give one permit more than m_max, to what is due before all that is in use. A cost grows
linearly with the agents if that of one agent is at most {LINEAR} times that of the size before.

| | measured | |
|---|---|---|
| a permit that is free and wanted is used within 2 s (p99, all sizes) | {slowest:.2} s | {} |
| never more permits in use than m_max and one | {beyond} times | {} |
",
        verdict(slowest < MAX_WAIT_S),
        verdict(beyond == 0),
    );
    for (what, growth) in [
        ("messages", growth(&messages)),
        ("processor time of the coordinator", growth(&cpu)),
        ("the same, of a message", growth(&cpu_of_message)),
        ("processor time of NATS", growth(&nats)),
    ] {
        text += &format!(
            "| linear: {what} | {growth:.2} times | {} |\n",
            verdict(growth <= LINEAR)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::record::{Cost, Quantiles, Traffic, Used};
    use crate::record::Machine;

    /// One whose costs grow with this power of the number of agents.
    fn series(agents: usize, are_candidates: bool, power: f64) -> Series {
        let cost = (agents as f64).powf(power);
        let traffic = Traffic {
            messages: 60 * agents as u64 * if are_candidates { 2 } else { 1 },
            bytes: 60_000 * agents as u64,
        };
        Series {
            agents,
            are_candidates,
            seconds: 60.0,
            published: traffic,
            delivered: traffic,
            coordinator: Cost {
                cpu_s: 0.006 * cost,
                rss: 20_000_000,
            },
            servers: vec![
                Cost {
                    cpu_s: 0.002 * agents as f64,
                    rss: 10_000_000 + 20_000 * agents as u64,
                };
                3
            ],
            agents_cpu_s: 1.0,
            watched: agents.min(100),
            answers: Quantiles::of((1..=100).map(|it| f64::from(it) / 1e3).collect()),
            waits: Quantiles::default(),
            used: [Used {
                grants: 60,
                most: 64,
                beyond: 0,
            }; 2],
            m: [64.0; 2],
        }
    }

    fn record(power: f64) -> Record {
        Record {
            command: "bench fleet-scale".to_owned(),
            seed: 1,
            machine: Machine::invented("nats-server 2"),
            connections: 64,
            series: [(10, false), (100, false), (1_000, false), (1_000, true)]
                .map(|(agents, are_candidates)| series(agents, are_candidates, power))
                .into(),
        }
    }

    #[test]
    fn a_page_says_what_holds() {
        let page = markdown(&record(1.0));
        assert!(!page.contains("does not hold"), "{page}");
        assert!(page.contains("| 10 | 20 | 20 | 0.1 | 20.0 |"), "{page}");
        assert!(page.contains("| 10 | \u{2013} | 50 / 99 / 100 |"), "{page}");
        let page = markdown(&record(1.5));
        let line = "| linear: processor time of the coordinator | 3.16 times | **does not hold** |";
        assert!(page.contains(line), "{page}");
    }

    #[test]
    fn the_paper_multiplies_what_was_measured() {
        let page = paper::markdown(&record(1.0));
        // 2 messages and 2 kB of an agent in a second, 100 µs/s of NATS, 60 kB a connection.
        assert!(page.contains("| messages | 200 thousand/s |"), "{page}");
        assert!(page.contains("| bytes | 200 MB/s |"), "{page}");
        assert!(page.contains("| processors for NATS | 10 |"), "{page}");
        assert!(page.contains("| memory for connections | 6 GB |"), "{page}");
        assert!(page.contains("| 200 thousand/s with all agents"), "{page}");
    }
}
