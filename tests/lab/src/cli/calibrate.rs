//! `lab calibrate`.

use std::process::ExitCode;

use fairbat_lab::calibrate::check;

use super::Outcome;

/// Compares the link with theory, and says what differs.
pub(super) fn calibrate() -> Outcome {
    if check(&mut |line| println!("{line}"))? {
        println!("\nThe link is what it says.");
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!(
        "lab: the link is out of tolerance on this machine, see OUT above; is something else running?"
    );
    Ok(ExitCode::FAILURE)
}
