//! iperf3 with a congestion control of its own. Its server, at the lab's
//! first host, is the one that sends (`--reverse`): so an end is there when
//! the receiver has everything, not when the sender's socket has.

use std::net::Ipv4Addr;
use std::process::{Command, ExitStatus};

use fairbat_tests::port::Port;
use serde_json::Value;

use crate::contender::process::{Over, Program};
use crate::contender::site::Site;
use crate::contender::{CongestionControl, ContenderError};
use crate::host::Class;
use crate::samples::BackgroundRecord;

/// iperf3's server, for one test.
#[derive(Debug)]
pub(crate) struct Server {
    program: Program,
    port: Port,
}

impl Server {
    pub(crate) fn start(site: &Site) -> Result<Self, ContenderError> {
        let port = site.own_port(&site.server);
        let mut command = Command::new("iperf3");
        command.args(["--server", "--one-off", "--json"]);
        command.args(["--port", &port.address().port().to_string()]);
        command.args(["--bind", &site.server_address().to_string()]);
        Program::start(&site.server, &site.work, "iperf3-server", command)
            .map(|program| Self { program, port })
            .map_err(ContenderError::cannot("start iperf3's server"))
    }

    /// Waits until it listens.
    fn wait(&mut self, site: &Site, over: &Over) -> Result<(), String> {
        let mut status = None;
        let is_over = over.comes_before(|| {
            status = self.program.ended();
            let (address, port) = (
                site.server.address(Class::Background),
                self.port.address().port(),
            );
            status.is_some() || site.server.within(move || listens(address, port))
        });
        match status {
            Some(status) => Err(complaint(&self.program, status)),
            None if is_over => Err("iperf3's server was not ready in time".to_owned()),
            None => Ok(()),
        }
    }
}

/// Receives until everything is there or the run is over.
pub(crate) fn run(
    site: &Site,
    mut server: Server,
    congestion_control: CongestionControl,
    over: &Over,
) -> Result<BackgroundRecord, String> {
    server.wait(site, over)?;
    if !site.is_time(over) {
        return Ok(BackgroundRecord::default());
    }
    let mut command = Command::new("iperf3");
    command.args(["--json", "--reverse"]);
    command.args(["--client", &site.server_address().to_string()]);
    command.args(["--port", &server.port.address().port().to_string()]);
    command.args(["--bind", &site.client_address().to_string()]);
    command.args(["--congestion", congestion_control.name()]);
    match site.end() {
        Some(bytes) => command.args(["--bytes", &bytes.to_string()]),
        None => command.args(["--time", "0"]),
    };
    let mut client = Program::start(&site.client, &site.work, "iperf3", command)
        .map_err(|error| format!("start iperf3: {error}"))?;
    let status = client.wait(over);
    let ended = site.clock.seconds();
    // One after the other: each writes a report of what there was when the other
    // left it, and one that is asked to end while it writes may end without. The
    // client tells the server, if there still is a way to it.
    client.end();
    if !server.program.ends_soon() {
        server.program.end();
    }
    let mut record = BackgroundRecord {
        bytes: report(&client)["end"]["sum_received"]["bytes"].as_u64(),
        ..BackgroundRecord::default()
    };
    match status {
        // A sender that has sent nothing names no congestion control.
        None if record.bytes.unwrap_or(0) == 0 => return Ok(record),
        None => {}
        // With --json some failures end with status 0.
        Some(status) if status.success() && report(&client)["error"].is_null() => {
            record.done = Some(ended);
        }
        Some(status) => {
            record.failure = Some(complaint(&client, status));
            return Ok(record);
        }
    }
    record.failure = other_congestion_control(&report(&server.program), congestion_control);
    Ok(record)
}

/// What is wrong with the congestion control that the one who sent tells of.
/// The receiver learns of it only from a test that came to its end.
fn other_congestion_control(report: &Value, asked: CongestionControl) -> Option<String> {
    let asked = asked.name();
    match report["end"]["sender_tcp_congestion"].as_str() {
        Some(found) if found == asked => None,
        Some(found) => Some(format!("iperf3 sent with {found} in place of {asked}")),
        None => Some(format!("iperf3 does not say that it sent with {asked}")),
    }
}

/// What it tells at its end.
fn report(program: &Program) -> Value {
    serde_json::from_str(&program.stdout()).unwrap_or_default()
}

/// With --json it complains in its report.
fn complaint(program: &Program, status: ExitStatus) -> String {
    match report(program)["error"].as_str() {
        Some(error) => format!("iperf3 ended too soon, {status}: {error}"),
        None => program.complaint(status),
    }
}

/// Whether something listens at this address, in this thread's network
/// namespace. A connection would be the one test that the server is there for.
fn listens(address: Ipv4Addr, port: u16) -> bool {
    let table = std::fs::read_to_string("/proc/thread-self/net/tcp").unwrap_or_default();
    is_listed(&table, address, port)
}

/// Whether a table as in `/proc/net/tcp` says so.
fn is_listed(table: &str, address: Ipv4Addr, port: u16) -> bool {
    // An address is printed as the number that its four bytes are in memory.
    let number = u32::from_ne_bytes(address.octets());
    let local = format!("{number:08X}:{port:04X}");
    table.lines().any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let is_local = fields.next() == Some(&local);
        let state = fields.nth(1);
        is_local && state == Some("0A")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn a_socket_that_listens_is_found() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue\n   \
             0: 02004E0A:1451 00000000:0000 0A 00000000:00000000\n   \
             1: 02014E0A:1451 02004E0A:9999 01 00000000:00000000\n";
        assert!(is_listed(table, Ipv4Addr::new(10, 78, 0, 2), 0x1451));
        assert!(!is_listed(table, Ipv4Addr::new(10, 78, 0, 2), 0x1452));
        assert!(!is_listed(table, Ipv4Addr::new(10, 78, 1, 2), 0x1451));
        assert!(!is_listed("", Ipv4Addr::LOCALHOST, 0x1451));
    }

    #[test]
    fn the_sender_has_the_congestion_control_that_was_asked_for() {
        let wrong = |report| other_congestion_control(&report, CongestionControl::Bbr);
        let sent = |name: &str| serde_json::json!({"end": {"sender_tcp_congestion": name}});
        assert_eq!(wrong(sent("bbr")), None);
        let expected = "iperf3 sent with cubic in place of bbr";
        assert_eq!(wrong(sent("cubic")).as_deref(), Some(expected));
        let expected = "iperf3 does not say that it sent with bbr";
        assert_eq!(wrong(Value::Null).as_deref(), Some(expected));
    }
}
