//! From the file as written to its meaning, with all checks. Each problem comes with
//! advice. A wrong value is left out, so that one pass finds all problems.

mod jobs;
mod overlaps;
mod stores;
mod values;

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use dalbe::weight::MIN_WEIGHT;
use toml::{Spanned, Value};

use super::problem::Checker;
use super::raw::{Raw, RawAgent};
use super::{Agent, Config};

/// Default address of the metrics and the page: this machine only.
const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9797);
/// Default m_max of each direction. Four connections are enough to catch up on a long
/// path, and no server minds them.
const DEFAULT_CONNECTIONS: u32 = 4;
/// Largest m_max.
const MAX_CONNECTIONS: u32 = 64;

/// The configuration. It is valid only if there are no problems.
pub(crate) fn resolve(
    raw: Raw,
    variable: impl Fn(&str) -> Option<OsString>,
    check: &mut Checker<'_>,
) -> Config {
    let agent = agent(&raw.agent.unwrap_or_default(), variable, check);
    let stores = stores::stores(raw.stores, check);
    let jobs = jobs::jobs(raw.jobs, &stores, agent.min_weight, check);
    overlaps::check_overlaps(&jobs, &stores, check);
    let valid = stores.into_iter();
    Config {
        agent,
        stores: valid
            .filter_map(|(name, store)| Some((name, store?)))
            .collect(),
        jobs: jobs.into_iter().map(|located| located.job).collect(),
    }
}

/// `[agent]`. Its directories default to those that systemd sets.
fn agent(
    raw: &RawAgent,
    variable: impl Fn(&str) -> Option<OsString>,
    check: &mut Checker<'_>,
) -> Agent {
    // systemd separates several directories with colons.
    let directory = |name: &str, default: &str| {
        let list = variable(name).unwrap_or_default();
        let first = list.as_bytes().split(|&byte| byte == b':').next();
        let first = first.filter(|path| path.starts_with(b"/"));
        first.map_or(PathBuf::from(default), |path| {
            PathBuf::from(OsString::from_vec(path.to_vec()))
        })
    };
    let mut path = |key, given: &Option<Spanned<String>>| {
        let given = given.as_ref();
        given.and_then(|given| check.absolute_path(key, given))
    };
    let state = path("state", &raw.state);
    let socket = path("socket", &raw.socket);
    let default_socket = || directory("RUNTIME_DIRECTORY", "/run/fairbat").join("agent.sock");
    let min_weight = check.weight(raw.min_weight.as_ref(), MIN_WEIGHT);
    Agent {
        state: state.unwrap_or_else(|| directory("STATE_DIRECTORY", "/var/lib/fairbat")),
        socket: socket.unwrap_or_else(default_socket),
        listen: listen(raw.listen.as_ref(), check),
        connections: connections(raw.connections.as_ref(), check),
        min_weight: min_weight.unwrap_or(MIN_WEIGHT),
        limit_rate: check.rate(raw.limit_rate.as_ref()).flatten(),
    }
}

fn listen(given: Option<&Spanned<Value>>, check: &mut Checker<'_>) -> Option<SocketAddr> {
    let Some(given) = given else {
        return Some(DEFAULT_LISTEN);
    };
    let address = match given.get_ref() {
        Value::Boolean(false) => return None,
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    if address.is_none() {
        let advice = "write for example \"127.0.0.1:9797\" or \"[::1]:9797\", or false to turn \
            off metrics and page";
        check.add(
            given.span(),
            "`listen` is not an address with a port",
            advice,
        );
    }
    address
}

fn connections(given: Option<&Spanned<i64>>, check: &mut Checker<'_>) -> u32 {
    let Some(given) = given else {
        return DEFAULT_CONNECTIONS;
    };
    let number = *given.get_ref();
    match u32::try_from(number) {
        Ok(number @ 1..=MAX_CONNECTIONS) => number,
        _ => {
            let advice = format!("write 1 to {MAX_CONNECTIONS}");
            check.add(given.span(), format!("`connections` is {number}"), advice);
            DEFAULT_CONNECTIONS
        }
    }
}
