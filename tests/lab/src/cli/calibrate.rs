//! `lab calibrate`.

use std::process::ExitCode;

use fairbat_lab::calibrate::{Verdict, check};

use super::{CANNOT, Outcome};

/// Compares the link with theory, and says what differs.
pub(super) fn calibrate() -> Outcome {
    match check(&mut |line| println!("{line}"))? {
        Verdict::Right => {
            println!("\nThe link is what it says.");
            Ok(ExitCode::SUCCESS)
        }
        Verdict::Unknown => {
            eprintln!(
                "lab: this machine stands still too often to tell what its links do, see above; \
                 try again when it, or its host, has less to do"
            );
            Ok(ExitCode::from(CANNOT))
        }
        Verdict::Wrong => {
            eprintln!(
                "lab: the link is out of tolerance on this machine, see OUT above; \
                 is something else running?"
            );
            Ok(ExitCode::FAILURE)
        }
    }
}
