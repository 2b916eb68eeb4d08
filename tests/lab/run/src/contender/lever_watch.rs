//! Watches whether a congestion control that is to hold back the connections of a
//! contender does, all the time that it sends.

use std::collections::BTreeMap;
use std::io;
use std::process::Command;
use std::thread::JoinHandle;
use std::time::Duration;

use dalbe::ebpf::WeightedCongestion;
use dalbe::sender::{SenderLeverKind, SenderPolicy};

use crate::contender::process::{End, Over};
use crate::host::Host;
use crate::samples::BackgroundRecord;

/// How often its connections are looked at. Each look is a process: ten looks a second took a third
/// of two processors with 18 labs.
pub(crate) const LOOK: Duration = Duration::from_millis(500);

/// Which connections of a host are meant.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Port {
    /// Those of a server at this port.
    Own(u16),
    /// Those to a server at this port.
    Peer(u16),
}

/// Who sends, and where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Watched<'a> {
    /// Who it is, for people.
    pub(crate) who: &'static str,
    /// Where it runs.
    pub(crate) host: &'a Host,
    /// Its connections.
    pub(crate) port: Port,
    /// The lever that it says it has.
    pub(crate) lever: &'a str,
    /// How often its connections are looked at.
    pub(crate) every: Duration,
}

/// Who watches.
pub(crate) struct LeverWatch {
    control: String,
    end: End,
    thread: JoinHandle<io::Result<Looks>>,
    /// Whether looks are so rare that a connection may come and go between two of them.
    is_rare: bool,
}

impl LeverWatch {
    /// Watches whether a congestion control of ours holds back these connections,
    /// from the start of the transfer on, which is so far away, until its end.
    ///
    /// # Errors
    /// The program has already taken another lever, or this process cannot say what
    /// the congestion control is called.
    pub(crate) fn start(watched: Watched<'_>, start: Duration) -> io::Result<Self> {
        let Watched {
            who,
            host,
            port,
            lever,
            every,
        } = watched;
        let expected = SenderLeverKind::Congestion.name();
        if lever != expected {
            return Err(io::Error::other(format!(
                "{who} holds back by {lever}, and is to be measured with {expected}: build it of \
                 the same checkout as the lab, with its default features"
            )));
        }
        let congestion = WeightedCongestion::open().map_err(io::Error::other)?;
        let control = congestion.name(SenderPolicy::default().law()).to_owned();
        Ok(Self::spawn(who, host, port, control, (start, every)))
    }

    /// The same with the congestion control of this name, whoever's it is.
    pub(crate) fn of(
        who: &'static str,
        host: &Host,
        port: Port,
        control: String,
        start: Duration,
    ) -> Self {
        Self::spawn(who, host, port, control, (start, LOOK))
    }

    fn spawn(
        who: &'static str,
        host: &Host,
        port: Port,
        control: String,
        times: (Duration, Duration),
    ) -> Self {
        let (end, over) = Over::pair();
        let looks = Looks::new(who, control.clone());
        Self {
            control,
            end,
            is_rare: times.1 > LOOK,
            thread: host.run(move || look(looks, port, times, &over)),
        }
    }

    /// Notes what has held back what this transfer has moved; it has failed if
    /// that was something else, or not always.
    pub(crate) fn finish(self, record: &mut BackgroundRecord) {
        drop(self.end);
        let fault = match self.thread.join().expect("looking does not panic") {
            Ok(looks) if self.is_rare && !looks.is_seen && looks.free.is_none() => return,
            Ok(looks) => looks.fault(),
            Err(error) => Some(format!("cannot see what holds back: {error}")),
        };
        let Some(fault) = fault else {
            record.held_by = Some(self.control);
            return;
        };
        let has_moved = record.bytes.is_some_and(|bytes| bytes > 0);
        if has_moved && record.failure.is_none() {
            record.failure = Some(fault);
        }
    }
}

/// Looks at these connections, from the first of two times on and then each time that the second
/// one has passed, until it is over, in the network namespace of this thread.
fn look(
    mut looks: Looks,
    port: Port,
    (start, every): (Duration, Duration),
    over: &Over,
) -> io::Result<Looks> {
    let mut wait = start;
    while !over.within(wait) {
        looks.take(&connections(port)?);
        wait = every;
    }
    Ok(looks)
}

/// What ss(8) says of these connections that are established, a line of each.
fn connections(port: Port) -> io::Result<String> {
    let (end, port) = match port {
        Port::Own(port) => ("sport", port),
        Port::Peer(port) => ("dport", port),
    };
    let output = Command::new("ss")
        .args([
            "-HOtin",
            "state",
            "established",
            end,
            "=",
            &format!(":{port}"),
        ])
        .output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("ss: {}", stderr.trim())))
}

/// What the looks at the connections of a transfer have shown.
#[derive(Debug)]
pub(crate) struct Looks {
    /// Whose connections they are, for people.
    who: &'static str,
    /// The congestion control that they are to have.
    control: String,
    /// Whether any connection has had it.
    is_seen: bool,
    /// Bytes that the connections have sent which the last look found without it,
    /// by peer.
    without: BTreeMap<String, u64>,
    /// The peer of the first that sent something without it.
    free: Option<String>,
}

impl Looks {
    pub(crate) fn new(who: &'static str, control: String) -> Self {
        Self {
            who,
            control,
            is_seen: false,
            without: BTreeMap::new(),
            free: None,
        }
    }

    /// Takes in a look: of each established connection a line.
    ///
    /// One that is asked for nothing has rightly what its host gives to any, so
    /// it counts only if it has sent something between two looks that both found it
    /// without ours. One look alone may come just before the server acts.
    pub(crate) fn take(&mut self, said: &str) {
        let before = std::mem::take(&mut self.without);
        for line in said.lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            // Two queues, then both ends.
            let Some(peer) = words.get(3) else {
                continue;
            };
            if words.contains(&self.control.as_str()) {
                self.is_seen = true;
                continue;
            }
            let sent = words
                .iter()
                .find_map(|word| word.strip_prefix("bytes_sent:"));
            let sent: u64 = sent.and_then(|sent| sent.parse().ok()).unwrap_or_default();
            let has_sent = before.get(*peer).is_some_and(|before| sent > *before);
            if has_sent && self.free.is_none() {
                self.free = Some((*peer).to_owned());
            }
            self.without.insert((*peer).to_owned(), sent);
        }
    }

    /// What is wrong with it, for people; `None` if ours held back all of it.
    pub(crate) fn fault(&self) -> Option<String> {
        let Self { who, control, .. } = self;
        if !self.is_seen {
            return Some(format!(
                "no connection of {who}'s has ever been seen with {control}: it was not what held \
                 back"
            ));
        }
        let peer = self.free.as_ref()?;
        Some(format!(
            "the connection of {who}'s to {peer} has sent without {control}: it was not what held \
             back all of it"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "fairbat_vegas";

    /// Connections to port 4000 and on from there, with their congestion controls
    /// and what they have sent.
    fn said(connections: &[(&str, u64)]) -> String {
        let lines = (4000..).zip(connections).map(|(port, (control, sent))| {
            format!(
                "0      36200  10.0.0.1:8080 10.0.0.2:{port} {control} wscale:10,10 rto:204 \
                 rtt:40.2/3.1 mss:1448 cwnd:10 bytes_sent:{sent} bytes_acked:{sent} segs_out:9\n"
            )
        });
        lines.collect()
    }

    fn fault(looks: &[&[(&str, u64)]]) -> Option<String> {
        let mut all = Looks::new("fairbat serve", OURS.to_owned());
        for look in looks {
            all.take(&said(look));
        }
        all.fault()
    }

    #[test]
    fn who_has_ours_whenever_it_sends_is_held_back() {
        assert_eq!(
            fault(&[
                &[],
                &[("cubic", 0)],
                &[(OURS, 9000)],
                &[(OURS, 12_000), ("cubic", 300)],
                // It idles, and then both go on.
                &[("cubic", 12_000), (OURS, 500)],
                &[("cubic", 12_000), (OURS, 900)],
                &[(OURS, 15_000)],
                &[("cubic", 15_000)],
                &[],
            ]),
            None
        );
    }

    #[test]
    fn who_never_has_ours_was_not_held_back_by_it() {
        let cases: [&[&[(&str, u64)]]; 4] = [
            &[],
            &[&[]],
            &[&[("cubic", 0)], &[("cubic", 9000)]],
            // Another of ours is not this one.
            &[&[("fairbat_vegas2", 0)], &[("fairbat_vegas2", 9000)]],
        ];
        for looks in cases {
            let fault = fault(looks).unwrap();
            assert!(
                fault.contains("ever been seen with fairbat_vegas:"),
                "{fault}"
            );
        }
    }

    #[test]
    fn who_sends_without_ours_in_two_looks_in_a_row_has_failed() {
        let second = fault(&[
            &[(OURS, 100), (OURS, 100)],
            &[(OURS, 200), ("cubic", 200)],
            &[(OURS, 300), ("cubic", 300)],
            &[(OURS, 400), (OURS, 400)],
        ]);
        let second = second.unwrap();
        assert!(
            second.contains("to 10.0.0.2:4001 has sent without"),
            "{second}"
        );
        let once = fault(&[
            &[(OURS, 100)],
            &[("cubic", 200)],
            &[(OURS, 300)],
            &[("cubic", 400)],
        ]);
        assert_eq!(once, None);
    }
}
