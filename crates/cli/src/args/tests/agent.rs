//! The commands that talk to the agent.

use super::*;

#[test]
fn each_flag_of_the_agents_commands_reaches_its_field() {
    let Ok(Command::Status(args)) = parse(&["status"]) else {
        panic!("nothing is needed");
    };
    assert!(args.tasks.is_empty() && !args.watch && !args.agent.json);
    assert_eq!(args.agent.socket, PathBuf::from("/run/fairbat/agent.sock"));
    let words = ["status", "-w", "a", "b", "--json", "--socket", "s"];
    let Ok(Command::Status(args)) = parse(&words) else {
        panic!("{words:?}");
    };
    assert_eq!(args.tasks, ["a", "b"]);
    assert!(args.watch && args.agent.json && args.agent.socket.as_os_str() == "s");
    let args = add_from(&["u", "-o", "f", "-d", "d", "--deadline", "4h"]);
    assert_eq!(
        (args.output, args.directory),
        (Some("f".into()), Some("d".into()))
    );
    assert_eq!(args.deadline.as_deref(), Some("4h"));
    let args = restore_from(&["home", "--to", "d", "--deadline", "4h", "--wait"]);
    assert_eq!((args.job.as_str(), args.to), ("home", PathBuf::from("d")));
    assert!(args.wait && args.deadline.as_deref() == Some("4h"));
    let Ok(Command::Start(args)) = parse(&["start", "home", "-w"]) else {
        panic!("a job is enough");
    };
    assert!(args.wait && args.job == "home");
    let Ok(Command::Fleet(args)) = parse(&["fleet", "hold", "a", "b", "--socket", "s"]) else {
        panic!("two hosts can be held");
    };
    assert_eq!(args.action, FleetAction::Hold);
    assert_eq!(args.hosts, ["a", "b"]);
    assert!(
        matches!(parse(&["fleet", "status"]), Ok(Command::Fleet(args)) if args.hosts.is_empty())
    );
    for words in [
        &["fleet"][..],
        &["fleet", "hold"],
        &["fleet", "release"],
        &["fleet", "drop"],
    ] {
        error(words);
    }
    for name in ["pause", "resume", "cancel"] {
        let tasks = match parse(&[name, "a", "b"]) {
            Ok(Command::Pause(args) | Command::Resume(args) | Command::Cancel(args)) => args.tasks,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(tasks, ["a", "b"]);
    }
}
