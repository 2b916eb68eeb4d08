//! `make demo`: a file by a deadline, killed in the middle, still right and in
//! time; and a picture of how.
//!
//! `demo --redraw` draws the picture of the last run again.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use fairbat_tests::demo::{Script, picture, play, summary};
use fairbat_tests::target::output_directory;

/// One connection would need 60 s for what has to be there in 40 s.
const SCRIPT: Script = Script {
    seed: 1,
    size: 90_000_000,
    rate_per_connection: 1_500_000,
    deadline: Duration::from_secs(40),
    kill: Duration::from_millis(14_500),
};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let directory = output_directory("demo");
    let numbers = directory.join("demo.json");
    let redraw = std::env::args().nth(1).as_deref() == Some("--redraw");
    let recording = if redraw {
        serde_json::from_slice(&fs::read(&numbers)?)?
    } else {
        let recording = play(&SCRIPT, &directory);
        fs::write(&numbers, serde_json::to_vec_pretty(&recording)?)?;
        recording
    };
    let svg = directory.join("demo.svg");
    picture::draw(&recording, &svg)?;
    print!("{}", summary(&recording));
    println!("\npicture: {}", shown(&svg).display());
    Ok(if recording.is_right() && recording.is_in_time() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Relative to where the user is, if it is below.
fn shown(path: &Path) -> &Path {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path)
}
