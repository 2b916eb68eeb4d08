//! `--input-file`.

use std::io::Write;

use super::*;

const LIST: &str = "# mirrors\n\nhttp://a/1\r\n  http://b/2#x  \n#http://c/3\nhttp://d/4";

fn hosts(requests: &[TransferRequest]) -> Vec<&str> {
    requests.iter().filter_map(|r| r.url.host_str()).collect()
}

#[test]
fn a_list_is_read_from_a_file_or_standard_input() {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(LIST.as_bytes()).expect("it is writable");
    let path = file.path().to_str().expect("its name is Unicode");
    assert_eq!(hosts(&requests(&["-i", path])), ["a", "b", "d"]);
    assert_eq!(
        hosts(&requests(&["-i", path, "http://z/"])),
        ["z", "a", "b", "d"]
    );
    let process = Process {
        stdin: LIST,
        ..Process::default()
    };
    let listed = process.batch(&["-i", "-"]).expect("the list is right");
    assert_eq!(hosts(&listed), ["a", "b", "d"]);
}

#[test]
fn a_wrong_list_is_explained() {
    assert!(complaint(&["-i", "/no/such/list"]).contains("/no/such/list"));
    assert!(complaint(&["-i", "-"]).contains("no URL in standard input"));
    let process = Process {
        stdin: "http://a/\n\nexample.org\n",
        ..Process::default()
    };
    let error = process.resolve(&["-i", "-"]).expect_err("line 3 is no URL");
    assert!(
        error.contains("standard input, line 3: example.org"),
        "{error}"
    );
}

/// The requests of a list on standard input.
fn listed(list: &'static str, flags: &[&str]) -> Result<Vec<TransferRequest>, String> {
    let process = Process {
        stdin: list,
        ..Process::default()
    };
    let requests = process.batch(&[flags, &["-i", "-"]].concat())?;
    Ok(requests)
}

#[test]
fn a_line_may_have_a_deadline_of_its_own() {
    let list = "http://a/1 deadline=18:30\nhttp://b/2\n \thttp://c/3\t deadline=90m \r\n\
        http://d/4?deadline=x deadline=2026-03-02T06:00:00+01:00";
    let deadlines = |flags: &[&str]| -> Vec<Option<String>> {
        let requests = listed(list, flags).expect("the list is right");
        assert_eq!(hosts(&requests), ["a", "b", "c", "d"]);
        assert_eq!(requests[3].url.query(), Some("deadline=x"));
        let texts = requests.iter().map(|r| r.deadline.map(|d| d.to_string()));
        texts.collect()
    };
    let own = |text: &str| Some(text.to_owned());
    let (a, c, d) = (
        own("2026-03-01T18:30:00Z"),
        own("2026-03-01T15:30:00Z"),
        own("2026-03-02T05:00:00Z"),
    );
    assert_eq!(deadlines(&[]), [a.clone(), None, c.clone(), d.clone()]);
    let general = own("2026-03-01T18:00:00Z");
    assert_eq!(deadlines(&["--deadline", "4h"]), [a, general, c, d]);
}

#[test]
fn a_deadline_of_a_line_that_is_over_counts_too() {
    let requests = listed("http://a/ deadline=2026-03-01T12:00:00Z", &[]);
    let noon = "2026-03-01T12:00:00Z".parse().ok();
    assert_eq!(requests.expect("it is right")[0].deadline, noon);
}

#[test]
fn wrong_attributes_are_refused_with_their_line_and_what_to_write() {
    for (list, line, advice) in [
        ("http://a/\n\nhttp://b/ deadlin=4h", 3, "deadline=WHEN"),
        ("http://a/ 06:00", 1, "deadline=WHEN"),
        ("http://a/b c", 1, "%20"),
        ("http://a/ Deadline=4h", 1, "deadline=WHEN"),
        ("# x\nhttp://a/ deadline=", 2, "deadline=06:00"),
        ("http://a/ deadline", 1, "deadline=06:00"),
        ("http://a/ deadline = 4h", 1, "deadline=06:00"),
        ("http://a/ deadline=soon", 1, "a duration (90s"),
        ("http://a/ deadline=2026-03-02T06:00", 1, "no time zone"),
        ("http://a/ deadline=1h 30m", 1, "\"30m\" is not"),
        ("http://a/ deadline=4h deadline=4h", 1, "two deadlines"),
        ("me:secret@h/f deadline=4h", 1, "https://h/f ?"),
    ] {
        let error = listed(list, &[]).expect_err(list);
        let place = format!("standard input, line {line}: ");
        assert!(error.starts_with(&place), "{list}: {error}");
        assert!(error.contains(advice), "{list}: {error}");
        assert!(!error.contains("secret"), "{error}");
    }
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(b"http://a/ deadline=never")
        .expect("it is writable");
    let path = file.path().to_str().expect("its name is Unicode");
    let error = complaint(&["-i", path]);
    assert!(error.starts_with(&format!("{path}, line 1: ")), "{error}");
}
