//! What very many hosts on very many sites need, calculated from what was measured.

use super::record::{Record, Series};

/// Hosts, in thousands.
const HOSTS: f64 = 100_000.0;

const SITES: f64 = 1_000.0;

/// Candidates of a site that are enough: two of them may be lost.
const CANDIDATES: f64 = 3.0;

/// A part of the page.
///
/// # Panics
/// When there is no series in the record.
pub(super) fn markdown(record: &Record) -> String {
    let hosts_of_site = HOSTS / SITES;
    let away = |series: &&Series| (series.agents as f64 - hosts_of_site).abs();
    let sizes = || record.sizes();
    let site = sizes().min_by(|a, b| away(a).total_cmp(&away(b)));
    let site = site.expect("a series");
    let (least, most) = (
        sizes().min_by_key(|it| it.agents).expect("a series"),
        sizes().max_by_key(|it| it.agents).expect("a series"),
    );
    let of_all = |of: fn(&Series) -> f64| HOSTS * site.per_agent(of(site));
    let connection = more(most.servers_rss(), least.servers_rss()) / more_agents(most, least);
    let elections = elections(record);
    let cpu_of_message = site.servers_cpu() / site.messages_per_s();
    let mut text = format!(
        "
## {} thousand hosts on {SITES:.0} sites, on paper

Calculated from the agents of the row with {} agents, as the sites are about that large, and for
memory from the growth between {} and {} agents. Nothing of it is measured at that size.

| needed for all | |
|---|---|
| messages | {:.0} thousand/s |
| bytes | {:.0} MB/s |
| processors for NATS | {:.0} |
| memory for connections | {:.0} GB |
| each of the {SITES:.0} coordinators | {:.1} % of a processor, {:.0} MB |
",
        HOSTS / 1e3,
        site.agents,
        least.agents,
        most.agents,
        of_all(Series::messages_per_s) / 1e3,
        of_all(Series::bytes_per_s) / 1e6,
        of_all(Series::servers_cpu),
        HOSTS * connection / 1e9,
        100.0 * site.coordinator_cpu() * hosts_of_site / site.agents as f64,
        site.coordinator.rss as f64 / 1e6,
    );
    if let Some(messages) = elections {
        let all = HOSTS * messages;
        let few = CANDIDATES * SITES * messages;
        text += &format!(
            "| elections | {:.0} thousand/s with all agents as candidates, {:.1} thousand/s with {CANDIDATES:.0} of each site |\n",
            all / 1e3,
            few / 1e3
        );
    }
    text += &format!(
        "
No message passes from one site to another: each site has subjects of its own, and its own bucket
for the election. So the work can be divided by site, in clusters that know nothing of each other or
in leaf nodes. A server with one processor for it carries about {:.0} sites by its messages ({:.0} µs
of a processor for each). With a leaf node at each site, demands and grants stay there: it carries
{:.0} messages/s and {:.0} kB/s, and only elections pass through the cluster. Every agent that may
become the coordinator asks for the key again and again, so `coordinate = false` belongs on all but
about {CANDIDATES:.0} agents of a large site.
",
        SITES / of_all(Series::servers_cpu),
        1e6 * cpu_of_message,
        of_all(Series::messages_per_s) / SITES,
        of_all(Series::bytes_per_s) / SITES / 1e3,
    );
    text
}

fn more(most: u64, least: u64) -> f64 {
    most.saturating_sub(least) as f64
}

fn more_agents(most: &Series, least: &Series) -> f64 {
    more(most.agents as u64, least.agents as u64).max(1.0)
}

/// Messages of one candidate for the office, by second.
fn elections(record: &Record) -> Option<f64> {
    let all = record.series.iter().find(|series| series.are_candidates)?;
    let none = record.sizes().find(|series| series.agents == all.agents)?;
    let added = all.per_agent(all.messages_per_s()) - none.per_agent(none.messages_per_s());
    Some(added.max(0.0))
}
