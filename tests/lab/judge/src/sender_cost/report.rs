//! The record as a page of Markdown.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use crate::sender_cost::{NAME, Packets, Record, Summary};
use crate::verdict::Verdict;
use lab_run::contender::Contender;
use lab_run::statistics::{Quartiles, median};
use lab_run::table::{Table, or_nothing};

/// Processor time of ours that is accepted, times Reno's.
const MAX_RATIO: f64 = 1.05;

/// Share of the machine's processor time that others may have on a quiet machine:
/// what the kernel does in nobody's name is a tenth.
const MAX_OTHERS: f64 = 0.25;

/// Writes record and page into a directory; returns where they are.
///
/// # Errors
/// When one cannot be written.
pub fn write_all(record: &Record, directory: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    fs::create_dir_all(directory)?;
    let path = directory.join(format!("{NAME}.json"));
    // Never half a file, however it ends.
    let unfinished = path.with_extension("json.part");
    fs::write(&unfinished, serde_json::to_vec(record)?)?;
    fs::rename(unfinished, &path)?;
    let page = write_page(directory)?;
    Ok([path].into_iter().chain(page).collect())
}

/// Makes the page of a record that is in this directory, and returns where it
/// is; `None` if there is no record.
///
/// # Errors
/// When the one cannot be read, or the other written.
pub fn write_page(directory: &Path) -> Result<Option<PathBuf>, Box<dyn Error>> {
    let path = directory.join(format!("{NAME}.json"));
    if !path.exists() {
        return Ok(None);
    }
    let wrong = |error: &dyn Error| format!("read {}: {error}", path.display());
    let bytes = fs::read(&path).map_err(|error| wrong(&error))?;
    let record: Record = serde_json::from_slice(&bytes).map_err(|error| wrong(&error))?;
    let page = path.with_extension("md");
    fs::write(&page, markdown(&record))?;
    Ok(Some(page))
}

/// The page.
fn markdown(record: &Record) -> String {
    let head = format!(
        include_str!("../text/sender-cost-head.md"),
        name = NAME,
        block = record.block >> 10,
        buffer = record.buffer >> 10,
        rounds = record.rounds,
    );
    let sections = Packets::ALL.map(|packets| section(record, packets));
    format!(
        "{head}{}{}{}",
        sections.concat(),
        verdicts(record),
        how(record)
    )
}

/// Figures of a row: their name, to how many digits they are shown, and where they are.
type Column = (&'static str, usize, fn(&Summary) -> Option<Quartiles>);

const TABLE: [Column; 10] = [
    ("machine, CPU s", 3, |row| row.machine),
    ("times Reno", 3, |row| row.machine_ratio),
    ("both ends, CPU s", 3, |row| row.threads),
    ("times Reno", 3, |row| row.threads_ratio),
    ("GB/s", 2, |row| row.goodput),
    ("times Reno", 2, |row| row.goodput_ratio),
    ("packets", 0, |row| row.packets_per_gb),
    ("acknowledgements", 0, |row| row.acknowledgements_per_gb),
    ("context switches", 0, |row| row.switches_per_gb),
    ("sent again", 0, |row| row.repeated_per_gb),
];

fn section(record: &Record, packets: Packets) -> String {
    let bytes = record.runs.iter().filter(|run| run.packets == packets);
    let bytes = bytes.map(|run| run.transfer.bytes).max().unwrap_or(0);
    let words = match packets {
        Packets::Large => "As any loopback has them.",
        Packets::Small => {
            "As on an Ethernet whose card does nothing for TCP: an acknowledgement for two or three, so \
             that the law is\nasked as often as it can be. Nothing is required of this."
        }
    };
    let rows = record.summary.iter().filter(|row| row.packets == packets);
    let table = Table::over(rows)
        .column("", |row| title_of(row).to_owned())
        .column("w", |row| or_nothing(row.weight))
        .columns(
            TABLE,
            |(name, ..)| (*name).to_owned(),
            |row, (_, digits, figure)| shown(figure(row), *digits),
        );
    let (title, gb) = (packets.title(), bytes as f64 / 1e9);
    format!("\n## {title}\n\n{words} {gb} GB each time.\n\n{table}")
}

fn verdicts(record: &Record) -> String {
    let rows = record.summary.iter();
    let rows = rows.filter(|row| row.packets == Packets::Large && row.weight.is_some());
    let table = Table::over(rows)
        .column("", |row| title_of(row).to_owned())
        .column("w", |row| or_nothing(row.weight))
        .column("measured", |row| shown(row.machine_ratio, 3))
        .column("", |row| {
            let holds = row.machine_ratio.map(|ratio| ratio.median <= MAX_RATIO);
            Verdict::from(holds).words()
        });
    format!(
        "\n## What is required\n\n\
         Over loopback, of the machine, at most {MAX_RATIO} times Reno's processor time for each GB:\n\n\
         {table}"
    )
}

fn how(record: &Record) -> String {
    let provenance = &record.provenance;
    let transfers = || record.runs.iter().map(|run| &run.transfer);
    let others = transfers().map(|it| 1.0 - it.threads_s() / it.machine_s);
    let others: Vec<_> = others.filter(|share| share.is_finite()).collect();
    let disturbed = others.iter().filter(|&&share| share > MAX_OTHERS).count();
    let stolen = transfers().map(|it| it.stolen_s / it.elapsed_s);
    let mut text = format!(
        "\n## How\n\n\
         `{}`, commit {}, begun {}. {}, {}. Usually {:.0} % of the machine's processor time was not the \
         two threads'; in {disturbed} of {} transfers it was more than {:.0} %: something else ran. Of a \
         virtual machine, its host took at most {:.1} % of a core for others.{}\n\n",
        provenance.command,
        provenance.commit,
        provenance.started,
        provenance.kernel,
        provenance.machine,
        100.0 * median(&others).unwrap_or(0.0),
        others.len(),
        100.0 * MAX_OTHERS,
        100.0 * stolen.fold(0.0, f64::max),
        if disturbed > others.len() / 10 {
            " **The machine was not quiet: these figures mean little.**"
        } else {
            ""
        }
    );
    let versions = provenance.versions.iter();
    text.extend(versions.map(|version| format!("- {version}\n")));
    text
}

/// A congestion control, as people call it.
fn title_of(row: &Summary) -> &str {
    let title = row.contender.parse().map_or("", Contender::title);
    match title.strip_prefix("sender, ") {
        Some(title) => title,
        None => &row.contender,
    }
}

/// The median and, in parentheses, the quartiles.
fn shown(quartiles: Option<Quartiles>, digits: usize) -> String {
    or_nothing(quartiles.map(|it| {
        let (lower, upper) = (it.lower, it.upper);
        format!(
            "{:.digits$} ({lower:.digits$}\u{2013}{upper:.digits$})",
            it.median
        )
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sender_cost::record::tests::record;

    fn line<'a>(page: &'a str, start: &str) -> &'a str {
        let found = page.lines().rfind(|line| line.starts_with(start));
        found.unwrap_or_else(|| panic!("no line {start:?} in\n{page}"))
    }

    #[test]
    fn a_page_tells_what_holds() {
        let page = markdown(&record(&[0.2, 0.208, 0.2, 0.204, 0.2]));
        let row = "| Vegas | 1 | 1.030 (1.025\u{2013}1.035) | holds |";
        assert_eq!(line(&page, "| Vegas | 1 "), row);
        let row = "| CDG | 1 | \u{2013} | **not measured** |";
        assert_eq!(line(&page, "| CDG | 1 "), row);
        let page = markdown(&record(&[0.2, 0.22, 0.2, 0.206, 0.2]));
        let row = line(&page, "| Vegas | 1 ");
        assert!(row.ends_with("| **does not hold** |"), "{row}");
        assert!(page.contains("`lab sender-cost`, commit 0123456789ab"));
        assert!(page.contains("in 0 of 5 transfers"), "{page}");
    }

    #[test]
    fn a_page_tells_that_something_else_ran() {
        let mut record = record(&[0.2; 9]);
        assert!(!markdown(&record).contains("not quiet"));
        // Twice as much as the two threads had.
        record.runs[3].transfer.machine_s *= 2.0;
        let page = markdown(&record);
        assert!(page.contains("in 1 of 9 transfers"), "{page}");
        assert!(page.contains("The machine was not quiet"), "{page}");
    }

    #[test]
    fn a_page_has_reno_and_how_far_it_differs_from_itself() {
        let page = markdown(&record(&[0.2, 0.3, 0.21, 0.3, 0.2]));
        let row = page
            .lines()
            .find(|line| line.starts_with("| kernel's Reno | \u{2013} | "));
        let row = row.expect("a row");
        assert!(row.contains("| 1.050 (1.050\u{2013}1.050) |"), "{row}");
        assert!(row.contains("| 20000 (20000\u{2013}20000) |"), "{row}");
    }

    #[test]
    fn files_are_made_again_from_the_record() {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path();
        assert_eq!(write_page(here).unwrap(), None);
        let written = write_all(&record(&[0.25, 0.25, 0.25]), here).unwrap();
        let page = here.join("sender-cost.md");
        assert_eq!(written, [here.join("sender-cost.json"), page.clone()]);
        let before = fs::read_to_string(&page).unwrap();
        fs::write(&page, "something else").unwrap();
        assert_eq!(write_page(here).unwrap(), Some(page.clone()));
        assert_eq!(fs::read_to_string(&page).unwrap(), before);
        fs::write(here.join("sender-cost.json"), "{").unwrap();
        let error = write_page(here).unwrap_err().to_string();
        assert!(error.contains("sender-cost.json: "), "{error}");
    }
}
