//! `fairbat man`: the manual pages, made from the same text as the help.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::args::{self, appendix};

/// Writes one file per page into `dir`, which is made if need be, or all pages
/// to standard output, where `man -l -` shows them.
///
/// # Errors
/// When a page cannot be written.
pub(crate) fn run(dir: Option<&Path>) -> io::Result<()> {
    let Some(dir) = dir else {
        let mut stdout = BufWriter::new(io::stdout().lock());
        for page in pages() {
            page.render(&mut stdout)?;
        }
        return stdout.flush();
    };
    let named = |path: &Path, error: &io::Error| {
        io::Error::new(error.kind(), format!("{}: {error}", path.display()))
    };
    std::fs::create_dir_all(dir).map_err(|error| named(dir, &error))?;
    for page in pages() {
        let path = dir.join(page.man.get_filename());
        let in_path = |error: io::Error| named(&path, &error);
        let mut file = BufWriter::new(File::create(&path).map_err(in_path)?);
        page.render(&mut file).map_err(in_path)?;
        file.flush().map_err(in_path)?;
    }
    Ok(())
}

/// One manual page.
struct Page {
    man: Man,
    has_commands: bool,
    appendix: Vec<appendix::Section>,
}

/// The page of `fairbat` and one for each of its commands.
fn pages() -> Vec<Page> {
    let mut fairbat = args::command().disable_help_subcommand(true);
    fairbat.build();
    let version = concat!("fairbat ", env!("CARGO_PKG_VERSION"));
    std::iter::once(&fairbat)
        .chain(fairbat.get_subcommands())
        .map(|command| Page {
            man: Man::new(command.clone())
                // An argument that is empty, and yet there: pages are the same
                // whenever they are made.
                .date("\"\"")
                .source(version)
                .manual("User Commands"),
            has_commands: command.has_subcommands(),
            appendix: appendix::of(command.get_name()),
        })
        .collect()
}

impl Page {
    fn render(&self, out: &mut dyn Write) -> io::Result<()> {
        self.man.render_title(out)?;
        self.man.render_name_section(out)?;
        self.man.render_synopsis_section(out)?;
        self.man.render_description_section(out)?;
        self.man.render_options_section(out)?;
        if self.has_commands {
            self.man.render_subcommands_section(out)?;
        }
        let mut roff = Roff::default();
        for section in &self.appendix {
            roff.control("SH", [section.heading.to_uppercase().as_str()]);
            // As written: examples and tables have lines of their own.
            roff.control("nf", []);
            for line in section.body.lines() {
                roff.text([roman(line)]);
            }
            roff.control("fi", []);
        }
        roff.to_writer(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::ExitCode;

    /// The text of all pages, without roff's escapes.
    fn text() -> String {
        let mut out = Vec::new();
        for page in pages() {
            page.render(&mut out).expect("writing to memory works");
        }
        String::from_utf8(out)
            .expect("pages are UTF-8")
            .replace("\\-", "-")
            .replace("\\*(Aq", "'")
    }

    #[test]
    fn every_flag_and_its_variable_is_in_the_manual() {
        let text = text();
        for command in args::command().get_subcommands() {
            for arg in command.get_arguments() {
                let Some(long) = arg.get_long() else { continue };
                assert!(text.contains(&format!("--{long}")), "--{long} is missing");
                if let Some(variable) = arg.get_env() {
                    let variable = variable.to_str().expect("our names are ASCII");
                    assert!(text.contains(variable), "{variable} is missing");
                }
            }
        }
    }

    #[test]
    fn every_exit_code_is_in_the_manual() {
        let text = text();
        for code in ExitCode::ALL {
            assert!(text.contains(code.meaning()), "{code:?} is missing");
        }
    }

    #[test]
    fn a_directory_gets_one_file_per_page() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        run(Some(dir.path())).expect("the directory is writable");
        for name in [
            "fairbat",
            "fairbat-get",
            "fairbat-plan",
            "fairbat-doctor",
            "fairbat-status",
            "fairbat-restore",
            "fairbat-man",
        ] {
            let page = std::fs::read_to_string(dir.path().join(format!("{name}.1")))
                .expect("the page is there");
            assert!(page.contains(&format!(".TH {name} 1")), "{name}");
        }
        let new = dir.path().join("share/man1");
        run(Some(&new)).expect("the directory is made");
        assert!(new.join("fairbat.1").is_file());
        let page = new.join("fairbat.1");
        let refused = run(Some(&page)).expect_err("a file is there");
        assert!(refused.to_string().contains("man1/fairbat.1"), "{refused}");
    }
}
