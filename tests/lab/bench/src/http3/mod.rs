//! What HTTP/3 brings and what it costs: many files from one host while a large one is under way
//! (`streams`), and processor time beside curl, TCP and bare QUIC (`cost`).

pub mod bare;
mod cost;
pub mod page;
pub mod record;
mod streams;

use self::record::Record;
use super::machine;
use fairbat_tests::bin::fairbat_binary;
use fairbat_tests::environment::first_line;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    /// Small files of a list.
    pub files: u32,
    /// Runs of each list.
    pub repetitions: u32,
    /// Size of the file for processor time, bytes.
    pub size: u64,
    /// Rounds for processor time that count.
    pub rounds: u32,
}

/// Some ten minutes.
pub const FULL: Extent = Extent {
    files: 200,
    repetitions: 3,
    size: 1_000_000_000,
    rounds: 5,
};

/// To see whether it works.
pub const QUICK: Extent = Extent {
    files: 40,
    repetitions: 1,
    size: 100_000_000,
    rounds: 1,
};

/// Determines the bytes of the files.
const SEED: u64 = 1;

/// Measures everything, saying on standard error what is going on. `command` is what the user
/// typed.
///
/// # Panics
/// Without root, with too little free memory, or when a tool fails or a file is wrong.
#[must_use]
pub fn run(extent: &Extent, command: &str) -> Record {
    let mut machine = machine::describe();
    let fairbat = fairbat_binary().to_str().expect("a path in UTF-8");
    machine.versions = vec![
        first_line(&[fairbat, "--version"]),
        first_line(&["curl", "--version"]),
        format!("Caddy {}", first_line(&["caddy", "version"])),
    ];
    Record {
        command: command.to_owned(),
        seed: SEED,
        machine,
        streams: streams::run(extent.files, extent.repetitions, SEED),
        cost: cost::run(extent.size, extent.rounds, SEED),
    }
}
