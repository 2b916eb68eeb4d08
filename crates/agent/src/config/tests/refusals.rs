//! What is wrong is refused, with its place and what to do.

use proptest::prelude::*;

use super::*;

#[test]
fn a_complaint_has_line_column_and_advice() {
    assert_eq!(
        complaints("[agent]\n  connections = 0"),
        "agent.toml:2:17: `connections` is 0; write 1 to 64"
    );
    // Columns are characters, not bytes.
    assert_eq!(
        complaints("stores.a = { type = \"local\", path = \"/\u{e9}\", y = 2 }"),
        "agent.toml:1:43: unknown key `y` in store `a`; choose from `path`, `file_mode`"
    );
}

#[test]
fn what_is_held_has_a_target_a_name_and_hours() {
    for (text, parts) in [
        ("", &["has no `unit`", "cgroup = "][..]),
        ("name = \"a\"\ncgroup = \"/tmp\"", &["no control group"]),
        ("unit = \"a/b\"", &["not the name of a unit"]),
        (
            "unit = \"a.service\"\ncgroup = \"/x\"",
            &["exclude each other"],
        ),
        ("cgroup = \"/sys/fs/cgroup/x\"", &["has no `name`"]),
        (
            "unit = \"x@y.service\"",
            &["not a valid name", "use letters"],
        ),
        (
            "unit = \"a.service\"\nhours = \"8 to 18\"",
            &["`hours`", "08:00-18:00"],
        ),
        ("unit = \"a.service\"\nhours = 3", &["not a text"]),
        (
            "unit = \"a.service\"\nbytes = \"4G\"",
            &["without a deadline"],
        ),
        (
            "unit = \"a.service\"\nweight = 1",
            &["unknown key `weight`"],
        ),
    ] {
        assert_refused(&format!("[[hold]]\n{text}"), parts);
    }
    let twice = "[[hold]]\nunit = \"a.service\"\n[[hold]]\nunit = \"a.service\"";
    assert_refused(twice, &["agent.toml:3", "already"]);
}

#[test]
fn everything_that_is_wrong_is_told_at_once_in_the_order_of_the_file() {
    let text = r#"[agent]
conections = 4
listen = 3
state = 5

[stores.offsite]
type = "s4"

[stores.nas]
type = "webdav"
url = "https://u:p@x/"
bukket = "x"

[[jobs]]
name = "a"
sorce = "/home"
destination = "offsite:a"
one_file_system = "yes"
include = "x"

[[jobs]]
name = "b"
source = "/home"
destination = "nass:a"
schedule = "Mon..Fri 25:00"
by = 06:00
delete = "miror"
every = "5s"

[[jobs]]
"#;
    let expected = [
        (2, "did you mean `connections`?"),
        (3, "false"),
        (4, "`state`: invalid type"),
        (7, "choose from `s3`, `webdav`, `fairbat`, `local`"),
        (11, "take them out"),
        (12, "unknown key `bukket` in store `nas`"),
        (16, "unknown key `sorce` in job `a`; did you mean `source`?"),
        (18, "`one_file_system`: invalid type"),
        (19, "`include`: invalid type"),
        (24, "did you mean `nas`?"),
        (26, "\"06:00\""),
        (27, "did you mean `mirror`?"),
        (28, "exclude each other"),
        (30, "name = \"NAME\""),
        (30, "source = \"/DIRECTORY\""),
        (30, "destination = \"STORE:PATH\""),
    ];
    let complaints = complaints(text);
    assert_eq!(complaints.lines().count(), expected.len(), "{complaints}");
    for (complaint, (line, part)) in complaints.lines().zip(expected) {
        let place = format!("agent.toml:{line}:");
        assert!(complaint.starts_with(&place), "{complaint}, not {line}");
        assert!(complaint.contains(part), "{complaint}, not {part:?}");
    }
}

#[test]
fn what_is_no_toml_is_refused_where_it_breaks() {
    for (text, place) in [
        ("a = \n", "agent.toml:1:"),
        ("[agent]\nlisten = \"x", "agent.toml:2:"),
        ("[stores.a]\ntype = \"local\"\n[stores.a]", "agent.toml:3:"),
        ("[agent]\nstate = \"/a\"\nstate = \"/b\"", "agent.toml:3:"),
    ] {
        assert_refused(text, &[place, "TOML"]);
    }
    assert_refused("[jobs]\nname = \"x\"", &["agent.toml:1:", "[[jobs]]"]);
    assert_refused("stores = 3", &["[stores.NAME]"]);
    assert_refused("agent = 3", &["[agent] is not a table"]);
    assert_refused("[job]", &["did you mean `jobs`?"]);
}

#[test]
fn settings_of_the_agent_have_ranges() {
    for (line, advice) in [
        ("connections = 65", "1 to 64"),
        ("connections = -1", "1 to 64"),
        ("max_weight = 0", "1 to 64"),
        ("min_weight = 0.01", "0.02"),
        ("min_weight = 1.5", "0.02"),
        ("min_weight = nan", "0.02"),
        ("limit_rate = 0", "2M"),
        ("limit_rate = \"fast\"", "500K"),
        ("limit_rate = true", "2M"),
        ("listen = true", "127.0.0.1:9797"),
        ("listen = \"localhost:9797\"", "127.0.0.1:9797"),
        ("state = \"var\"", "begins with /"),
        ("socket = \"/run/../x\"", ".."),
    ] {
        assert_refused(&format!("[agent]\n{line}"), &["agent.toml:2:", advice]);
    }
}

#[test]
fn a_fleet_that_cannot_be_is_refused() {
    let right = [
        ("url", "\"nats://a\""),
        ("site", "\"a\""),
        ("host", "\"a\""),
    ];
    for (key, value, parts) in [
        ("url", "\"https://a/\"", &["not a nats or tls URL"][..]),
        ("url", "\"nats:a\"", &["not a nats or tls URL"]),
        ("url", "\"nats://hunter2@a\"", &["token", "`credentials`"]),
        ("url", "\"nats://a:hunter2@a\"", &["`credentials`"]),
        ("url", "\"nats://a/b\"", &["after its host"]),
        ("url", "\"nats://a?b\"", &["after its host"]),
        ("site", "\"Berlin\"", &["\"Berlin\"", "a to z"]),
        ("site", "\"a.b\"", &["\"a.b\"", "a to z"]),
        ("site", "\"\"", &["name of a site", "a to z"]),
        ("host", "\"a b\"", &["name of a host", "a to z"]),
        ("host", "\"*\"", &["name of a host", "a to z"]),
        ("connections", "0", &["`connections` is 0", "1 to 64"]),
        ("connections", "65", &["`connections` is 65", "1 to 64"]),
        ("coordinate", "1", &["`coordinate`"]),
        ("credentials", "\"hunter2\"", &["absolute path", ".creds"]),
        ("credentials", "5", &["absolute path", ".creds"]),
        ("cacert", "\"ca.pem\"", &["begins with /"]),
        (
            "hots",
            "\"a\"",
            &["unknown key `hots` in [fleet]", "`host`"],
        ),
    ] {
        let right = right.iter().filter(|(right, _)| *right != key);
        let lines = right.map(|(key, value)| format!("{key} = {value}\n"));
        let text = format!("[fleet]\n{}{key} = {value}", lines.collect::<String>());
        assert_refused(&text, parts);
        assert!(!complaints(&text).contains("hunter2"), "{text}");
    }
    assert_refused(
        "[fleet]\nsite = \"a\"\nhost = \"a\"",
        &["has no `url`", "tls://"],
    );
    assert_refused(
        "[fleet]\nurl = \"tls://a\"\nhost = \"a\"",
        &["has no `site`", "NAME"],
    );
    assert_refused("[flet]", &["did you mean `fleet`?"]);
}

#[test]
fn stores_need_what_their_type_needs() {
    for (lines, advice) in [
        ("type = \"s3\"", "bucket = \"NAME\""),
        ("type = \"webdav\"", "url = "),
        ("type = \"fairbat\"", "url = "),
        ("type = \"local\"", "path = "),
        ("path = \"/a\"", "type = \"s3\""),
        ("type = 3", "`webdav`"),
        ("type = \"S3\"", "did you mean `s3`?"),
        ("type = \"local\"\npath = \"a\"", "begins with /"),
        (
            "type = \"local\"\npath = \"/a\"\nbucket = \"b\"",
            "choose from `path`",
        ),
        (
            "type = \"local\"\npath = \"/a\"\nfile_mode = 600",
            "write \"0600\" with its quotes",
        ),
        (
            "type = \"local\"\npath = \"/a\"\nfile_mode = \"0700\"",
            "write \"0600\"",
        ),
        (
            "type = \"local\"\npath = \"/a\"\nfile_mode = \"0440\"",
            "write \"0600\"",
        ),
        (
            "type = \"local\"\npath = \"/a\"\nfile_mode = \"rw\"",
            "write \"0600\"",
        ),
        ("type = \"s3\"\nbucket = \"a/b\"", "`prefix`"),
        (
            "type = \"s3\"\nbucket = \"a\"\nprefix = \"/b\"",
            "NAME/NAME",
        ),
        ("type = \"s3\"\nbucket = \"a\"\nprefix = \"b/../c\"", ".."),
        ("type = \"s3\"\nbucket = \"a\"\nregion = \"\"", "letters"),
        (
            "type = \"s3\"\nbucket = \"a\"\ncacert = \"ca.pem\"",
            "begins with /",
        ),
        ("type = \"webdav\"\nurl = \"ftp://a/\"", "https://"),
        ("type = \"webdav\"\nurl = \"a\"", "https://"),
    ] {
        assert_refused(&format!("[stores.a]\n{lines}"), &["agent.toml:", advice]);
    }
    for name in ["A", "a_b", "-a", "\"a:b\"", "\"\""] {
        let text = format!("[stores.{name}]\ntype = \"local\"\npath = \"/a\"");
        assert_refused(&text, &["is not a valid store name", "a to z"]);
    }
}

#[test]
fn secrets_do_not_belong_in_the_file_and_are_not_shown() {
    for lines in [
        "type = \"webdav\"\nurl = \"https://alice:hunter2@nas/\"",
        "type = \"webdav\"\nurl = \"https://hunter2@nas/\"",
        "type = \"webdav\"\nurl = \"https://nas/?token=hunter2\"",
        "type = \"webdav\"\nurl = \"nas:hunter2\"",
        "type = \"s3\"\nbucket = \"b\"\nendpoint = \"https://id:hunter2@s3/\"",
        "type = \"webdav\"\nurl = \"https://nas/\"\ncredentials = \"alice:hunter2\"",
        "type = \"webdav\"\nurl = \"https://nas/\"\npassword = \"hunter2\"",
    ] {
        let complaints = complaints(&format!("[stores.a]\n{lines}"));
        assert!(!complaints.contains("hunter2"), "{complaints}");
        assert!(
            complaints.contains("credentials") || complaints.contains("https://host"),
            "{complaints}"
        );
    }
}

#[test]
fn ends_must_fit_the_direction() {
    for (lines, advice) in [
        (
            "source = \"home\"\ndestination = \"nas:a\"",
            "begins with /",
        ),
        ("source = \"/a/../b\"\ndestination = \"nas:a\"", ".."),
        ("source = \"/home\"\ndestination = \"nas\"", "STORE:PATH"),
        ("source = \"/home\"\ndestination = \"/mnt\"", "STORE:PATH"),
        (
            "source = \"/home\"\ndestination = \"naz:a\"",
            "did you mean `nas`?",
        ),
        ("source = \"/home\"\ndestination = \"nas:/a\"", "NAME/NAME"),
        ("source = \"/home\"\ndestination = \"nas:a/../b\"", ".."),
        (
            "source = \"/home\"\ndestination = \"nas:a//b\"",
            "NAME/NAME",
        ),
        ("source = \"/home\"\ndestination = \"nas:a\\nb\"", "control"),
        (
            "source = \"nas:a\"\ndestination = \"/home\"",
            "direction = \"pull\"",
        ),
        (
            "direction = \"pull\"\nsource = \"/home\"\ndestination = \"nas:a\"",
            "direction = \"push\"",
        ),
        (
            "direction = \"pul\"\nsource = \"nas:a\"\ndestination = \"/home\"",
            "did you mean `pull`?",
        ),
        ("source = \"/home\"", "destination = \"STORE:PATH\""),
        (
            "direction = \"pull\"\ndestination = \"/a\"",
            "source = \"STORE:PATH\"",
        ),
    ] {
        assert_refused(&with_job(lines), &["agent.toml:", advice]);
    }
}

#[test]
fn settings_of_a_job_have_ranges_and_exclude_each_other() {
    for (lines, advice) in [
        ("schedule = \"Fri..Mon 3:00\"", "Mon,Sat,Sun"),
        ("schedule = []", "by hand"),
        ("schedule = [\"daily\", 3]", "Mon..Fri 22:00"),
        ("schedule = \"*-02-30\"", "never comes"),
        ("schedule = \"daily\"\nevery = \"6h\"", "keep one"),
        ("every = \"59s\"", "60s or more"),
        ("every = \"often\"", "1h30m"),
        ("by = \"6\"", "06:00"),
        ("by = \"24:00\"", "06:00"),
        ("by = 06:00:00", "in quotes"),
        ("by = \"06:00\"\nwithin = \"1h\"", "keep one"),
        ("within = \"0s\"", "1s or more"),
        ("delete = \"always\"", "choose from `never`, `mirror`"),
        ("delete = \"mirror\"", "max_delete = \"10%\""),
        ("max_delete = 3", "`delete = \"mirror\"`"),
        ("delete = \"mirror\"\nmax_delete = 0", "1 or more"),
        ("delete = \"mirror\"\nmax_delete = \"0%\"", "percentage"),
        ("delete = \"mirror\"\nmax_delete = \"101%\"", "percentage"),
        ("delete = \"mirror\"\nmax_delete = \"nan%\"", "percentage"),
        ("delete = \"mirror\"\nmax_delete = \"10\"", "percentage"),
        ("verify = \"readback\"", "did you mean `read-back`?"),
        ("detect = \"hash\"", "choose from `metadata`, `content`"),
        ("min_weight = 0", "0.02"),
        ("limit_rate = \"0\"", "zero"),
        ("check = true", "weekly"),
        ("check = \"sometimes\"", "`check`"),
        ("check = []", "or false"),
        ("check_bytes_per_day = 0", "10G"),
        ("authenticate = 1", "`authenticate`"),
        ("include = [\"!a\"]", "include pattern \"!a\" cannot"),
        ("exclude = [\"a\", \"{b\"]", "exclude pattern \"{b\" cannot"),
    ] {
        assert_refused(&push(lines), &["agent.toml:", advice]);
    }
}

#[test]
fn a_wrong_stream_is_refused() {
    for (lines, what) in [
        ("law = \"fair\"", "`law` cannot be \"fair\""),
        ("tau = 0", "`tau` is not above 0"),
        ("gamma = -1", "`gamma` is not above 0"),
        ("kappa = -0.5", "`kappa` is not a number from 0 on"),
        ("tau = \"5\"", "`tau` is not a number"),
        ("min_connections = 5", "`min_connections`"),
        ("weight = 1", "unknown key `weight` in [stream]"),
    ] {
        let text = format!("[agent]\nconnections = 4\n[stream]\n{lines}");
        assert_refused(&text, &["agent.toml:4", what]);
    }
    for due in ["by = \"06:00\"", "within = \"4h\""] {
        let lines = format!("mode = \"stream\"\n{due}");
        assert_refused(
            &push(&lines),
            &["`mode` has no meaning here", "take it out"],
        );
    }
}

#[test]
fn what_has_no_meaning_for_a_pull_is_refused() {
    let pull = |line: &str| {
        with_job(&format!(
            "direction = \"pull\"\nsource = \"nas:home\"\ndestination = \"/home\"\n{line}"
        ))
    };
    for (line, what) in [
        (
            "verify = \"read-back\"",
            "`verify = \"read-back\"` has no meaning for a pull",
        ),
        (
            "one_file_system = true",
            "`one_file_system` has no meaning for a pull",
        ),
        ("check = \"daily\"", "`check` has no meaning for a pull"),
        (
            "check_bytes_per_day = 5",
            "`check_bytes_per_day` has no meaning for a pull",
        ),
    ] {
        assert_refused(&pull(line), &[what, "take it out"]);
        config(&push(line));
    }
    assert_refused(
        &push("setuid = true"),
        &["`setuid` has no meaning for a push", "--setuid"],
    );
    config(&push("setuid = false"));
    for line in [
        "verify = \"sent\"",
        "one_file_system = false",
        "setuid = true",
        "detect = \"content\"\nexclude = [\"*.tmp\"]",
    ] {
        config(&pull(line));
    }
}

#[test]
fn jobs_have_names_of_their_own() {
    let two = |a: &str, b: &str| {
        format!(
            "{STORES}[[jobs]]\nname = {a:?}\nsource = \"/a\"\ndestination = \"nas:a\"\n\
             [[jobs]]\nname = {b:?}\nsource = \"/b\"\ndestination = \"nas:b\"\n"
        )
    };
    assert_eq!(config(&two("a", "b")).jobs.len(), 2);
    assert_refused(&two("a", "a"), &["a job `a` already", "of its own"]);
    for name in ["", "A", "a b", "a_b", "-a", "\u{e9}", &"a".repeat(64)] {
        assert_refused(&two("a", name), &["is not a valid job name", "a to z"]);
    }
    assert_eq!(config(&two("a", &"a".repeat(63))).jobs.len(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: proptest::test_runner::RngSeed::Fixed(20_260_502),
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_broken_example_is_taken_or_refused_without_panic(
        at in 0..EXAMPLE.len(),
        length in 0..40_usize,
        with in "[a-z0-9=\"\\[\\]{}.,:/\n -]{0,8}|\\PC{0,3}",
    ) {
        let from = EXAMPLE.floor_char_boundary(at);
        let to = EXAMPLE.floor_char_boundary((from + length).min(EXAMPLE.len()));
        let mut text = EXAMPLE.to_owned();
        text.replace_range(from..to, &with);
        if let Err(problems) = read(&text) {
            let lines = text.lines().count() + 1;
            prop_assert!(!problems.found.is_empty());
            for problem in problems.found {
                prop_assert!((1..=lines).contains(&problem.line), "{problem:?} in {text}");
                prop_assert!(problem.column >= 1);
            }
        }
    }
}
