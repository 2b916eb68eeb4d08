//! What goes with `--follow`.

use super::{error, parse_with};

#[test]
fn what_does_not_go_with_follow_is_refused_on_the_command_line() {
    let follow = ["get", "-i", "-", "--follow"];
    for (flags, named) in [
        (&["-o", "x"][..], "--output"),
        (&["--deadline", "1h"], "--deadline"),
        (&["--fail-late"], "--fail-late"),
        (&["--mirror", "http://h/f"], "--mirror"),
    ] {
        let refused = error(&[&follow, flags].concat());
        let what = format!("{named} cannot be used with --follow");
        assert!(refused.contains(&what), "{refused}");
    }
    assert!(error(&["get", "--follow", "http://h/f"]).contains("-i -"));
    for flags in [
        ["--tau", "3"],
        ["--law", "paper"],
        ["--min-connections", "1"],
    ] {
        let refused = error(&[&["get", "http://h/f"][..], &flags].concat());
        assert!(refused.contains("is for --follow"), "{refused}");
    }
    // A variable is for all runs. Those that cargo sets for every test stand in for ours: a
    // number, an empty one and one with a name.
    let (number, empty) = ("CARGO_PKG_VERSION_MAJOR", "CARGO_PKG_VERSION_PRE");
    assert!(parse_with(("kappa", number), &["get", "http://h/f"]).is_ok());
    assert!(parse_with(("follow", empty), &["get", "http://h/f", "-o", "x"]).is_ok());
    assert!(parse_with(("fail_late", empty), &follow).is_ok());
    let lost = parse_with(("deadline", "CARGO_PKG_NAME"), &follow).expect_err("it would be lost");
    assert!(
        lost.to_string().contains("FAIRBAT_DEADLINE is set"),
        "{lost}"
    );
}
