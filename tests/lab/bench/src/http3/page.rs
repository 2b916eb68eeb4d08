//! The page of what was measured.

use super::record::{Case, Cost, Record, Run, Series, Streams, Used};
use crate::record::Spread;
use crate::report::verdict;

/// How much later small files may be done over HTTP/3 when a large one is under way.
const MAX_LATER: f64 = 1.2;

/// The page.
///
/// # Panics
/// When a case is missing in the record.
#[must_use]
pub fn markdown(record: &Record) -> String {
    let mut text = "# HTTP/3: many files to one host, and processor time

<!-- Made by `bench http3` from http3-streams.json, where every sample is. -->
"
    .to_owned();
    text += &streams(&record.streams);
    text += &cost(&record.cost);
    let told = record.machine.told_with_tools(&record.command, record.seed);
    text += &format!("\n{told}\n");
    text
}

fn streams(streams: &Streams) -> String {
    let mut text = format!(
        "
## Many files from one host

`fairbat get` has a list of {} files of {:.0} kB, each due in {}, from `fairbat serve`. With the large
file, the list begins with one of {:.0} MB that is due in {}, and the run ends when the small ones
are done. Server and client are in network namespaces, with a link of {} and a queue of 100 ms between
them. Nobody has changed the files for seconds, so they can be continued. Each figure is the median
of {} (least to most); p50 and p95 are of the times from the start of the run until a small file was
done. *Connections* are those with requests in the log of the server. *Link* is what had come over the
link when the last small file was done.

| | p50, s | p95, s | connections | tries again | link, MB |
|---|---|---|---|---|---|
",
        streams.files,
        streams.small_bytes as f64 / 1e3,
        streams.small_deadline,
        streams.large_bytes as f64 / 1e6,
        streams.large_deadline,
        streams.rate,
        runs(streams.cases[0].runs.len()),
    );
    for case in &streams.cases {
        let shown =
            |digits, of: &dyn Fn(&Run) -> f64| Spread::of(&case.runs, |it| of(it)).shown(digits);
        text += &format!(
            "| {}{} | {} | {} | {} | {} | {} |\n",
            protocol(case.http3),
            if case.with_large {
                ", with the large file"
            } else {
                ""
            },
            shown(2, &|run| run.quantile(0.5)),
            shown(2, &|run| run.quantile(0.95)),
            shown(0, &|run| run.connections as f64),
            shown(0, &|run| run.retries as f64),
            shown(1, &|run| run.link_bytes as f64 / 1e6),
        );
    }
    let later = |http3| {
        let p95 = |with_large| {
            let case = find(streams, http3, with_large);
            Spread::of(&case.runs, |run| run.quantile(0.95)).median()
        };
        p95(true) / p95(false)
    };
    text += &format!(
        "
- Over HTTP/3, the large file makes the p95 {:.2} times as long; at most {MAX_LATER}: {}.
- Over HTTP/1.1, it makes it {:.2} times as long.
- Over HTTP/3, all files of a run come over one connection: {}.
",
        later(true),
        verdict(later(true) <= MAX_LATER),
        later(false),
        verdict(is_one_connection(streams)),
    );
    text
}

/// Whether each run over HTTP/3 had a single one.
fn is_one_connection(streams: &Streams) -> bool {
    let cases = streams.cases.iter().filter(|case| case.http3);
    cases
        .flat_map(|case| &case.runs)
        .all(|run| run.connections == 1)
}

fn find(streams: &Streams, http3: bool, with_large: bool) -> &Case {
    let mut cases = streams.cases.iter();
    let found = cases.find(|case| case.http3 == http3 && case.with_large == with_large);
    found.unwrap_or_else(|| panic!("no case of {}, {with_large}", protocol(http3)))
}

fn protocol(http3: bool) -> &'static str {
    if http3 { "HTTP/3" } else { "HTTP/1.1" }
}

fn runs(count: usize) -> String {
    match count {
        1 => "one run".to_owned(),
        count => format!("{count} runs"),
    }
}

fn cost(cost: &Cost) -> String {
    let per_gb = |series: &Series, of: &dyn Fn(&Used) -> f64| {
        Spread::of(&series.samples, |used| of(used) / (cost.bytes as f64 / 1e9))
    };
    let mut text = format!(
        "
## Processor time

A file of {:.2} GB over loopback, from memory to memory, with TLS. The commands take turns; each figure is
the median of {} (least to most). Processor time is in s per GB (10^9 bytes), in user mode and in the
kernel; *times curl* compares that of the clients.

| | protocol | server | MB/s | client | user mode | times curl | server |
|---|---|---|---|---|---|---|---|
",
        cost.bytes as f64 / 1e9,
        runs(cost.rounds as usize)
    );
    let curl = cost.series.first().filter(|_| cost.has_curl);
    let curl = curl.map(|series| per_gb(series, &Used::client_s).median());
    for series in &cost.series {
        let client = per_gb(series, &Used::client_s);
        let times = curl.map(|curl| format!("{:.2}", client.median() / curl));
        let is_served_by_us = series.samples.iter().all(|used| used.server_s.is_some());
        let server = is_served_by_us
            .then(|| per_gb(series, &|used| used.server_s.unwrap_or_default()).shown(2));
        text += &format!(
            "| `{}` | {} | {} | {} | {} | {} | {} | {} |\n",
            series.command,
            series.protocol,
            series.server,
            Spread::of(&series.samples, |used| cost.bytes as f64
                / 1e6
                / used.elapsed_s)
            .shown(0),
            client.shown(2),
            per_gb(series, &|used| used.user_s).shown(2),
            times.unwrap_or_default(),
            server.unwrap_or_default(),
        );
    }
    text += "
Without `--weight 1`, `fairbat get` yields. Nobody else is on loopback, so this is what looking for
others costs. `bench bare-quic` is what quinn's own example client is: quinn as it comes, one stream, no HTTP.
";
    if !cost.has_curl {
        text += "This curl does not speak HTTP/2, so it was not measured.\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Machine;

    fn case(http3: bool, with_large: bool, seconds: f64, connections: usize) -> Case {
        let run = Run {
            done_s: vec![seconds / 2.0, seconds],
            connections,
            retries: 0,
            link_bytes: 20_000_000,
        };
        Case {
            http3,
            with_large,
            runs: vec![run; 3],
        }
    }

    fn series(command: &str, seconds: f64, server_s: Option<f64>) -> Series {
        let used = Used {
            elapsed_s: 2.0,
            user_s: seconds / 2.0,
            system_s: seconds / 2.0,
            server_s,
        };
        Series {
            command: command.to_owned(),
            server: "Caddy".to_owned(),
            protocol: "HTTP/3".to_owned(),
            samples: vec![used; 5],
        }
    }

    fn record() -> Record {
        Record {
            command: "bench http3".to_owned(),
            seed: 1,
            machine: Machine::invented("curl 8"),
            streams: Streams {
                rate: "50mbit".to_owned(),
                files: 2,
                small_bytes: 100_000,
                small_deadline: "60s".to_owned(),
                large_bytes: 500_000_000,
                large_deadline: "20m".to_owned(),
                cases: vec![
                    case(true, false, 4.0, 1),
                    case(true, true, 4.4, 1),
                    case(false, false, 4.0, 5),
                    case(false, true, 8.0, 5),
                ],
            },
            cost: Cost {
                bytes: 2_000_000_000,
                rounds: 5,
                has_curl: true,
                series: vec![series("curl", 1.0, None), series("fairbat", 3.0, Some(4.0))],
            },
        }
    }

    #[test]
    fn a_page_says_what_holds() {
        let page = markdown(&record());
        for line in [
            "the p95 1.10 times as long; at most 1.2: holds",
            "it makes it 2.00 times as long",
            "come over one connection: holds",
            "| `fairbat` | HTTP/3 | Caddy | 1000 (1000\u{2013}1000) | 1.50 (1.50\u{2013}1.50) | \
             0.75 (0.75\u{2013}0.75) | 3.00 | 2.00 (2.00\u{2013}2.00) |",
        ] {
            assert!(page.contains(line), "no {line:?} in {page}");
        }
        let mut worse = record();
        worse.streams.cases[1] = case(true, true, 5.0, 2);
        worse.cost.has_curl = false;
        let page = markdown(&worse);
        for line in [
            "the p95 1.25 times as long; at most 1.2: **does not hold**",
            "come over one connection: **does not hold**",
            "This curl does not speak HTTP/2",
        ] {
            assert!(page.contains(line), "no {line:?} in {page}");
        }
    }
}
