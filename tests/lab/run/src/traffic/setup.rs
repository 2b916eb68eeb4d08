//! From what a scenario says of a source to what runs: who listens, who
//! connects, what each is to do and where it is counted.

use std::io;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use rand::SeedableRng as _;
use rand::rngs::StdRng;

use crate::arrivals;
use crate::host::{Class, Host};
use crate::link::{PAYLOAD_SHARE, bytes_per_s};
use crate::machine::{Clock, Context as _};
use crate::scenario::{Foreground, Scenario, Traffic};
use crate::traffic::call::Call;
use crate::traffic::sources;
use crate::traffic::sources::{Client, HEADERS, Log, Stream, Turns};
use crate::traffic::stage::Stage;
use crate::traffic::tcp;
use crate::traffic::tcp::{SenderOptions, ZEROS};
use crate::traffic::{Meter, Span};

/// How much a stream keeps in the kernel that cannot be sent yet, bytes, so
/// that its backlog is its own to skip.
const STREAM_UNSENT: u32 = 16 * 1024;

/// The same of a source with pauses: what still drains in a pause.
const TURNS_UNSENT: u32 = 16 * 1024;

/// Which hosts send and receive, by number.
#[derive(Debug, Clone, Copy)]
struct Way {
    sender: usize,
    receiver: usize,
    /// The path at which the last host is reached, where there are several.
    path: usize,
}

/// What senders over long-lived connections do.
#[derive(Debug, Clone, Copy)]
enum Sending {
    Greedy(Turns),
    Turns(Turns),
    Constant(Stream),
}

/// A foreground on its way to be started.
pub(crate) struct Setup<'a> {
    scenario: &'a Scenario,
    seed: u64,
    pub(crate) stage: Stage<'a>,
    pub(crate) flows: Vec<Flow>,
    /// What the flows to come are called.
    names: std::vec::IntoIter<String>,
    pub(crate) logs: Vec<Log>,
}

/// A flow whose receiver is measured.
pub(crate) struct Flow {
    pub(crate) name: String,
    /// Whether it goes against the direction of the data.
    pub(crate) backward: bool,
    pub(crate) meter: Meter,
    /// Its packets one by one, if it is a call.
    pub(crate) call: Option<Call>,
}

impl<'a> Setup<'a> {
    pub(crate) fn new(scenario: &'a Scenario, hosts: &'a [Host], seed: u64, clock: Clock) -> Self {
        let end = Duration::from_secs_f64(scenario.duration_s);
        Self {
            scenario,
            seed,
            stage: Stage::new(hosts, clock, end),
            flows: Vec::new(),
            names: scenario.flow_names().into_iter(),
            logs: Vec::new(),
        }
    }

    /// Sets up the source that is entry `index` of the foreground.
    pub(crate) fn source(&mut self, index: usize, foreground: &Foreground) -> io::Result<()> {
        let last = self.stage.hosts.len() - 1;
        let (sender, receiver) = foreground.link.map_or((0, last), |link| (link - 1, link));
        let path = foreground.path.as_deref();
        let path = path.and_then(|name| self.scenario.path_number(name));
        let (sender, receiver) = match foreground.backward {
            true => (receiver, sender),
            false => (sender, receiver),
        };
        let way = Way {
            sender,
            receiver,
            path: path.unwrap_or(0),
        };
        let until = foreground.stop_s.map(Duration::from_secs_f64);
        let span = Span {
            start: Duration::from_secs_f64(foreground.start_s),
            stop: until.map_or(self.stage.end, |until| until.min(self.stage.end)),
        };
        let greedy = Sending::Greedy(Turns::always(span));
        match foreground.traffic {
            Traffic::Greedy { flows } => self.connections(foreground, way, span, greedy, flows),
            Traffic::OnOff { on_s, off_s } => {
                let turns = Sending::Turns(Turns {
                    span,
                    on: Duration::from_secs_f64(on_s),
                    off: Duration::from_secs_f64(off_s),
                });
                self.connections(foreground, way, span, turns, 1)
            }
            Traffic::Constant { rate_mbit } => {
                let stream = Stream::new(span.start, bytes_per_s(rate_mbit));
                let constant = Sending::Constant(stream);
                self.connections(foreground, way, span, constant, 1)
            }
            Traffic::Web { load, mean_kb } => {
                let first = &self.scenario.link[foreground.link.map_or(way.path, |link| link - 1)];
                let rate = load * bytes_per_s(first.rate_mbit) * PAYLOAD_SHARE;
                self.web(index, foreground, way, span, rate, mean_kb * 1000.0)
            }
            Traffic::Udp {
                rate_mbit,
                packet_bytes,
            } => {
                let rate = bytes_per_s(rate_mbit);
                self.udp(index, foreground, way, span, rate, packet_bytes)
            }
            Traffic::Call {} => self.call(foreground, way, span),
        }
    }

    /// So many long-lived connections.
    fn connections(
        &mut self,
        foreground: &Foreground,
        way: Way,
        span: Span,
        sending: Sending,
        flows: u32,
    ) -> io::Result<()> {
        let clock = self.stage.clock;
        let options = SenderOptions {
            congestion_control: foreground.congestion_control.clone(),
            unsent: match sending {
                Sending::Greedy(_) => None,
                Sending::Turns(_) => Some(TURNS_UNSENT),
                Sending::Constant(_) => Some(STREAM_UNSENT),
            },
        };
        let (listener, server) = tcp::listen(&self.sender(way), options)?;
        let serving = tcp::serve(listener, span, clock, move |stream| async move {
            match sending {
                Sending::Greedy(turns) => {
                    sources::send_greedy(stream, turns, ZEROS.len(), clock).await;
                }
                Sending::Turns(turns) => {
                    sources::send_greedy(stream, turns, TURNS_UNSENT as usize, clock).await;
                }
                Sending::Constant(flow) => sources::send_stream(stream, flow, span, clock).await,
            }
        });
        self.stage.job(way.sender, serving);
        let local = self.receiver(way).address(Class::Foreground);
        for _ in 0..flows {
            let meter = self.flow(foreground);
            let receiving = tcp::receive(local, server, span, clock, meter);
            self.stage.job(way.receiver, receiving);
        }
        Ok(())
    }

    /// Fetches that carry `rate` bytes per second in the mean.
    fn web(
        &mut self,
        index: usize,
        foreground: &Foreground,
        way: Way,
        span: Span,
        rate: f64,
        mean: f64,
    ) -> io::Result<()> {
        room_for_connections()?;
        let options = SenderOptions {
            congestion_control: foreground.congestion_control.clone(),
            unsent: None,
        };
        let (listener, server) = tcp::listen(&self.sender(way), options)?;
        let clock = self.stage.clock;
        let end = self.stage.end;
        // What has begun goes on when no more arrive.
        let open = Span { stop: end, ..span };
        let serving = tcp::serve(listener, open, clock, sources::answer);
        self.stage.job(way.sender, serving);
        let log = Log::default();
        self.logs.push(log.clone());
        let client = Client {
            local: self.receiver(way).address(Class::Foreground),
            server,
            meter: self.flow(foreground),
            log,
            clock,
            end,
        };
        let mut rng = of_source(self.seed, index);
        let arrivals = arrivals::draw(&mut rng, (span.start, span.stop), rate / mean, mean);
        self.stage.job(way.receiver, client.run(arrivals));
        Ok(())
    }

    /// Packets of this size, `rate` bytes of them per second in the mean.
    fn udp(
        &mut self,
        index: usize,
        foreground: &Foreground,
        way: Way,
        span: Span,
        rate: f64,
        packet: u32,
    ) -> io::Result<()> {
        let (outgoing, incoming) = sources::sockets(&self.sender(way), &self.receiver(way))?;
        let meter = self.flow(foreground);
        let (clock, end) = (self.stage.clock, self.stage.end);
        self.stage.task(way.receiver, move || {
            sources::receive_datagrams(&incoming, &meter, clock, end)
        });
        let rng = of_source(self.seed, index);
        let payload = (packet - HEADERS) as usize;
        let packets = rate / f64::from(packet);
        self.stage.task(way.sender, move || {
            sources::send_datagrams(&outgoing, payload, packets, rng, span, clock)
        });
        Ok(())
    }

    /// One direction of a call.
    fn call(&mut self, foreground: &Foreground, way: Way, span: Span) -> io::Result<()> {
        let (outgoing, incoming) = sources::sockets(&self.sender(way), &self.receiver(way))?;
        let meter = self.flow(foreground);
        let call = Call::default();
        let flow = self.flows.last_mut();
        flow.expect("it was just added").call = Some(call.clone());
        let (clock, end) = (self.stage.clock, self.stage.end);
        let listener = call.clone();
        self.stage.task(way.receiver, move || {
            listener.receive(&incoming, &meter, clock, end);
            Ok(())
        });
        self.stage.task(way.sender, move || {
            call.send(&outgoing, span, clock);
            Ok(())
        });
        Ok(())
    }

    /// The host that sends, by its addresses at the path.
    fn sender(&self, way: Way) -> Host {
        self.host(way.sender, way.path)
    }

    /// The host that receives, by its addresses at the path.
    fn receiver(&self, way: Way) -> Host {
        self.host(way.receiver, way.path)
    }

    /// Only the last host has an address of its own at each path.
    fn host(&self, index: usize, path: usize) -> Host {
        let hosts = self.stage.hosts;
        let is_last = index + 1 == hosts.len();
        hosts[index].at_path(if is_last { path } else { 0 })
    }

    /// A meter for the next flow of the scenario, which is of this entry.
    fn flow(&mut self, foreground: &Foreground) -> Meter {
        let meter = self.stage.meter();
        let name = self.names.next();
        self.flows.push(Flow {
            name: name.expect("each flow has a name"),
            backward: foreground.backward,
            meter: meter.clone(),
            call: None,
        });
        meter
    }
}

/// The random source of one entry of a scenario's foreground, which no other
/// entry changes.
pub fn of_source(seed: u64, index: usize) -> StdRng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&(index as u64).to_le_bytes());
    StdRng::from_seed(key)
}

/// On a congested link hundreds of fetches are open at a time, with both their
/// ends in this process.
fn room_for_connections() -> io::Result<()> {
    let limit = getrlimit(Resource::RLIMIT_NOFILE);
    let set = limit.and_then(|(_, hard)| setrlimit(Resource::RLIMIT_NOFILE, hard, hard));
    set.doing("allow as many open files as may be")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five a second for a second, 30 kB each in the mean; µs and bytes.
    fn drawn(seed: u64, index: usize) -> Vec<(u128, u64)> {
        let span = (Duration::from_secs(3), Duration::from_secs(4));
        let drawn = arrivals::draw(&mut of_source(seed, index), span, 5.0, 30_000.0);
        let whole = drawn.iter().map(|one| (one.at.as_micros(), one.bytes));
        whole.collect()
    }

    #[test]
    fn every_entry_has_arrivals_of_its_own() {
        assert_ne!(drawn(7, 1), drawn(7, 2));
        assert_ne!(drawn(7, 1), drawn(8, 1));
    }

    #[test]
    fn a_seed_gives_what_it_has_always_given() {
        let always = [
            (3_328_558, 27_747),
            (3_398_008, 33_331),
            (3_513_124, 2_932),
            (3_522_602, 11_822),
            (3_624_461, 14_199),
            (3_724_873, 733),
            (3_870_115, 8_541),
        ];
        assert_eq!(drawn(7, 1), always);
    }
}
