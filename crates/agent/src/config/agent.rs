//! The settings of the agent itself: `[agent]`.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use dalbe::sender::SenderPolicy;
use dalbe::weight::{ControllerPolicy, MIN_WEIGHT};
use fairbat::lane::{AdmissionSettings, InvalidSettings, LawChanges};
use fairbat::machine;
use toml::Value;

use super::table::Table;

/// Default directory of the state.
pub const STATE: &str = "/var/lib/fairbat";
/// Default directory of the socket.
pub const RUNTIME: &str = "/run/fairbat";
/// Default file with what is held of others. It is fixed, for two services use it, and each
/// has a `$RUNTIME_DIRECTORY` of its own.
const HOLD_STATUS: &str = "/run/fairbat/hold/status.json";
/// Default address of the metrics and the page: this machine only.
const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9797);
/// Default m_max of each direction. Four connections are enough to catch up on a long
/// path, and no server minds them.
const DEFAULT_CONNECTIONS: u32 = 4;
/// Default of `max_weight`: a deadline makes the agent one ordinary connection at most.
const DEFAULT_MAX_WEIGHT: u32 = 1;
/// Largest m_max, and largest `max_weight`.
const MAX_CONNECTIONS: u32 = 64;

/// The settings that all jobs share.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentConfig {
    /// Directory of the state that survives a restart.
    pub state: PathBuf,
    /// Socket for the commands of `fairbat`.
    pub socket: PathBuf,
    /// Whether other processes of this machine may share the lanes.
    pub share_lanes: bool,
    /// Address of the metrics and the page; `None` turns both off.
    pub listen: Option<SocketAddr>,
    /// File in which `fairbat-agent hold` tells what it holds.
    pub hold_status: PathBuf,
    /// m_max: connections of each direction, 1 to 64.
    pub connections: u32,
    /// w_min, 0.02 to 1, for jobs without their own.
    pub min_weight: f64,
    /// All jobs of a direction together weigh at most as much as so many ordinary
    /// connections, 1 to 64.
    pub max_weight: u32,
    /// Which congestion control of FAIRBAT sends, where they are set up.
    pub sender: SenderPolicy,
    /// What raises the weight of a direction for deadlines.
    pub controller: ControllerPolicy,
    /// The law for tasks of the mode stream; its m_max is `connections`.
    pub stream: AdmissionSettings,
    /// Limit on the rate of all jobs together, byte/s.
    pub limit_rate: Option<u64>,
    /// The group whose members may restore, by name; `None` lets everybody who may open
    /// the socket restore.
    pub restore_group: Option<String>,
    /// Whether an agent that root starts keeps the rights that give files their owners.
    pub restore_owners: bool,
    /// Where an agent that root starts may write besides: downloads and restores.
    pub write_paths: Vec<PathBuf>,
}

impl AgentConfig {
    pub(crate) const KEYS: [&str; 14] = [
        "state",
        "socket",
        "share_lanes",
        "listen",
        "hold_status",
        "connections",
        "min_weight",
        "max_weight",
        "sender",
        "controller",
        "limit_rate",
        "restore_group",
        "restore_owners",
        "write_paths",
    ];

    /// The settings without a file. The directories are those that systemd sets.
    pub(crate) fn new(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        // systemd separates several directories with colons.
        let directory = |name: &str, default: &str| {
            let list = variable(name).unwrap_or_default();
            let first = list.as_bytes().split(|&byte| byte == b':').next();
            let first = first.filter(|path| path.starts_with(b"/"));
            first.map_or(PathBuf::from(default), |path| {
                PathBuf::from(OsString::from_vec(path.to_vec()))
            })
        };
        Self {
            state: directory("STATE_DIRECTORY", STATE),
            socket: directory("RUNTIME_DIRECTORY", RUNTIME).join("agent.sock"),
            share_lanes: true,
            listen: Some(DEFAULT_LISTEN),
            hold_status: PathBuf::from(HOLD_STATUS),
            connections: DEFAULT_CONNECTIONS,
            min_weight: MIN_WEIGHT,
            max_weight: DEFAULT_MAX_WEIGHT,
            sender: SenderPolicy::default(),
            controller: ControllerPolicy::default(),
            stream: AdmissionSettings::stream(),
            limit_rate: None,
            restore_group: None,
            restore_owners: false,
            write_paths: Vec::new(),
        }
    }

    /// The socket where other processes join the lanes: beside that for commands.
    #[must_use]
    pub fn lane_socket(&self) -> Option<PathBuf> {
        self.share_lanes
            .then(|| self.socket.with_file_name(machine::SOCKET))
    }

    /// File with the key of a job.
    #[must_use]
    pub fn key_file(&self, job: &str) -> PathBuf {
        self.state.join("keys").join(job)
    }

    /// Takes over the settings of the table.
    pub(crate) fn read(&mut self, mut table: Table<'_, '_>) {
        if let Some(state) = table.path("state") {
            self.state = state;
        }
        if let Some(socket) = table.path("socket") {
            self.socket = socket;
        }
        if let Some(share) = table.get("share_lanes") {
            self.share_lanes = share;
        }
        if let Some(listen) = table.get("listen") {
            self.listen = address(&listen, &mut table);
        }
        if let Some(file) = table.path("hold_status") {
            self.hold_status = file;
        }
        if let Some(number) = table.get("connections") {
            self.connections =
                connections("connections", number, &mut table).unwrap_or(self.connections);
        }
        if let Some(weight) = table.min_weight() {
            self.min_weight = weight;
        }
        if let Some(number) = table.get("max_weight") {
            self.max_weight =
                connections("max_weight", number, &mut table).unwrap_or(self.max_weight);
        }
        if let Some(sender) = table.choice("sender", &SENDERS) {
            self.sender = sender;
        }
        let controllers = ControllerPolicy::ALL.map(|policy| (policy.name(), policy));
        if let Some(controller) = table.choice("controller", &controllers) {
            self.controller = controller;
        }
        self.limit_rate = table.limit_rate();
        self.restore_group = table.get("restore_group");
        self.restore_owners = table.get("restore_owners").unwrap_or(false);
        let paths: Vec<String> = table.get("write_paths").unwrap_or_default();
        let paths = paths.iter();
        self.write_paths = paths
            .filter_map(|path| table.absolute_path("write_paths", path))
            .collect();
    }
}

fn address(given: &Value, table: &mut Table<'_, '_>) -> Option<SocketAddr> {
    let address = match given {
        Value::Boolean(false) => return None,
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    if address.is_none() {
        let advice = "write for example \"127.0.0.1:9797\" or \"[::1]:9797\", or false to turn \
            off metrics and page";
        table.wrong("listen", "is not an address with a port", advice);
    }
    address
}

/// The congestion controls by the names that flags give them; the first is the default.
const SENDERS: [(&str, SenderPolicy); 3] = [
    ("vegas", SenderPolicy::Vegas),
    ("cdg", SenderPolicy::Cdg),
    ("cubic", SenderPolicy::Cubic),
];

/// The laws of `[stream]` by their names; the first is the default.
const LAWS: [(&str, StreamLaw); 2] = [("damped", StreamLaw::Damped), ("paper", StreamLaw::Paper)];

#[derive(Debug, Clone, Copy)]
enum StreamLaw {
    Damped,
    Paper,
}

impl AgentConfig {
    pub(crate) const STREAM_KEYS: [&str; 5] = ["law", "tau", "gamma", "kappa", "min_connections"];

    /// Takes over the settings of `[stream]`, after those of `[agent]`.
    pub(crate) fn read_stream(&mut self, mut table: Table<'_, '_>) {
        let named = match table.choice("law", &LAWS) {
            Some(StreamLaw::Paper) => AdmissionSettings::paper(),
            Some(StreamLaw::Damped) | None => AdmissionSettings::stream(),
        };
        let mut number = |key: &str| {
            // TOML tells 5 from 5.0.
            match table.get(key)? {
                Value::Integer(whole) => Some(whole as f64),
                Value::Float(number) => Some(number),
                _ => {
                    table.wrong(key, "is not a number", "write a number, such as 0.5");
                    None
                }
            }
        };
        let changes = LawChanges {
            tau: number("tau"),
            gamma: number("gamma"),
            kappa: number("kappa"),
            m_min: number("min_connections"),
        };
        let (key, what, advice) = match named.changed(changes, self.connections) {
            Ok(law) => {
                self.stream = law;
                return;
            }
            Err(InvalidSettings::Target) => ("tau", "is not above 0", "write for example 5"),
            Err(InvalidSettings::Gain) => ("gamma", "is not above 0", "write for example 0.02"),
            Err(InvalidSettings::Damping) => {
                ("kappa", "is not a number from 0 on", "write for example 1")
            }
            Err(InvalidSettings::Period | InvalidSettings::Limits) => {
                let what = "is not above 0, or is more than `connections` of [agent]";
                ("min_connections", what, "write for example 0.2")
            }
        };
        table.wrong(key, what, advice);
    }
}

/// The number of connections that this key gives.
pub(crate) fn connections(key: &str, number: i64, table: &mut Table<'_, '_>) -> Option<u32> {
    let valid = u32::try_from(number).ok();
    let valid = valid.filter(|number| (1..=MAX_CONNECTIONS).contains(number));
    if valid.is_none() {
        let advice = format!("write 1 to {MAX_CONNECTIONS}");
        table.wrong(key, &format!("is {number}"), &advice);
    }
    valid
}
