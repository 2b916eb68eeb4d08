mod agent;
mod follow;

use std::path::Path;
use std::time::Duration;

use fairbat::manual::{completions, write_pages};

use super::shared::{ControllerMethod, Http3Choice, ReceiverMethod, SenderMethod};
use super::*;
use crate::exit::ExitCode;

/// The arguments of `fairbat get`.
pub(crate) fn get_from(words: &[&str]) -> Result<GetArgs, clap::Error> {
    match parse(&[&["get"], words].concat())? {
        Command::Get(args) => Ok(*args),
        other => panic!("{words:?}: {other:?}"),
    }
}

/// The arguments of `fairbat plan`.
pub(crate) fn plan_from(words: &[&str]) -> Result<PlanArgs, clap::Error> {
    match parse(&[&["plan"], words].concat())? {
        Command::Plan(args) => Ok(*args),
        other => panic!("{words:?}: {other:?}"),
    }
}

/// The arguments of `fairbat serve`; panics when they are wrong.
fn serve_from(words: &[&str]) -> ServeArgs {
    match parse(&[&["serve"], words].concat()) {
        Ok(Command::Serve(args)) => *args,
        other => panic!("{words:?}: {other:?}"),
    }
}

/// The arguments of `fairbat put`.
pub(crate) fn put_from(words: &[&str]) -> Result<PutArgs, clap::Error> {
    match parse(&[&["put"], words].concat())? {
        Command::Put(args) => Ok(*args),
        other => panic!("{words:?}: {other:?}"),
    }
}

/// The arguments of `fairbat add`; panics when they are wrong.
pub(crate) fn add_from(words: &[&str]) -> AddArgs {
    match parse(&[&["add"], words].concat()) {
        Ok(Command::Add(args)) => args,
        other => panic!("{words:?}: {other:?}"),
    }
}

/// The arguments of `fairbat restore`; panics when they are wrong.
pub(crate) fn restore_from(words: &[&str]) -> RestoreArgs {
    match parse(&[&["restore"], words].concat()) {
        Ok(Command::Restore(args)) => args,
        other => panic!("{words:?}: {other:?}"),
    }
}

fn parse(words: &[&str]) -> Result<Command, clap::Error> {
    let words = ["fairbat"].iter().chain(words);
    from_matches(&command().try_get_matches_from(words)?)
}

/// The same while a variable of cargo's, which it sets for every test, stands in for the one of
/// an argument.
fn parse_with(
    (id, variable): (&'static str, &'static str),
    words: &[&'static str],
) -> Result<Command, clap::Error> {
    let command = command().mut_subcommand(words[0], |command| {
        command.mut_arg(id, |flag| flag.env(variable))
    });
    let words = ["fairbat"].iter().chain(words);
    from_matches(&command.try_get_matches_from(words)?)
}

fn get(flags: &[&str]) -> GetArgs {
    let words = [flags, &["http://h/f"]].concat();
    get_from(&words).unwrap_or_else(|error| panic!("{words:?}: {error}"))
}

fn error(words: &[&str]) -> String {
    match parse(words) {
        Ok(command) => panic!("{words:?} was accepted: {command:?}"),
        Err(error) => {
            assert_eq!(error.exit_code(), 2, "{words:?}");
            error.to_string()
        }
    }
}

#[test]
fn the_definition_is_sound() {
    command().debug_assert();
}

#[test]
fn every_flag_has_its_variable_and_a_help() {
    for command in command().get_subcommands() {
        for arg in command.get_arguments() {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(!help.is_empty(), "{arg} has no help");
            let Some(long) = arg.get_long() else { continue };
            let long = match (command.get_name(), long) {
                // Elsewhere it has a value.
                ("serve", "http3") => "serve-http3",
                _ => long,
            };
            let variable = format!("FAIRBAT_{}", long.to_uppercase().replace('-', "_"));
            assert_eq!(arg.get_env(), Some(variable.as_ref()), "--{long}");
        }
    }
}

/// A digest as `--checksum` takes it.
const SHA256_OF_NOTHING: &str =
    "sha-256=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// What a flag on the command line must change.
type Check = fn(&GetArgs) -> bool;

#[test]
fn each_flag_reaches_its_field() {
    let table: &[(&[&str], Check)] = &[
        (&["-o", "f"], |a| a.files.output == Some("f".into())),
        (&["--output", "f"], |a| a.files.output == Some("f".into())),
        (&["-d", "d"], |a| a.files.directory == Some("d".into())),
        (&["--directory", "d"], |a| {
            a.files.directory == Some("d".into())
        }),
        (&["-i", "-"], |a| a.files.input_file == Some("-".into())),
        (&["--input-file", "l"], |a| {
            a.files.input_file == Some("l".into())
        }),
        (&["--mirror", "http://a/", "--mirror", "http://b/"], |a| {
            a.files.mirrors == ["http://a/", "http://b/"]
        }),
        (&["-M", "f.meta4"], |a| {
            a.files.metalink.as_deref() == Some("f.meta4")
        }),
        (&["--metalink", "f.meta4"], |a| {
            a.files.metalink.as_deref() == Some("f.meta4")
        }),
        (&["--interface", "a,b:cost=metered"], |a| {
            a.speed.paths.interfaces == ["a", "b:cost=metered"]
        }),
        (&["--interface", "a,b", "--interface", "c,d"], |a| {
            a.speed.paths.interfaces == ["c", "d"]
        }),
        (&["-c"], |a| a.files.resume),
        (&["--no-continue"], |a| !a.files.resume),
        (&["--no-continue", "-c"], |a| a.files.resume),
        (&["--continue", "--no-continue"], |a| !a.files.resume),
        (&["--checksum", SHA256_OF_NOTHING], |a| {
            a.files.checksum == SHA256_OF_NOTHING.parse().ok()
        }),
        (&["--file-allocation", "none"], |a| {
            a.files.file_allocation == AllocationMethod::None
        }),
        (&["--deadline", "06:00"], |a| {
            a.speed.deadline.as_deref() == Some("06:00")
        }),
        (&["--weight", "0.3"], |a| a.speed.weight == 0.3),
        (&["--max-weight", "3"], |a| a.speed.max_weight == 3),
        (&["--controller", "pid"], |a| {
            a.speed.controller == ControllerMethod::Pid
        }),
        (&["--receiver", "vulture"], |a| {
            a.speed.receiver == ReceiverMethod::Vulture
        }),
        (&["-i", "-", "--follow"], |a| a.stream.follow),
        (&["-i", "-", "--follow", "--law", "paper"], |a| {
            a.stream.law == LawName::Paper
        }),
        (&["-i", "-", "--follow", "--tau", "3"], |a| {
            a.stream.tau == Some(3.0)
        }),
        (&["-i", "-", "--follow", "--gamma", "0.1"], |a| {
            a.stream.gamma == Some(0.1)
        }),
        (&["-i", "-", "--follow", "--kappa", "0.5"], |a| {
            a.stream.kappa == Some(0.5)
        }),
        (&["-i", "-", "--follow", "--min-connections", "1"], |a| {
            a.stream.min_connections == Some(1.0)
        }),
        (&["--fail-late"], |a| a.limits.fail_late),
        (&["--max-time", "1h"], |a| {
            a.limits.max_time == Some(Duration::from_secs(3600))
        }),
        (&["--limit-rate", "5K"], |a| {
            a.limits.limit_rate == Some(5 << 10)
        }),
        (&["--alone"], |a| a.lane.alone),
        (&["--socket", "s"], |a| a.lane.socket == Path::new("s")),
        (&["-s", "2"], |a| a.speed.split == 2),
        (&["--split", "1", "--split", "3"], |a| a.speed.split == 3),
        (&["-x8"], |a| a.speed.max_connections == Some(8)),
        (&["--max-connections", "8"], |a| {
            a.speed.max_connections == Some(8)
        }),
        (&["--chunk-size", "1M"], |a| {
            a.speed.chunk_size == Some(1 << 20)
        }),
        (&["--max-size", "1M"], |a| a.files.max_size == Some(1 << 20)),
        (&["-H", "A: b, c", "--header", "D: e"], |a| {
            a.requests.header == ["A: b, c", "D: e"]
        }),
        (&["--user", "u:p"], |a| {
            a.requests.user.as_deref() == Some("u:p")
        }),
        (&["-H", "A: b\nC: d"], |a| {
            a.requests.header == ["A: b", "C: d"]
        }),
        (&["-u", "u:p"], |a| {
            a.requests.user.as_deref() == Some("u:p")
        }),
        (&["-n"], |a| a.requests.netrc),
        (&["--netrc"], |a| a.requests.netrc),
        (&["--cacert", "ca"], |a| {
            a.requests.cacert == Some("ca".into())
        }),
        (&["--retry", "inf"], |a| a.failures.retry == Some(None)),
        (&["--retry-wait", "1s"], |a| {
            a.failures.retry_wait == Duration::from_secs(1)
        }),
        (&["--retry-max-wait", "1m"], |a| {
            a.failures.retry_max_wait == Some(Duration::from_secs(60))
        }),
        (&["--connect-timeout", "5s"], |a| {
            a.timeouts.connect_timeout == Duration::from_secs(5)
        }),
        (&["--stall-timeout", "5s"], |a| {
            a.timeouts.stall_timeout == Duration::from_secs(5)
        }),
        (&["--http3", "only"], |a| {
            a.requests.http3 == Http3Choice::Only
        }),
        (&["--early-data"], |a| a.speed.early_data),
        (&["--json"], |a| a.messages.json),
        (&["-q"], |a| a.log.quiet),
        (&["--quiet"], |a| a.log.quiet),
        (&["-vvv"], |a| a.log.verbose == 3),
        (&["-v", "--verbose"], |a| a.log.verbose == 2),
        (&["--seed", "7"], |a| a.messages.seed == Some(7)),
    ];
    let default = get(&[]);
    for (flags, check) in table {
        assert!(check(&get(flags)), "{flags:?}");
        // A check that holds anyway would show nothing; only resuming does.
        assert!(!check(&default) || default.files.resume, "{flags:?}");
    }
    let command = command();
    let get = command.find_subcommand("get").expect("it is there");
    for arg in get.get_opts() {
        let long = arg.get_long().expect("every flag has a long name");
        let mut words = table.iter().flat_map(|(flags, _)| flags.iter());
        assert!(
            words.any(|word| word.strip_prefix("--") == Some(long)),
            "--{long} is not in the table"
        );
    }
}

#[test]
fn the_command_line_wins_over_a_variable_for_the_opposite() {
    let resume = |set: &'static str, flags: &[&'static str]| {
        let words = [&["get", "http://h/f"], flags].concat();
        match parse_with((set, "CARGO_PKG_NAME"), &words).expect("well-formed") {
            Command::Get(args) => args.files.resume,
            other => panic!("{other:?}"),
        }
    };
    assert!(!resume("no_continue", &[]));
    assert!(resume("no_continue", &["-c"]));
    assert!(resume("continue_", &[]));
    assert!(!resume("continue_", &["--no-continue"]));
}

#[test]
fn wrong_usage_is_explained() {
    for (words, expected) in [
        (&["get"][..], "URL"),
        (&["get", "--nonsense", "u"], "--nonsense"),
        (&["get", "-s", "0", "u"], "--split"),
        (&["get", "-s", "many", "u"], "--split"),
        (&["get", "-x", "0", "u"], "--max-connections"),
        (&["get", "--file-allocation", "prealloc", "u"], "falloc"),
        (&["get", "--receiver", "ledbat", "u"], "delay, vulture"),
        (&["get", "--controller", "p", "u"], "share, pid, mbc"),
        (&["get", "--seed", "-1", "u"], "-1"),
        (&["get", "u", "-o"], "--output"),
        (&["plan", "--deadline", "4h"], "URL"),
        (&["plan", "http://h/f"], "--deadline"),
        (
            &["plan", "--deadline", "4h", "http://h/f", "http://h/g"],
            "http://h/g",
        ),
        (&["plan", "--deadline", "4h", "-o", "f", "http://h/f"], "-o"),
        (&["add"], "URL"),
        (&["pause"], "TASK"),
        (&["start"], "JOB"),
        (&["start", "a", "b"], "b"),
        (&["restore", "home"], "--to"),
        (&["completions", "tcsh"], "tcsh"),
        (&["fetch"], "fetch"),
    ] {
        let error = error(words);
        assert!(error.contains(expected), "{words:?}: {error}");
    }
}

#[test]
fn a_url_without_a_command_gets_a_tip() {
    let error = parse(&["http://h/f"]).expect_err("there is no such command");
    assert!(with_tip(error).to_string().contains("fairbat get URL"));
}

#[test]
fn nothing_at_all_prints_the_help() {
    let help = error(&[]);
    assert!(help.contains("get") && help.contains("doctor"), "{help}");
}

#[test]
fn the_time_of_a_look_at_a_path_needs_the_path() {
    assert!(parse(&["doctor"]).is_ok());
    assert!(parse(&["doctor", "--path", "http://h/f", "--measure", "5s"]).is_ok());
    assert!(error(&["doctor", "--measure", "5s"]).contains("--path"));
    // The variable may be meant for `plan`.
    assert!(parse_with(("measure", "CARGO_PKG_VERSION_MAJOR"), &["doctor"]).is_ok());
}

#[test]
fn a_list_makes_urls_optional() {
    let Ok(Command::Get(args)) = parse(&["get", "-i", "list"]) else {
        panic!("a list is enough");
    };
    assert!(args.urls.is_empty());
}

#[test]
fn the_long_help_has_the_exit_codes() {
    let help = parse(&["get", "--help"])
        .expect_err("the help is printed")
        .to_string();
    for code in ExitCode::ALL {
        let line = format!("{:>3}  {}", code as u8, code.meaning());
        assert!(help.contains(&line), "{code:?}");
    }
}

#[test]
fn each_flag_of_serve_reaches_its_field() {
    let args = serve_from(&["dir"]);
    assert_eq!(args.directory, PathBuf::from("dir"));
    assert_eq!(args.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(args.sending.sender, None);
    assert_eq!(args.sending.max_connections, 512);
    assert_eq!(args.sending.max_connections_per_peer, 64);
    assert!(!args.sending.background && !args.json);
    assert!(args.access.token_file.is_none() && args.access.tls_cert.is_none());
    assert!(!args.uploads.writable && args.uploads.max_upload.is_none());
    let words = "dir --writable --max-upload 2M --listen [::1]:9 --background --sender cdg -x 7 \
        --max-connections-per-peer 3 --token-file t \
        --tls-cert c --tls-key k --json -q";
    let args = serve_from(&words.split(' ').collect::<Vec<_>>());
    assert_eq!(args.listen.to_string(), "[::1]:9");
    assert_eq!(args.sending.sender, Some(SenderMethod::Cdg));
    assert_eq!(args.sending.max_connections, 7);
    assert!(args.uploads.writable);
    assert_eq!(args.uploads.max_upload, Some(2 << 20));
    assert_eq!(args.sending.max_connections_per_peer, 3);
    assert!(args.sending.background && args.json && args.log.quiet);
    assert_eq!(args.access.token_file, Some("t".into()));
    assert_eq!(args.access.tls_cert, Some("c".into()));
    assert_eq!(args.access.tls_key, Some("k".into()));
    for words in [
        &["serve"][..],
        &["serve", "a", "b"],
        &["serve", "a", "--tls-cert", "c"],
        &["serve", "a", "--max-upload", "2M"],
        &["serve", "a", "--writable", "--max-upload", "0"],
    ] {
        error(words);
    }
}

/// The text of all manual pages, without the escapes of roff.
fn manual_text() -> String {
    let pages = pages().expect("memory is enough");
    let roff = pages.into_iter().flat_map(|page| page.roff).collect();
    let text = String::from_utf8(roff).expect("pages are UTF-8");
    text.replace("\\-", "-").replace("\\*(Aq", "'")
}

#[test]
fn every_flag_and_its_variable_is_in_the_manual() {
    let text = manual_text();
    for command in command().get_subcommands() {
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
    let text = manual_text();
    for code in ExitCode::ALL {
        assert!(text.contains(code.meaning()), "{code:?} is missing");
    }
}

#[test]
fn a_directory_gets_one_file_per_page() {
    let pages = pages().expect("memory is enough");
    let write = |dir: &Path| write_pages(&pages, Some(dir));
    let dir = tempfile::tempdir().expect("a temporary directory");
    write(dir.path()).expect("the directory is writable");
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
    write(&new).expect("the directory is made");
    assert!(new.join("fairbat.1").is_file());
    let page = new.join("fairbat.1");
    let refused = write(&page).expect_err("a file is there");
    assert!(refused.to_string().contains("man1/fairbat.1"), "{refused}");
}

#[test]
fn scripts_know_the_commands_and_flags() {
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let script = completions(&mut command(), shell);
        let script = String::from_utf8(script).expect("scripts are UTF-8");
        for word in [
            "fairbat",
            "get",
            "plan",
            "doctor",
            "max-connections",
            "deadline",
            "measure",
            "status",
            "restore",
            "socket",
        ] {
            assert!(script.contains(word), "{shell}: {word} is missing");
        }
    }
}

#[test]
fn every_command_says_what_its_exit_status_means() {
    for command in command().get_subcommands_mut() {
        let help = command.render_long_help().to_string();
        let name = command.get_name();
        assert!(help.contains("Exit status"), "{name}: {help}");
    }
}
