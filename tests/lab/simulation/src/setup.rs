//! From a scenario and a contender to connections and datagrams; and what a simulation
//! leaves out.

use std::time::Duration;

use dalbe::ebpf::CongestionLaw;
use dalbe::ebpf::native::NativeHost;
use dalbe::receive_window::ReceiverPolicy;
use dalbe::weight::{FlowTarget, MIN_WEIGHT};
use rand::RngExt as _;
use rand::rngs::StdRng;

use crate::congestion::control::Control;
use crate::congestion::kernel::Kernel;
use crate::congestion::ledbat::Ledbat;
use crate::congestion::rival::RivalControl;
use crate::connection::Plan;
use crate::held_window::HeldWindow;
use crate::receiver::{FIRST_WINDOW, Tuning, Window};
use crate::source::Source;
use crate::steering::Steering;
use lab_run::arrivals;
use lab_run::contender::served::Served;
use lab_run::contender::steering::{Order, SenderLaw};
use lab_run::contender::{CongestionControl, Contender, Receiver, Sending, TargetDelay};
use lab_run::host::Class;
use lab_run::link::{PAYLOAD_SHARE, bytes_per_s};
use lab_run::scenario::{CALL_PACKET_BYTES, CALL_PACKETS_PER_S, Foreground, Scenario, Traffic};
use lab_run::traffic::Span;
use lab_run::traffic::setup::of_source;
use lab_run::traffic::sources::{Stream, Turns};

/// Programs begin at moments that are not exact: up to so much later, s.
const START_JITTER: f64 = 0.1;

/// A scenario, or a contender, that is not modelled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a simulation has no {0}")]
pub struct Unsupported(String);

pub(crate) fn unsupported(what: &str) -> Unsupported {
    Unsupported(what.to_owned())
}

/// Datagrams that yield to nobody.
#[derive(Debug)]
pub(crate) struct Datagrams {
    pub(crate) start: Duration,
    pub(crate) stop: Duration,
    /// Of each, with its headers.
    pub(crate) bytes: u32,
    /// Mean number of them, 1/s.
    pub(crate) rate: f64,
    pub(crate) backward: bool,
    /// Of the gaps between them; `None` if those are even.
    pub(crate) random: Option<StdRng>,
    /// Which of the recorded flows they are.
    pub(crate) flow: usize,
}

/// All that is to be simulated.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) connections: Vec<Plan>,
    pub(crate) datagrams: Vec<Datagrams>,
    /// How many flows are recorded.
    pub(crate) flows: usize,
    /// Turns of the first foreground that has them.
    pub(crate) turns: Option<Turns>,
}

impl Setup {
    /// What is random depends on the seed as in the lab: web fetches are the same ones.
    pub(crate) fn new(
        scenario: &Scenario,
        contender: Contender,
        seed: u64,
    ) -> Result<Self, Unsupported> {
        check(scenario, contender)?;
        let mut setup = Self {
            connections: Vec::new(),
            datagrams: Vec::new(),
            flows: 0,
            turns: None,
        };
        for (index, foreground) in scenario.foreground.iter().enumerate() {
            setup.add_foreground(scenario, foreground, index, seed)?;
        }
        setup.add_background(scenario, contender, seed)?;
        Ok(setup)
    }

    fn add_foreground(
        &mut self,
        scenario: &Scenario,
        foreground: &Foreground,
        index: usize,
        seed: u64,
    ) -> Result<(), Unsupported> {
        let link = &scenario.link[0];
        let mut random = of_source(seed, index);
        let span = Span {
            start: Duration::from_secs_f64(foreground.start_s),
            stop: Duration::from_secs_f64(foreground.stop_s.unwrap_or(scenario.duration_s)),
        };
        let mut sources = Vec::new();
        match foreground.traffic {
            Traffic::Greedy { flows } => {
                for _ in 0..flows {
                    sources.push((span.start, Source::Turns(Turns::always(span))));
                }
            }
            Traffic::Constant { rate_mbit } => {
                let source = Source::Stream {
                    stream: Stream::new(span.start, bytes_per_s(rate_mbit)),
                    stop: span.stop,
                    position: 0,
                };
                sources.push((span.start, source));
            }
            Traffic::OnOff { on_s, off_s } => {
                let turns = Turns {
                    span,
                    on: Duration::from_secs_f64(on_s),
                    off: Duration::from_secs_f64(off_s),
                };
                self.turns.get_or_insert(turns);
                sources.push((span.start, Source::Turns(turns)));
            }
            Traffic::Web { load, mean_kb } => {
                let rate = load * bytes_per_s(link.rate_mbit) * PAYLOAD_SHARE;
                let mean = mean_kb * 1e3;
                let fetches =
                    arrivals::draw(&mut random, (span.start, span.stop), rate / mean, mean);
                let fetches = fetches.into_iter();
                sources.extend(fetches.map(|fetch| (fetch.at, Source::Fetch(fetch.bytes))));
            }
            Traffic::Udp {
                rate_mbit,
                packet_bytes,
            } => self.datagrams.push(Datagrams {
                start: span.start,
                stop: span.stop,
                bytes: packet_bytes,
                rate: bytes_per_s(rate_mbit) / f64::from(packet_bytes),
                backward: foreground.backward,
                random: Some(of_source(seed, index)),
                flow: self.flows,
            }),
            Traffic::Call {} => self.datagrams.push(Datagrams {
                start: span.start,
                stop: span.stop,
                bytes: CALL_PACKET_BYTES,
                rate: f64::from(CALL_PACKETS_PER_S),
                backward: foreground.backward,
                random: None,
                flow: self.flows,
            }),
        }
        let is_web = foreground.is_web();
        for (number, (at, source)) in sources.into_iter().enumerate() {
            // Fetches are random already.
            let later = if matches!(source, Source::Fetch(_)) {
                0.0
            } else {
                START_JITTER * random.random::<f64>()
            };
            self.connections.push(Plan {
                class: Class::Foreground,
                start: at + Duration::from_secs_f64(later),
                source,
                control: control(&foreground.congestion_control, seed)?,
                window: Window::Tuned(Tuning::default()),
                ecn: link.ecn,
                quick_acks: false,
                backward: foreground.backward,
                // All fetches of a source are one.
                flow: self.flows + if is_web { 0 } else { number },
                steering: None,
            });
        }
        self.flows += foreground.flows();
        Ok(())
    }

    fn add_background(
        &mut self,
        scenario: &Scenario,
        contender: Contender,
        seed: u64,
    ) -> Result<(), Unsupported> {
        let background = &scenario.background;
        let mut random = of_source(seed, scenario.foreground.len());
        let connections = background.connections.unwrap_or(1);
        let (copies, connections, sending) = match contender {
            Contender::None => (0, 1, None),
            // Each of the lab's senders is one connection.
            Contender::Sender(sending) => (background.copies * connections, 1, Some(sending)),
            _ => (background.copies, connections, None),
        };
        let served = Served::all(background, seed);
        let size = served.first().and_then(|one| one.bytes);
        let common = NativeHost::default();
        for copy in 0..copies {
            let start = background.start_s + f64::from(copy) * background.stagger_s;
            let start = start + START_JITTER * random.random::<f64>();
            let span = Span {
                start: Duration::from_secs_f64(start),
                stop: Duration::from_secs_f64(scenario.duration_s),
            };
            let seed = seed ^ (u64::from(copy) << 16);
            let host = match sending {
                Some(_) => common.clone(),
                None => NativeHost::default(),
            };
            for number in 0..connections {
                let number = copy * connections + number;
                let steering = sending
                    .map(|sending| Steering::new(background, sending, size, number, span.start));
                self.connections.push(Plan {
                    class: Class::Background,
                    start: span.start,
                    source: match size {
                        Some(bytes) => Source::Fetch(bytes),
                        None => Source::Turns(Turns::always(span)),
                    },
                    control: background_control(scenario, contender, seed, (number, &host))?,
                    window: background_window(scenario, contender),
                    ecn: scenario.link[0].ecn,
                    quick_acks: contender.needs_quick_acks() || background.quick_acks,
                    backward: false,
                    flow: self.flows,
                    steering: steering.map(Box::new),
                });
                self.flows += 1;
            }
        }
        Ok(())
    }
}

/// The congestion control of the background's sender, for the connection with this number to
/// a host.
pub(crate) fn background_control(
    scenario: &Scenario,
    contender: Contender,
    seed: u64,
    (number, host): (u32, &NativeHost),
) -> Result<Control, Unsupported> {
    let background = &scenario.background;
    let weight = background.weight.unwrap_or(MIN_WEIGHT);
    let kernel = |law| {
        let target = FlowTarget {
            w: weight,
            ..FlowTarget::YIELD
        };
        let order = Order {
            target,
            ..Order::FIRST
        };
        let parameters = SenderLaw::of(law, background, number).parameters(order);
        Ok(Control::Kernel(Kernel::new(
            &parameters,
            seed,
            host.clone(),
        )))
    };
    match contender {
        Contender::FairbatServed => kernel(CongestionLaw::Vegas),
        Contender::Sender(Sending::Law(law)) => kernel(law),
        Contender::Sender(Sending::Kernel(named)) => control(named.name(), seed),
        Contender::FairbatNoDeadline(Receiver::Plain | Receiver::Vulture)
        | Contender::Curl
        | Contender::Tcp => control(&scenario.background.congestion_control, seed),
        Contender::TcpReno => Ok(Control::Reno),
        Contender::Iperf3(named) => control(CongestionControl::name(named), seed),
        Contender::Rival(rival) => Ok(Control::Rival(RivalControl::new(rival))),
        Contender::Utp(target) => Ok(Control::Ledbat(Ledbat::new(TargetDelay::ms(target)))),
        other => Err(unsupported(&format!("contender {other}"))),
    }
}

fn background_window(scenario: &Scenario, contender: Contender) -> Window {
    let policy = match contender {
        Contender::FairbatNoDeadline(Receiver::Plain) | Contender::FairbatServed => {
            ReceiverPolicy::Delay
        }
        Contender::FairbatNoDeadline(Receiver::Vulture) => ReceiverPolicy::Vulture,
        _ => return Window::Tuned(Tuning::default()),
    };
    let w = scenario.background.weight.unwrap_or(MIN_WEIGHT);
    let held = HeldWindow::new(policy, w, FIRST_WINDOW);
    Window::Held(Box::new(
        held.with_steps(scenario.background.weights.clone()),
    ))
}

fn control(name: &str, seed: u64) -> Result<Control, Unsupported> {
    Control::named(name, seed).ok_or_else(|| unsupported(&format!("congestion control {name:?}")))
}

pub(crate) fn check(scenario: &Scenario, contender: Contender) -> Result<(), Unsupported> {
    let background = &scenario.background;
    let has_window = matches!(background_window(scenario, contender), Window::Held(_));
    let has_several = background.connections.is_some_and(|number| number > 1);
    let is_steered = matches!(contender, Contender::Sender(_) | Contender::None);
    let missing = [
        (scenario.link.len() > 1, "second link"),
        (background.jobs.is_some(), "jobs"),
        (has_window && has_several, "coupled receive windows"),
        (
            background.size_mb.is_some() && !is_steered,
            "end of a transfer that is not of the lab's senders",
        ),
        (!background.transfer.is_empty(), "list of transfers"),
        (background.server_kb_s.is_some(), "server with a limit"),
        (background.stopped.is_some(), "program that is stopped"),
        (background.stalls.is_some(), "host that is away"),
    ];
    match missing.into_iter().find(|(is_asked, _)| *is_asked) {
        Some((_, what)) => Err(unsupported(what)),
        None => Ok(()),
    }
}
