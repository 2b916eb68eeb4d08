//! `fairbat-agent completions SHELL`: a completion script on standard output.

use std::io::{self, Write as _};

use clap_complete::Shell;

use super::args;

/// Writes the script for `shell` to standard output.
///
/// # Errors
/// When standard output cannot be written.
pub(crate) fn run(shell: Shell) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(&script(shell))?;
    stdout.flush()
}

/// The script. It is built in memory first: the generator panics when a write
/// fails.
fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::command(), "fairbat-agent", &mut script);
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_know_the_commands_and_flags() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = String::from_utf8(script(shell)).unwrap();
            for word in ["fairbat-agent", "check", "run", "gc", "config"] {
                assert!(script.contains(word), "{shell}: {word} is missing");
            }
        }
    }
}
