//! `[agent]`, and what systemd says where it is silent.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use dalbe::weight::MIN_WEIGHT;
use toml::{Spanned, Value};

use super::values::{absolute, rate, weight};
use crate::config::Agent;
use crate::config::problem::Complaints;
use crate::config::raw::RawAgent;

/// Where metrics and page are, on this machine only.
const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9797);
/// m_max of each direction: enough to catch up on a long path, few enough for any
/// server.
const CONNECTIONS: u32 = 4;

pub(super) fn agent(
    raw: RawAgent,
    variable: impl Fn(&str) -> Option<OsString>,
    complaints: &mut Complaints<'_>,
) -> Agent {
    // systemd lists several directories with colons between them.
    let directory = |name: &str, default: &str| {
        let list = variable(name).unwrap_or_default();
        let first = list.as_bytes().split(|&byte| byte == b':').next();
        let first = first.filter(|path| path.starts_with(b"/"));
        first.map_or(PathBuf::from(default), |path| {
            PathBuf::from(OsString::from_vec(path.to_vec()))
        })
    };
    let mut path = |key, given: Option<Spanned<String>>| {
        given.and_then(|given| absolute(key, &given, complaints))
    };
    let state = path("state", raw.state);
    let socket = path("socket", raw.socket);
    let default_socket = || directory("RUNTIME_DIRECTORY", "/run/fairbat").join("agent.sock");
    Agent {
        state: state.unwrap_or_else(|| directory("STATE_DIRECTORY", "/var/lib/fairbat")),
        socket: socket.unwrap_or_else(default_socket),
        listen: listen(raw.listen.as_ref(), complaints),
        connections: connections(raw.connections.as_ref(), complaints),
        min_weight: weight(raw.min_weight.as_ref(), MIN_WEIGHT, complaints).unwrap_or(MIN_WEIGHT),
        limit_rate: rate(raw.limit_rate.as_ref(), complaints).flatten(),
    }
}

fn listen(given: Option<&Spanned<Value>>, complaints: &mut Complaints<'_>) -> Option<SocketAddr> {
    let Some(given) = given else {
        return Some(LISTEN);
    };
    let address = match given.get_ref() {
        Value::Boolean(false) => return None,
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    if address.is_none() {
        let hint = "write for example \"127.0.0.1:9797\" or \"[::1]:9797\", or false for neither \
            metrics nor page";
        complaints.add(given.span(), "`listen` is no address and port", hint);
    }
    address
}

fn connections(given: Option<&Spanned<i64>>, complaints: &mut Complaints<'_>) -> u32 {
    let Some(given) = given else {
        return CONNECTIONS;
    };
    let number = *given.get_ref();
    match u32::try_from(number) {
        Ok(number @ 1..=64) => number,
        _ => {
            complaints.add(
                given.span(),
                format!("`connections` is {number}"),
                "write 1 to 64",
            );
            CONNECTIONS
        }
    }
}
