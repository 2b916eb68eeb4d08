//! The same for the commands that speak to the agent.

use super::{Section, examples, section, table};
use crate::exit::ExitCode;

/// The sections of a command, the most useful first; none for what is none of
/// these.
pub(super) fn of(command: &str) -> Vec<Section> {
    let (shown, codes): (&str, &[(ExitCode, &str)]) = match command {
        "status" => (STATUS_EXAMPLES, &STATUS_EXIT_STATUS),
        "add" => (ADD_EXAMPLES, &ORDER_EXIT_STATUS),
        "pause" => (PAUSE_EXAMPLES, &TASKS_EXIT_STATUS),
        "resume" => (RESUME_EXAMPLES, &TASKS_EXIT_STATUS),
        "cancel" => (CANCEL_EXAMPLES, &TASKS_EXIT_STATUS),
        "run" => (RUN_EXAMPLES, &WAIT_EXIT_STATUS),
        "restore" => (RESTORE_EXAMPLES, &WAIT_EXIT_STATUS),
        _ => return Vec::new(),
    };
    vec![
        examples(shown),
        section("Files", FILES),
        section("Environment", ENVIRONMENT),
        Section {
            heading: "Exit status",
            body: table(codes),
        },
    ]
}

const FILES: &str = "\
/run/fairbat/agent.sock
                    the agent's socket; members of its group may use it";

const ENVIRONMENT: &str = "\
FAIRBAT_<FLAG>      any flag: FAIRBAT_SOCKET=/run/other/agent.sock
NO_COLOR            no colours";

const STATUS_EXAMPLES: &str = "\
fairbat status
fairbat status --watch home
Which tasks will be late?
    fairbat status --json | jq -r '.tasks[] | select(.late_s > 0) | .id'";

const ADD_EXAMPLES: &str = "\
Download by six in the morning:
    fairbat add --deadline 06:00 -d /srv/mirror https://example.org/big.iso
And look how that is getting on:
    id=$(fairbat add -d /srv/mirror https://example.org/big.iso)
    fairbat status --watch \"$id\"";

const PAUSE_EXAMPLES: &str = "fairbat pause home add-3";

const RESUME_EXAMPLES: &str = "fairbat resume home add-3";

const CANCEL_EXAMPLES: &str = "fairbat cancel add-3";

const RUN_EXAMPLES: &str = "\
fairbat run home
Before something that may go wrong:
    fairbat run --wait home && upgrade";

const RESTORE_EXAMPLES: &str = "\
fairbat restore home --to /srv/restored --wait
Until the morning, in what nobody else wants:
    fairbat restore home --to /srv/restored --deadline 06:00";

const REFUSED: (ExitCode, &str) = (
    ExitCode::Other,
    "there is no such task, the agent refuses, no right to speak to it, or another error",
);
const ABSENT: (ExitCode, &str) = (
    ExitCode::Temporary,
    "no agent is running, it has ended, or does not answer: worth trying again",
);
const USAGE: (ExitCode, &str) = (ExitCode::Usage, "wrong usage");
const INTERRUPTED: (ExitCode, &str) = (ExitCode::Interrupted, "interrupted");

const STATUS_EXIT_STATUS: [(ExitCode, &str); 5] = [
    (ExitCode::Done, "told, whatever there was to tell"),
    (
        ExitCode::Other,
        "there is no such task, no right to speak to the agent, or another error",
    ),
    USAGE,
    ABSENT,
    INTERRUPTED,
];

const ORDER_EXIT_STATUS: [(ExitCode, &str); 5] = [
    (ExitCode::Done, "the agent has taken it"),
    REFUSED,
    USAGE,
    ABSENT,
    INTERRUPTED,
];

const TASKS_EXIT_STATUS: [(ExitCode, &str); 6] = [
    (ExitCode::Done, "done"),
    REFUSED,
    USAGE,
    (
        ExitCode::Partial,
        "of several tasks some are refused; with the others it is done",
    ),
    ABSENT,
    INTERRUPTED,
];

const WAIT_EXIT_STATUS: [(ExitCode, &str); 6] = [
    (
        ExitCode::Done,
        "the agent has taken it; with --wait: everything is in step, in time or late",
    ),
    (
        ExitCode::Other,
        "there is no such job, the agent refuses, no right to speak to it, or another error; with \
         --wait also: it was given up, or cancelled",
    ),
    USAGE,
    (
        ExitCode::Partial,
        "with --wait: some files failed, or changed while they were read; the rest is in step",
    ),
    (
        ExitCode::Temporary,
        "no agent is running, it has ended, or does not answer; with --wait also: the run \
         failed, and the agent will try again",
    ),
    (
        ExitCode::Interrupted,
        "interrupted; what the agent has taken goes on",
    ),
];
