//! Texts of configurations, and what comes of them.

mod meaning;
mod overlaps;
mod refusals;

use dalbe::sender::SenderPolicy;
use dalbe::weight::ControllerPolicy;
use fairbat::lane::AdmissionSettings;

use super::*;

/// The example that is handed out.
const EXAMPLE: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/agent.toml"
));

/// Stores for jobs to name.
const STORES: &str = r#"
[stores.offsite]
type = "s3"
bucket = "backups"
prefix = "hosts/alpha"

[stores.nas]
type = "webdav"
url = "https://nas.example.org/dav"

[stores.disk]
type = "local"
path = "/mnt/backup"
"#;

fn no_variables(_: &str) -> Option<OsString> {
    None
}

fn read(text: &str) -> Result<Config, Problems> {
    Config::parse(text, Path::new("agent.toml"), no_variables)
}

fn config(text: &str) -> Config {
    read(text).unwrap_or_else(|problems| panic!("{text}\n{problems}"))
}

/// The stores above, and a job with these lines.
fn with_job(lines: &str) -> String {
    format!("{STORES}[[jobs]]\nname = \"j\"\n{lines}")
}

/// A push, with these lines besides.
fn push(lines: &str) -> String {
    with_job(&format!(
        "source = \"/home\"\ndestination = \"nas:home\"\n{lines}"
    ))
}

fn job(text: &str) -> JobConfig {
    config(text).jobs.remove(0)
}

/// All complaints about a text, a line each.
fn complaints(text: &str) -> String {
    match read(text) {
        Ok(config) => panic!("{text}\nis taken: {config:?}"),
        Err(problems) => problems.to_string(),
    }
}

/// That there is one complaint, and what is in it.
fn assert_refused(text: &str, parts: &[&str]) {
    let complaints = complaints(text);
    assert_eq!(complaints.lines().count(), 1, "{text}\n{complaints}");
    for part in parts {
        assert!(complaints.contains(part), "{part:?} is not in {complaints}");
    }
}
