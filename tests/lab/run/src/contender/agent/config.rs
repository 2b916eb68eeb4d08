//! The configuration of an agent.

use std::fmt::Write as _;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::contender::served::{BUCKET, Served};
use crate::contender::servers::{ACCESS_KEY, SECRET_KEY, Store};
use crate::contender::site::Site;
use crate::scenario::Background;

/// The beginning of every configuration: where its state and its socket are. No program
/// scrapes its metrics.
pub(crate) fn head(site: &Site, socket: &Path) -> io::Result<String> {
    let state = site.work.join("agent-state");
    fs::create_dir_all(&state)?;
    Ok(format!(
        "[agent]\nstate = {state:?}\nsocket = {socket:?}\nlisten = false\n"
    ))
}

/// Writes a configuration, and returns where.
pub(crate) fn write_config(site: &Site, text: &str) -> io::Result<PathBuf> {
    let path = site.work.join("agent.toml");
    fs::write(&path, text)?;
    Ok(path)
}

/// What the store is called in it.
const STORE: &str = "store";

/// Writes it for the transfers of the scenario, with what it has `besides`, and returns where.
///
/// # Errors
/// Whatever the file system says.
pub(crate) fn write(
    site: &Site,
    store: &Store,
    socket: &Path,
    besides: &str,
) -> io::Result<PathBuf> {
    let credentials = site.work.join("credentials");
    fs::write(
        &credentials,
        format!("access_key_id = {ACCESS_KEY}\nsecret_access_key = {SECRET_KEY}\n"),
    )?;
    fs::set_permissions(&credentials, Permissions::from_mode(0o600))?;
    let mut text = head(site, socket)?;
    let _ = write!(
        text,
        "{}{besides}\
         [stores.{STORE}]\ntype = \"s3\"\nendpoint = {:?}\nbucket = {BUCKET:?}\n\
         credentials = {credentials:?}\n",
        flows(&site.background),
        store.endpoint(),
    );
    for served in &site.served {
        text.push_str(&job(served, &site.origin));
    }
    write_config(site, &text)
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
