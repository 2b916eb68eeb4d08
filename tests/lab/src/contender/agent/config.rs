//! The configuration that the agent is started with (docs/agent.toml).

use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::super::site::Site;
use super::super::store::{ACCESS_KEY, BUCKET, SECRET_KEY, Store};
use super::super::transfers::Served;
use crate::scenario::Background;

/// What the store is called in it.
const STORE: &str = "store";

/// Writes it for the transfers of the scenario, and returns where.
///
/// # Errors
/// Whatever the file system says.
pub(super) fn write(site: &Site, store: &Store, socket: &Path) -> io::Result<PathBuf> {
    let state = site.work.join("agent-state");
    fs::create_dir_all(&state)?;
    let credentials = site.work.join("credentials");
    fs::write(
        &credentials,
        format!("access_key_id = {ACCESS_KEY}\nsecret_access_key = {SECRET_KEY}\n"),
    )?;
    fs::set_permissions(&credentials, Permissions::from_mode(0o600))?;
    // Nobody scrapes it.
    let mut text = format!(
        "[agent]\nstate = {state:?}\nsocket = {socket:?}\nlisten = false\n{}\
         [stores.{STORE}]\ntype = \"s3\"\nendpoint = {:?}\nbucket = {BUCKET:?}\n\
         credentials = {credentials:?}\n",
        flows(&site.background),
        store.endpoint(),
    );
    for served in &site.served {
        text.push_str(&job(served, &site.origin));
    }
    let path = site.work.join("agent.toml");
    fs::write(&path, text)?;
    Ok(path)
}

/// What the scenario says of its connections.
fn flows(background: &Background) -> String {
    let mut text = String::new();
    if let Some(connections) = background.connections {
        let _ = writeln!(text, "connections = {connections}");
    }
    if let Some(weight) = background.weight {
        let _ = writeln!(text, "min_weight = {weight:?}");
    }
    text
}

/// A job that is begun by hand.
fn job(served: &Served, origin: &Path) -> String {
    let name = &served.name;
    let source = origin.join(name);
    let mut text = format!(
        "[[jobs]]\nname = {name:?}\nsource = {source:?}\ndestination = \"{STORE}:{name}\"\n"
    );
    if let Some(time) = served.deadline_s {
        let _ = writeln!(text, "within = \"{time:.3}s\"");
    }
    text
}
