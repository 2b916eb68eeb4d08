//! The record as a table for the terminal and as a page of Markdown.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::programs::program::PREFIX;
use crate::programs::record::{MAX_RATIO, ProgramRecord, Record};
use crate::programs::stage::{RATE_MBIT, RTT_MS};
use crate::programs::way::Way;
use lab_run::record::Provenance;
use lab_run::table::{Table, number, or_nothing, shown};

/// Writes record and page into a directory; returns where they are. Programs that have not run
/// again keep what an earlier record says.
///
/// # Errors
/// When one cannot be written.
pub fn write_all(record: Record, directory: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    fs::create_dir_all(directory)?;
    let way = record.way();
    let record = record.after(read(way, directory)?);
    let path = file(way, directory);
    // Never half a file, however it ends.
    let unfinished = path.with_extension("json.part");
    fs::write(&unfinished, serde_json::to_vec(&record)?)?;
    fs::rename(unfinished, &path)?;
    let page = write_page(&record, directory)?;
    Ok(vec![path, page])
}

fn write_page(record: &Record, directory: &Path) -> io::Result<PathBuf> {
    let page = file(record.way(), directory).with_extension("md");
    fs::write(&page, markdown(record))?;
    Ok(page)
}

/// Makes the pages of the records that are in this directory, and returns where they are.
///
/// # Errors
/// When a record cannot be read, or a page not written.
pub fn write_pages(directory: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut pages = Vec::new();
    for way in Way::ALL {
        if let Some(record) = read(way, directory)? {
            pages.push(write_page(&record, directory)?);
        }
    }
    Ok(pages)
}

fn file(way: Way, directory: &Path) -> PathBuf {
    directory.join(format!("{}.json", way.record()))
}

fn read(way: Way, directory: &Path) -> Result<Option<Record>, Box<dyn Error>> {
    let path = file(way, directory);
    if !path.exists() {
        return Ok(None);
    }
    let wrong = |error: &dyn Error| format!("read {}: {error}", path.display());
    let bytes = fs::read(&path).map_err(|error| wrong(&error))?;
    let record = serde_json::from_slice(&bytes).map_err(|error| wrong(&error))?;
    Ok(Some(record))
}

/// The table, for a terminal.
#[must_use]
pub fn terminal(record: &Record) -> String {
    let mut text = table(record).to_string();
    for program in &record.programs {
        let wrong = program.missing.iter().chain(&program.failure);
        text.extend(wrong.map(|words| format!("\n{}: {words}", program.name)));
    }
    text
}

fn table(record: &Record) -> Table<&ProgramRecord> {
    Table::over(&record.programs)
        .column("", |program| program.name.clone())
        .column("version", |program| program.version.clone())
        .column("pairs", |program| program.pairs.len().to_string())
        .column("plain, s", |program| number(program.plain_s(), 2))
        .column("held back, s", |program| number(program.run_s(), 2))
        .column("ratio", |program| number(program.ratio(), 3))
        .column("of pairs", |program| shown(program.pair_ratios(), 3))
        .column("connections", |program| number(program.connections(), 0))
        .column("", |program| program.status())
}

/// The page.
fn markdown(record: &Record) -> String {
    let way = record.way();
    let head = [
        ("{rate}", RATE_MBIT),
        ("{rtt}", RTT_MS),
        ("{bound}", MAX_RATIO),
    ]
    .into_iter()
    .fold(way.head().to_owned(), |head, (name, value)| {
        head.replace(name, &value.to_string())
    });
    format!(
        "{head}\n<!-- Made by `lab programs` from {}.json, where every run is. -->\n\n{}{}{}{}",
        way.record(),
        verdict(record),
        table(record),
        commands(record),
        how(record)
    )
}

/// What is required, in a sentence.
fn verdict(record: &Record) -> String {
    let moving = || {
        record
            .programs
            .iter()
            .filter(|program| program.is_of_link())
    };
    let ran = || moving().filter(|program| program.missing.is_none());
    let failed = ran().filter(|program| program.failure.is_some()).count();
    let succeeded = || ran().filter(|program| program.failure.is_none());
    let within = |program: &&ProgramRecord| program.ratio().is_some_and(|it| it <= MAX_RATIO);
    let slower: Vec<_> = succeeded()
        .filter(|program| !within(program))
        .map(|program| program.name.as_str())
        .collect();
    let of_slower = match slower.len() {
        0 => String::new(),
        _ => format!(" ({})", slower.join(", ")),
    };
    format!(
        "Of {} programs {} do the same {}, {failed} fail, and {} take more than {MAX_RATIO} \
         times as long{of_slower}.\n\n",
        ran().count(),
        succeeded().count(),
        record.way().what(),
        slower.len(),
    )
}

/// The command of each program, and what is to be said of it.
fn commands(record: &Record) -> String {
    let mut text = "\n## Commands\n\n".to_owned();
    for program in &record.programs {
        let command = program.command.replace(PREFIX, "");
        let command = command.trim().replace('\n', "; ");
        text += &format!("- {}: {}. `{command}`", program.name, program.moves);
        let mut warned: Vec<_> = program.pairs.iter().flat_map(|it| &it.run.warned).collect();
        warned.sort();
        warned.dedup();
        for warning in warned {
            text += &format!("; `{warning}`");
        }
        let wrong = program.missing.iter().chain(&program.failure);
        text.extend(wrong.map(|words| format!(" **{words}**")));
        text.push('\n');
    }
    text
}

/// How it was measured; programs that were measured together are listed together.
fn how(record: &Record) -> String {
    let mut text = "\n## How\n\n".to_owned();
    let mut told: Vec<(&Provenance, Vec<&str>)> = Vec::new();
    for program in &record.programs {
        let own = &program.provenance;
        let is_same =
            |it: &&mut (&Provenance, _)| it.0.command == own.command && it.0.commit == own.commit;
        match told.iter_mut().find(is_same) {
            Some((_, names)) => names.push(&program.name),
            None => told.push((own, vec![&program.name])),
        }
    }
    let is_one = told.len() == 1;
    for (provenance, names) in told {
        text += &format!(
            "- `{}`, commit {}, begun {}. {}, {}. {}.{}\n",
            provenance.command,
            provenance.commit,
            provenance.started,
            provenance.kernel,
            provenance.machine,
            provenance.versions.join(", "),
            or_nothing((!is_one).then(|| format!(" Of it: {}.", names.join(", "))))
                .trim_start_matches(lab_run::table::NOTHING)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::record::tests::program;

    fn record() -> Record {
        let mut failed = program("wget", &[]);
        failed.failure = Some("exit status 4".to_owned());
        Record::new(
            Way::Run,
            vec![
                program("curl", &[(4.0, 4.1), (4.0, 4.1)]),
                program("slow", &[(4.0, 5.0)]),
                failed,
            ],
        )
    }

    #[test]
    fn a_page_tells_what_holds() {
        let page = markdown(&record());
        let row = "| curl | 1.0 | 2 | 4.00 | 4.10 | 1.025 | 1.025 | 2 | holds |";
        assert!(page.contains(row), "{page}");
        let sentence = "Of 3 programs 2 do the same under `fairbat run`, 1 fail, and 1 take more than \
                        1.06 times as long (slow).";
        assert!(page.contains(sentence), "{page}");
        assert!(
            page.contains("`lab programs`, commit 0123456789ab"),
            "{page}"
        );
        assert!(page.contains("exit status 4"), "{page}");
    }

    #[test]
    fn files_are_made_again_from_the_record() {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path();
        assert!(write_pages(here).unwrap().is_empty());
        write_all(record(), here).unwrap();
        let page = here.join("programs.md");
        let before = fs::read_to_string(&page).unwrap();
        fs::write(&page, "something else").unwrap();
        assert_eq!(write_pages(here).unwrap(), std::slice::from_ref(&page));
        assert_eq!(fs::read_to_string(&page).unwrap(), before);
    }
}
