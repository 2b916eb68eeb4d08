//! rclone as a contender that pushes: what one would type to have a directory in a
//! store as soon as can be.

use std::fs;
use std::io;
use std::process::Command;

use super::download::failed;
use super::over::Over;
use super::process::Program;
use super::site::{FILE, Site};
use super::store::{self, ACCESS_KEY, BUCKET, SECRET_KEY, Store};
use crate::record::BackgroundRecord;

/// What it is called in the configuration.
const REMOTE: &str = "store";

/// What its files are called.
const NAME: &str = "rclone-push";

/// Copies the directory to the store, without a limit, until that is done or the
/// run is over.
pub(super) fn push(site: &Site, store: &Store, over: &Over) -> BackgroundRecord {
    if !site.is_time(over) {
        return BackgroundRecord::default();
    }
    let program = command(site, store)
        .and_then(|command| Program::start(&site.server, &site.work, NAME, command));
    let mut program = match program {
        Ok(program) => program,
        Err(error) => return failed(format!("start rclone: {error}")),
    };
    let status = program.wait(over);
    let ended = site.clock.seconds();
    let cpu_s = program.cpu_s();
    program.end();
    let mut record = BackgroundRecord {
        bytes: Some(store::bytes(&site.download.join(BUCKET))),
        cpu_s,
        ..BackgroundRecord::default()
    };
    match status {
        Some(status) if status.success() => record.done = Some(ended),
        Some(status) => record.failure = Some(program.complaint(status)),
        None => {}
    }
    record
}

fn command(site: &Site, store: &Store) -> io::Result<Command> {
    let config = site.work.join("rclone.conf");
    let endpoint = store.endpoint();
    fs::write(
        &config,
        format!(
            "[{REMOTE}]\ntype = s3\nprovider = Other\nregion = us-east-1\nendpoint = {endpoint}\n\
             access_key_id = {ACCESS_KEY}\nsecret_access_key = {SECRET_KEY}\nno_check_bucket = true\n"
        ),
    )?;
    let mut command = Command::new("rclone");
    command
        .args(["copy", "--config"])
        .arg(config)
        .arg(site.origin.join(FILE))
        .arg(format!("{REMOTE}:{BUCKET}/{FILE}"));
    Ok(command)
}
