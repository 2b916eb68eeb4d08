//! The command as a process: environment, standard streams, exit codes.

use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};

fn fairbat(args: &[&str], variables: &[(&str, &str)]) -> Output {
    command(args, variables)
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs")
}

fn command(args: &[&str], variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairbat"));
    command
        .args(args)
        .env_clear()
        .envs(variables.iter().copied());
    command
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("messages are UTF-8")
}

/// A list that ends a run before anything is fetched; values are checked first.
const NO_LIST: &str = "/no/such/list";

#[test]
fn every_flag_with_a_value_is_read_from_the_environment() {
    for (variable, value, expected) in [
        ("FAIRBAT_OUTPUT", "-", "--output"),
        ("FAIRBAT_DIRECTORY", "", "--directory"),
        ("FAIRBAT_INPUT_FILE", NO_LIST, NO_LIST),
        ("FAIRBAT_CHECKSUM", "x", "'--checksum <"),
        ("FAIRBAT_FILE_ALLOCATION", "x", "--file-allocation"),
        ("FAIRBAT_DEADLINE", "x", "--deadline: "),
        ("FAIRBAT_MAX_TIME", "x", "'--max-time <"),
        ("FAIRBAT_LIMIT_RATE", "x", "'--limit-rate <"),
        ("FAIRBAT_RECEIVER", "x", "--receiver"),
        ("FAIRBAT_SPLIT", "0", "--split"),
        ("FAIRBAT_MAX_CONNECTIONS", "0", "--max-connections"),
        ("FAIRBAT_CHUNK_SIZE", "x", "'--chunk-size <"),
        ("FAIRBAT_HEADER", "A: b\nwrong", "--header"),
        ("FAIRBAT_USER", "wrong", "--user"),
        ("FAIRBAT_NETRC", "1", "NETRC"),
        ("FAIRBAT_RETRY", "x", "'--retry <"),
        ("FAIRBAT_RETRY_WAIT", "x", "'--retry-wait <"),
        ("FAIRBAT_RETRY_MAX_WAIT", "x", "'--retry-max-wait <"),
        ("FAIRBAT_CONNECT_TIMEOUT", "x", "'--connect-timeout <"),
        ("FAIRBAT_STALL_TIMEOUT", "x", "'--stall-timeout <"),
        ("FAIRBAT_SEED", "x", "--seed"),
        ("FAIRBAT_LOG", "fairbat=loud", "FAIRBAT_LOG"),
    ] {
        let output = fairbat(&["get", "http://127.0.0.1:1/f"], &[(variable, value)]);
        assert_eq!(output.status.code(), Some(2), "{variable}: {output:?}");
        let message = stderr(&output);
        assert!(message.contains(expected), "{variable}: {message}");
        assert!(output.stdout.is_empty(), "{variable}");
    }
}

#[test]
fn the_command_line_wins_over_the_environment() {
    let output = fairbat(
        &["get", "--limit-rate", "1K", "-i", NO_LIST],
        &[("FAIRBAT_LIMIT_RATE", "x")],
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains(NO_LIST), "{output:?}");
}

#[test]
fn secrets_from_the_environment_are_never_shown() {
    let variables = [
        ("FAIRBAT_USER", "me:topsecret"),
        ("FAIRBAT_HEADER", "Authorization: topsecret"),
    ];
    for args in [&["get", "--help"][..], &["man"], &["get", "-i", NO_LIST]] {
        let output = fairbat(args, &variables);
        for stream in [&output.stdout, &output.stderr] {
            let text = String::from_utf8_lossy(stream);
            assert!(!text.contains("topsecret"), "{args:?}: {text}");
        }
    }
}

#[test]
fn help_and_version() {
    let version = fairbat(&["--version"], &[]);
    assert_eq!(version.status.code(), Some(0));
    assert!(version.stdout.starts_with(b"fairbat "));
    let nothing = fairbat(&[], &[]);
    assert_eq!(nothing.status.code(), Some(2));
    assert!(nothing.stdout.is_empty());
    assert!(stderr(&nothing).contains("Usage: fairbat <COMMAND>"));
}

#[test]
fn a_reader_who_has_seen_enough_is_no_error() {
    let mut child = command(&["man"], &[])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn a_list_on_standard_input_is_read() {
    let mut child = command(&["get", "-i", "-"], &[])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin
        .write_all(b"# a comment\nexample.org/f\n")
        .expect("it reads");
    drop(stdin);
    let mut message = String::new();
    let mut stderr = child.stderr.take().expect("it is piped");
    stderr.read_to_string(&mut message).expect("it is UTF-8");
    assert_eq!(child.wait().expect("it ends").code(), Some(2));
    assert!(message.contains("standard input, line 2"), "{message}");
}
