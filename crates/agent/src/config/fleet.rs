//! `[fleet]`: the lane of the site that the agent takes part in.

use std::path::PathBuf;

use toml::Value;
use url::Url;

use super::agent::connections;
use super::table::Table;

pub(crate) const KEYS: [&str; 7] = [
    "url",
    "site",
    "host",
    "credentials",
    "cacert",
    "coordinate",
    "connections",
];

/// Longest name of a site or a host, bytes.
const MAX_NAME_LENGTH: usize = 64;

/// Default m_max of each direction of the site.
const DEFAULT_CONNECTIONS: u32 = 8;

/// The lane of a site, over NATS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetConfig {
    /// A NATS server, `nats` or `tls`. It names the others of its cluster.
    pub url: Url,
    /// The machines behind one uplink, by a name of their own.
    pub site: String,
    /// This machine, by a name of its own within the site.
    pub host: String,
    /// File with the credentials for NATS.
    pub credentials: Option<PathBuf>,
    /// File with certificate authorities to trust in place of those of the system. With it,
    /// connections are always encrypted.
    pub cacert: Option<PathBuf>,
    /// Whether this agent may become the coordinator of the site.
    pub coordinate: bool,
    /// m_max of each direction of the site, 1 to 64.
    pub connections: u32,
}

/// Reads the table. Reads all keys before it gives up. `machine` is the host name of this
/// machine.
pub(crate) fn fleet(mut table: Table<'_, '_>, machine: &str) -> Option<FleetConfig> {
    let url = table.required("url", "write url = \"tls://host.example:4222\"");
    let url = url.and_then(|text| server(&text, &mut table));
    let site = table.required("site", "write site = \"NAME\"");
    let site = site.and_then(|text| name("site", &text, &text, &mut table));
    let host = match table.has("host") {
        true => table.get("host"),
        false => Some(machine.to_owned()),
    };
    let host = host.and_then(|text: String| name("host", &text, &as_token(&text), &mut table));
    let credentials = credentials(&mut table);
    let cacert = table.path("cacert");
    let coordinate = table.get("coordinate").unwrap_or(true);
    let number = table.get("connections");
    let connections = number.and_then(|number| connections("connections", number, &mut table));
    Some(FleetConfig {
        url: url?,
        site: site?,
        host: host?,
        credentials,
        cacert,
        coordinate,
        connections: connections.unwrap_or(DEFAULT_CONNECTIONS),
    })
}

/// The URL of a server. Problems never show it.
fn server(text: &str, table: &mut Table<'_, '_>) -> Option<Url> {
    let of_nats = |url: &Url| matches!(url.scheme(), "nats" | "tls") && url.has_host();
    let (what, advice) = match Url::parse(text).ok().filter(of_nats) {
        None => (
            "is not a nats or tls URL",
            "write for example tls://host.example:4222",
        ),
        Some(url) if !url.username().is_empty() || url.password().is_some() => (
            "contains a user name, a password or a token",
            "take it out, and name a file in `credentials`",
        ),
        Some(url)
            if !matches!(url.path(), "" | "/")
                || url.query().is_some()
                || url.fragment().is_some() =>
        {
            (
                "has something after its host",
                "write for example tls://host.example:4222",
            )
        }
        Some(url) => return Some(url),
    };
    table.wrong("url", what, advice);
    None
}

/// The path of the file. Problems never show it, because it may be the secret itself.
fn credentials(table: &mut Table<'_, '_>) -> Option<PathBuf> {
    const KEY: &str = "credentials";
    match table.get(KEY)? {
        Value::String(path) if path.starts_with('/') => table.absolute_path(KEY, &path),
        _ => {
            let advice = "write the absolute path of a .creds file; do not write secrets here";
            table.wrong(KEY, "is not an absolute path", advice);
            None
        }
    }
}

/// A host name as a part of a subject, in which dots separate parts.
fn as_token(host: &str) -> String {
    host.to_ascii_lowercase().replace('.', "_")
}

/// Whether a name can be a part of a subject as it is.
pub(crate) fn is_name(text: &str) -> bool {
    let plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    (1..=MAX_NAME_LENGTH).contains(&text.len()) && text.bytes().all(plain)
}

/// The name that is meant by what is given.
fn name(key: &str, given: &str, meant: &str, table: &mut Table<'_, '_>) -> Option<String> {
    if is_name(meant) {
        return Some(meant.to_owned());
    }
    let advice =
        format!("write {key} = \"NAME\" with a to z, 0 to 9, - and _, at most {MAX_NAME_LENGTH}");
    table.report(
        key,
        format!("{given:?} is not a valid name of a {key}"),
        advice,
    );
    None
}
