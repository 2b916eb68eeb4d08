//! Texts of configurations, and what comes of them.

mod meaning;
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

fn job(text: &str) -> Job {
    config(text).jobs.remove(0)
}
