//! The benchmark as a page of Markdown.

use super::record::{Medium, Record, Series};

/// Largest share of curl's processor time that is accepted.
const CPU_RATIO: f64 = 1.2;

/// Largest resident set that is accepted, MB.
const PEAK_RSS: f64 = 64.0;

/// The page.
///
/// # Panics
/// When a series is missing in the record.
#[must_use]
pub fn markdown(record: &Record) -> String {
    let size = record.speed[0].bytes as f64 / 1e9;
    let rounds = record.rounds;
    let mut text = format!(
        "# Speed and memory

<!-- Made by `make bench` from speed.json, where every sample is. -->

A file of {size:.2} GB from nginx on the same machine, over loopback. The tools take turns; each
figure is the median of {rounds} runs (least to most). MB and GB are powers of ten; processor time is
that of the tool, in user mode and in the kernel; memory is its largest resident set.

![Speed, processor time and memory of each run](speed.svg)

What the congestion controls of `fairbat setup` cost the machine that sends is on [a page of its
own](sender-cost.md).
"
    );
    let tables = [
        (Medium::Memory, "To memory (tmpfs)", "curl", ""),
        (
            Medium::Disk,
            "To the disk",
            "curl && sync",
            "\n`fairbat get` returns when the file would survive a power cut. The others do that only when
followed by `sync`, so this is what it is compared with.\n",
        ),
    ];
    for (medium, title, rival, remark) in tables {
        text.push_str(&format!("\n## {title}\n{remark}\n"));
        text.push_str(&table(record, medium, rival));
    }
    text.push_str(&starting(record));
    text.push_str(&verdicts(record));
    text.push_str(&how(record));
    text
}

fn table(record: &Record, medium: Medium, rival: &str) -> String {
    let mut text = format!(
        "| | MB/s | times {rival} | CPU s per GB | times {rival} | peak memory, MB |\n\
         |---|---|---|---|---|---|\n"
    );
    let base = find(record, medium, rival);
    for series in record.speed.iter().filter(|series| series.medium == medium) {
        let (speed, cpu) = (series.throughput(), series.cpu_per_gb());
        text.push_str(&format!(
            "| {} | {} | {:.2} | {} | {:.2} | {} |\n",
            series.tool,
            speed.shown(0),
            speed.median() / base.throughput().median(),
            cpu.shown(2),
            cpu.median() / base.cpu_per_gb().median(),
            series.peak_rss().shown(1),
        ));
    }
    text
}

fn starting(record: &Record) -> String {
    let mut text = "
## Memory while a large file starts

Planned, begun, and stopped after five seconds at a limited rate:

| size of the file | peak memory, MB |
|---|---|
"
    .to_owned();
    for series in &record.memory {
        let size = series.bytes as f64 / 1e9;
        text.push_str(&format!("| {size} GB | {} |\n", series.peak_rss().shown(1)));
    }
    text
}

/// What a page says of something that is required.
pub(super) fn verdict(holds: bool) -> &'static str {
    if holds { "holds" } else { "**does not hold**" }
}

/// What is required of `fairbat`, and whether it holds.
fn verdicts(record: &Record) -> String {
    let ours = find(record, Medium::Memory, "fairbat get");
    let curl = find(record, Medium::Memory, "curl");
    let faster = ours.throughput().median() / curl.throughput().median();
    let dearer = ours.cpu_per_gb().median() / curl.cpu_per_gb().median();
    let all = record.speed.iter().chain(&record.memory);
    let largest = all
        .filter(|series| series.tool == ours.tool)
        .map(|series| series.peak_rss().max())
        .fold(0.0, f64::max);
    let growth = record.memory[1].peak_rss().median() / record.memory[0].peak_rss().median();
    let rows = [
        (
            "throughput at least curl's (memory)",
            format!("{faster:.2} times"),
            faster >= 1.0,
        ),
        (
            "processor time at most 1.2 times curl's (memory)",
            format!("{dearer:.2} times"),
            dearer <= CPU_RATIO,
        ),
        (
            "peak memory under 64 MB, every run",
            format!("{largest:.1} MB"),
            largest < PEAK_RSS,
        ),
        (
            "no more memory for 1 TB than for 1 GB (within 5 %)",
            format!("{growth:.3} times"),
            growth <= 1.05,
        ),
    ];
    let mut text = "\n## What is required\n\n| | measured | |\n|---|---|---|\n".to_owned();
    for (required, measured, holds) in rows {
        let verdict = verdict(holds);
        text.push_str(&format!("| {required} | {measured} | {verdict} |\n"));
    }
    text
}

fn how(record: &Record) -> String {
    let machine = &record.machine;
    let mut text = format!(
        "
## How

{}; disk: {}; congestion control:
{}.

",
        machine.told(&record.command, record.seed),
        machine.disk,
        machine.congestion_control,
    );
    for version in &machine.versions {
        text.push_str(&format!("- {version}\n"));
    }
    text.push_str("\nOne nginx process, `sendfile on`, the file in memory. The commands:\n\n");
    let mut commands: Vec<&str> = Vec::new();
    for series in record.speed.iter().chain(&record.memory) {
        if !commands.contains(&series.command.as_str()) {
            commands.push(&series.command);
        }
    }
    for command in commands {
        text.push_str(&format!("    {command}\n"));
    }
    text
}

fn find<'a>(record: &'a Record, medium: Medium, tool: &str) -> &'a Series {
    let found = record
        .speed
        .iter()
        .find(|series| series.medium == medium && series.tool == tool);
    found.unwrap_or_else(|| panic!("no {tool} on {medium:?} in the record"))
}
