//! Manual pages, completion scripts and the text below `--help`, for a command
//! line that clap defines. Both commands of FAIRBAT use it. Feature `manual`.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use clap::Command;
pub use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

/// The version in the footer of each page.
const VERSION: &str = concat!("fairbat ", env!("CARGO_PKG_VERSION"));

/// An empty but present date, so that a page does not depend on the day of its build.
const NO_DATE: &str = "\"\"";

/// A titled block of text below the flags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The title, such as `Examples`.
    pub heading: &'static str,
    /// The lines.
    pub body: Cow<'static, str>,
    /// Whether a page keeps the line breaks of the body.
    keeps_lines: bool,
}

impl Section {
    /// A block of lines to show as they are: examples and tables.
    pub fn lines(heading: &'static str, body: impl Into<Cow<'static, str>>) -> Self {
        Self {
            heading,
            body: body.into(),
            keeps_lines: true,
        }
    }

    /// A paragraph, which a page may break anywhere.
    pub fn paragraph(heading: &'static str, body: impl Into<Cow<'static, str>>) -> Self {
        Self {
            keeps_lines: false,
            ..Self::lines(heading, body)
        }
    }
}

/// The sections as text below the help of a command.
#[must_use]
pub fn help_text(sections: &[Section]) -> String {
    let mut text = String::new();
    for section in sections {
        if !text.is_empty() {
            text.push('\n');
        }
        let _ = writeln!(text, "{}:", section.heading);
        for line in section.body.lines() {
            let _ = writeln!(text, "  {line}");
        }
    }
    text
}

/// One manual page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The name of its file, such as `fairbat-get.1`.
    pub file_name: String,
    /// The page in roff.
    pub roff: Vec<u8>,
}

impl Page {
    /// A page that describes a file. Its first section is the name with a summary.
    #[must_use]
    pub fn of_file(name: &str, volume: &str, title: &str, sections: &[Section]) -> Self {
        let mut roff = Roff::default();
        roff.control("TH", [name, volume, NO_DATE, VERSION, title]);
        add_sections(&mut roff, sections);
        Self {
            file_name: format!("{name}.{volume}"),
            roff: roff.render().into_bytes(),
        }
    }
}

/// A page that describes a command, up to its appendix.
fn render(man: &Man, command: &Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    Ok(page)
}

fn add_sections(roff: &mut Roff, sections: &[Section]) {
    for section in sections {
        roff.control("SH", [section.heading.to_uppercase().as_str()]);
        if section.keeps_lines {
            roff.control("nf", []);
        }
        for line in section.body.lines() {
            roff.text([roman(line)]);
        }
        if section.keeps_lines {
            roff.control("fi", []);
        }
    }
}

/// The page of a command and one page for each of its visible subcommands.
///
/// `volume` is the section of the manual, `1` or `8`, and `title` its title. `appendix`
/// returns the last sections for the command of that name.
///
/// # Errors
/// A page cannot be rendered.
pub fn pages(
    command: Command,
    volume: &str,
    title: &str,
    appendix: impl Fn(&str) -> Vec<Section>,
) -> io::Result<Vec<Page>> {
    let mut whole = command.disable_help_subcommand(true);
    whole.build();
    let subcommands = whole.get_subcommands().filter(|one| !one.is_hide_set());
    let page = |command: &Command| {
        let man = Man::new(command.clone())
            .section(volume)
            .date(NO_DATE)
            .source(VERSION)
            .manual(title);
        let mut roff = render(&man, command)?;
        let mut rest = Roff::default();
        add_sections(&mut rest, &appendix(command.get_name()));
        rest.to_writer(&mut roff)?;
        let file_name = man.get_filename();
        Ok(Page { file_name, roff })
    };
    std::iter::once(&whole)
        .chain(subcommands)
        .map(page)
        .collect()
}

/// Writes one file per page into `dir`, and makes that directory if it is missing.
/// Without `dir`, writes all pages to standard output, for `man -l -`.
///
/// # Errors
/// The directory, a file or standard output cannot be written. The error names the
/// path.
pub fn write_pages(pages: &[Page], dir: Option<&Path>) -> io::Result<()> {
    let Some(dir) = dir else {
        let mut stdout = io::stdout().lock();
        for page in pages {
            stdout.write_all(&page.roff)?;
        }
        return stdout.flush();
    };
    let with_path = |path: &Path, error: &io::Error| {
        io::Error::new(error.kind(), format!("{}: {error}", path.display()))
    };
    fs::create_dir_all(dir).map_err(|error| with_path(dir, &error))?;
    for page in pages {
        let path = dir.join(&page.file_name);
        fs::write(&path, &page.roff).map_err(|error| with_path(&path, &error))?;
    }
    Ok(())
}

/// Writes the completion script of a command to standard output.
///
/// # Errors
/// Standard output cannot be written.
pub fn write_completions(command: &mut Command, shell: Shell) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(&completions(command, shell))?;
    stdout.flush()
}

/// The completion script of a command. It is made in memory, because the generator
/// panics when a write fails.
#[must_use]
pub fn completions(command: &mut Command, shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    let name = command.get_name().to_owned();
    clap_complete::generate(shell, command, name, &mut script);
    script
}
