//! `fairbat-agent man`: the manual pages, made from the same text as the help, and
//! that of the configuration, made from its example.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use fairbat_agent::config;

use super::args;
use super::exit::EXIT_STATUS;

/// Every key of the configuration, each with what it means.
const EXAMPLE: &str = include_str!("../../../../docs/agent.toml");

const VERSION: &str = concat!("fairbat ", env!("CARGO_PKG_VERSION"));

/// An argument that is empty, and yet there: pages are the same whenever they are
/// made.
const NO_DATE: &str = "\"\"";

/// What follows the commands in fairbat-agent(8).
const APPENDIX: [(&str, &str); 4] = [
    (
        "FILES",
        "\
/etc/fairbat/agent.toml   the configuration, see fairbat-agent.toml(5)
/var/lib/fairbat          what must survive a restart
/run/fairbat/agent.sock   where fairbat status, add, run, ... find the agent
/usr/share/doc/fairbat    how the service is set up, alert rules, a dashboard",
    ),
    (
        "ENVIRONMENT",
        "\
FAIRBAT_CONFIG            the configuration, where --config is not given
FAIRBAT_LOG               log filter: info (the default), debug, warn, ...
CREDENTIALS_DIRECTORY, STATE_DIRECTORY, RUNTIME_DIRECTORY
                          directories of the service, from systemd",
    ),
    (
        "EXAMPLES",
        "\
What the service will do, and what stands in its way:
    sudo -u fairbat fairbat-agent check
Begin, and at every start of the machine:
    sudo systemctl enable --now fairbat-agent.service
What it may write besides:
    sudo systemctl edit fairbat-agent.service",
    ),
    (
        "SEE ALSO",
        "fairbat-agent.toml(5), fairbat(1), fairbat-status(1), systemctl(1)",
    ),
];

/// Writes one file per page into `dir`, which is made if need be, or all pages to
/// standard output, where `man -l -` shows them.
///
/// # Errors
/// When a page cannot be written.
pub(crate) fn run(dir: Option<&Path>) -> io::Result<()> {
    let pages = pages()?;
    let Some(dir) = dir else {
        let mut stdout = io::stdout().lock();
        for (_, page) in pages {
            stdout.write_all(&page)?;
        }
        return stdout.flush();
    };
    let named = |path: &Path, error: &io::Error| {
        io::Error::new(error.kind(), format!("{}: {error}", path.display()))
    };
    fs::create_dir_all(dir).map_err(|error| named(dir, &error))?;
    for (name, page) in pages {
        let path = dir.join(name);
        fs::write(&path, page).map_err(|error| named(&path, &error))?;
    }
    Ok(())
}

/// The page of the agent, one for each of its commands, and that of its
/// configuration, by the names of their files.
fn pages() -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut agent = args::command().disable_help_subcommand(true);
    agent.build();
    let commands = agent
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    let mut pages = Vec::new();
    for command in std::iter::once(&agent).chain(commands) {
        let man = Man::new(command.clone())
            .section("8")
            .date(NO_DATE)
            .source(VERSION)
            .manual("System Administration");
        pages.push((man.get_filename(), of_command(&man, command)?));
    }
    pages.push(("fairbat-agent.toml.5".to_owned(), of_configuration()?));
    Ok(pages)
}

fn of_command(man: &Man, command: &clap::Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    let mut roff = Roff::default();
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
        for (heading, body) in APPENDIX {
            section(&mut roff, heading, body);
        }
    } else {
        // Its first line is the heading of the help.
        let codes = EXIT_STATUS.lines().skip(1).map(str::trim_start);
        section(
            &mut roff,
            "EXIT STATUS",
            &codes.collect::<Vec<_>>().join("\n"),
        );
    }
    roff.to_writer(&mut page)?;
    Ok(page)
}

fn of_configuration() -> io::Result<Vec<u8>> {
    let mut roff = Roff::default();
    roff.control(
        "TH",
        ["fairbat-agent.toml", "5", NO_DATE, VERSION, "File Formats"],
    );
    roff.control("SH", ["NAME"]);
    roff.text([roman(
        "fairbat-agent.toml - configuration of fairbat-agent(8)",
    )]);
    roff.control("SH", ["SYNOPSIS"]);
    roff.text([bold(config::PATH)]);
    roff.control("SH", ["DESCRIPTION"]);
    roff.text([roman(
        "A file in TOML, of which follows an example with every key. Keys that are not known \
         are refused, with their line and the key that is nearest.",
    )]);
    section(&mut roff, "EXAMPLE", EXAMPLE);
    section(
        &mut roff,
        "SEE ALSO",
        "fairbat-agent(8), systemd.time(7), systemd.exec(5)",
    );
    let mut page = Vec::new();
    roff.to_writer(&mut page)?;
    Ok(page)
}

/// Lines as they are written.
fn section(roff: &mut Roff, heading: &str, body: &str) {
    roff.control("SH", [heading]);
    roff.control("nf", []);
    for line in body.lines() {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_that_is_shown_has_a_page() {
        let names: Vec<_> = pages().unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(
            names,
            [
                "fairbat-agent.8",
                "fairbat-agent-check.8",
                "fairbat-agent-run.8",
                "fairbat-agent-gc.8",
                "fairbat-agent.toml.5",
            ]
        );
    }

    #[test]
    fn the_page_of_the_configuration_has_every_line_of_the_example() {
        let page = String::from_utf8(of_configuration().unwrap()).unwrap();
        let page = page
            .replace("\\-", "-")
            .replace("\\*(Aq", "'")
            .replace("\\&", "");
        for line in EXAMPLE.lines() {
            assert!(page.contains(line.trim_end()), "{line:?} is missing");
        }
    }

    #[test]
    fn a_page_that_cannot_be_written_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let new = dir.path().join("share/man8");
        run(Some(&new)).unwrap();
        let page = new.join("fairbat-agent.8");
        assert!(fs::read_to_string(&page).unwrap().contains("agent.toml"));
        let refused = run(Some(&page)).unwrap_err();
        assert!(refused.to_string().contains("fairbat-agent.8"), "{refused}");
    }
}
