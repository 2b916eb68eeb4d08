//! Finds the connections of a scope, updates them and lets them go.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::net::IpAddr;
use std::time::Duration;

use dalbe::capability::Capabilities;
use dalbe::receive_window::{LeverKind, WindowLever, WindowSettings};
use dalbe::sender::{SenderLeverKind, SenderLevers};
use dalbe::socket::TcpSocket;

use super::connecting::Connecting;
use super::connection::{ForeignConnection, Moved};
use super::event::{HoldControl, HoldEvent, HoldReport, TimedHoldEvent};
use super::group::{Group, GroupReport};
use super::joining::Joining;
use super::looks::{self, Looks};
use super::plan::HoldPlan;
use super::scope::{FoundSocket, Processes, Scope};
use super::settings::HoldSettings;
use super::sockets::{Kind, UdpFlows, inode_of, kind_of};
use crate::clock::Clock;
use crate::lane::core::Core;
use crate::lane::settings::Mode;
use crate::lane::{InvalidSettings, Lane};
use crate::machine::MachineLane;
use crate::transport::Path;

/// Time between two looks at a socket that connects.
const CONNECT_PERIOD: Duration = Duration::from_millis(5);

/// Time between two samples of the lane.
const SAMPLE_PERIOD: Duration = Duration::from_secs(1);

/// Holds the connections of a scope.
#[derive(Debug)]
pub struct Holder {
    settings: HoldSettings,
    clock: Clock,
    lane: Lane,
    joining: Joining,
    groups: Vec<Group>,
    lever: LeverKind,
    windows: WindowSettings,
    senders: SenderLevers,
    processes: Processes,
    /// By the inode of the socket.
    connecting: BTreeMap<u64, Connecting>,
    held: BTreeMap<u64, ForeignConnection>,
    /// Sockets that are none of ours, by inode, with their cookies.
    left_alone: BTreeMap<u64, Option<u64>>,
    udp: UdpFlows,
    paths: HashMap<IpAddr, Path>,
    looks: Looks,
    sampled_at: Duration,
    report: HoldReport,
    /// The means of the round-trip times since the last sample, and their number.
    rtts: (Duration, u32),
    events: Vec<TimedHoldEvent>,
}

impl Holder {
    /// Holds nothing yet. All connections are of the first group, with this plan, unless more
    /// groups are added.
    ///
    /// # Errors
    /// [`InvalidSettings`] for a weight that is none.
    pub fn new(
        scope: Scope,
        settings: HoldSettings,
        plan: HoldPlan,
    ) -> Result<Self, InvalidSettings> {
        let clock = Clock::start();
        let lever = Capabilities::probe().best_lever();
        let lane = Lane::of_run(settings.lane(plan.weight), Mode::SingleConnection, clock)?;
        let group = Group::new(&lane, plan, true);
        let windows = WindowSettings {
            policy: settings.receiver,
            max_window: None,
            observer: lever.observer(),
            holds_on_demand: false,
            is_foreign: true,
        };
        Ok(Self {
            senders: SenderLevers::open(settings.sender).of_foreign(),
            settings,
            clock,
            lane,
            joining: Joining::default(),
            groups: vec![group],
            lever,
            windows,
            processes: Processes::of(scope),
            connecting: BTreeMap::new(),
            held: BTreeMap::new(),
            left_alone: BTreeMap::new(),
            udp: UdpFlows::default(),
            paths: HashMap::new(),
            looks: Looks::new(),
            sampled_at: Duration::ZERO,
            report: HoldReport::default(),
            rtts: (Duration::ZERO, 0),
            events: Vec::new(),
        })
    }

    /// The levers on what is received and sent.
    #[must_use]
    pub fn levers(&self) -> (LeverKind, SenderLeverKind) {
        (self.lever, self.senders.kind())
    }

    /// Connections are told from now on ([`Self::connects`]), so looks may be rarer.
    pub fn expect_notices(&mut self) {
        self.looks.has_notices = true;
    }

    /// Takes part in the lane of the machine, where an agent runs.
    pub fn join(&mut self, machine: MachineLane) {
        self.joining = Joining(Some(machine));
    }

    /// The command has told this share of its work as done, 0 to 1.
    pub fn progress(&mut self, share: f64) {
        self.groups[0].share = Some(share.clamp(0.0, 1.0));
    }

    /// Adds a group of connections with a plan of its own; returns its number. All groups together
    /// are one lane: the weight is the largest that one of them asks for, and is for whoever is due
    /// first. An added group asks for something only while its connections move something.
    pub fn add_group(&mut self, plan: HoldPlan) -> usize {
        self.groups.push(Group::new(&self.lane, plan, false));
        self.groups.len() - 1
    }

    /// The plan of a group from now on. If it is another one, what is moved is counted anew.
    ///
    /// # Panics
    /// There is no such group.
    pub fn set_plan(&mut self, group: usize, plan: HoldPlan) {
        if self.groups[group].plan() == plan {
            return;
        }
        self.groups[group].set_plan(&self.lane, plan);
        let due = self.groups[group].due();
        let held = self.held.values_mut().filter(|it| it.group == group);
        held.for_each(|it| it.work_for(due));
    }

    /// What the groups have moved.
    pub fn groups(&self) -> impl Iterator<Item = GroupReport> {
        self.groups.iter().map(|group| group.report)
    }

    /// A process is about to connect the socket of this descriptor, for this group.
    pub fn connects(&mut self, process: i32, descriptor: i32, group: usize) {
        let Some(process) = self.processes.open(process) else {
            return;
        };
        let socket = process.socket(descriptor).ok();
        let inode = socket.as_ref().and_then(|socket| inode_of(socket).ok());
        let Some((socket, inode)) = socket.zip(inode) else {
            return;
        };
        let found = FoundSocket {
            process,
            descriptor,
            inode,
        };
        // A program that does not wait asks again until it is connected. A relay that tries another
        // address has closed the socket before, and may have told of it too early.
        if let Some(connecting) = self.connecting.get_mut(&inode) {
            connecting.group = group;
            return;
        }
        let is_same = |cookie: &Option<u64>| cookie.is_some() && *cookie == socket.cookie().ok();
        if self.held.get(&inode).is_some_and(|held| held.is(&socket))
            || self.left_alone.get(&inode).is_some_and(is_same)
        {
            return;
        }
        // What it was before is over.
        self.left_alone.remove(&inode);
        if matches!(kind_of(&socket), Kind::Tcp) {
            self.meet(&found, &socket, Some(group));
        }
    }

    /// Does what is due; returns the time until the next step.
    pub fn step(&mut self) -> Duration {
        let now = self.clock.now();
        let looks = self.looks.is_due(now);
        if looks {
            self.look(now);
        }
        self.await_connections(now, looks);
        self.looks.is_first = false;
        self.update(now);
        if now >= self.sampled_at + SAMPLE_PERIOD {
            self.sample(now);
        }
        let updates = self.held.values().map(|held| held.update_at);
        let connects = self.connecting.values().any(|it| it.is_told);
        let connects = connects.then_some(now + CONNECT_PERIOD);
        let looks = Some(self.looks.next());
        let next = updates.chain(connects).chain(looks).min();
        let next = next.unwrap_or(now).min(self.sampled_at + SAMPLE_PERIOD);
        next.saturating_sub(self.clock.now())
    }

    /// Looks at all sockets of all processes.
    fn look(&mut self, now: Duration) {
        self.looks.begin(now);
        if let Err(error) = self.processes.refresh() {
            tracing::warn!(%error, "the processes cannot be listed");
        }
        let found = self.processes.sockets();
        let inodes: BTreeSet<u64> = found.iter().map(|found| found.inode).collect();
        self.left_alone.retain(|inode, _| inodes.contains(inode));
        self.udp.retain(&inodes);
        self.paths.retain(|_, path| path.is_remembered(now));
        self.connecting
            .retain(|inode, it| inodes.contains(inode) || it.handle.socket().is_some());
        let mut gone = Vec::new();
        for (&inode, held) in &mut self.held {
            // A process may hide what it has, and its sockets be at hand all the same.
            if !inodes.contains(&inode) && held.is_gone() {
                gone.push(inode);
            }
        }
        for inode in gone {
            self.forget(now, inode);
        }
        for found in &found {
            if self.left_alone.contains_key(&found.inode) {
                continue;
            }
            if let Some(held) = self.held.get_mut(&found.inode) {
                held.found(found);
            } else if let Some(connecting) = self.connecting.get_mut(&found.inode) {
                connecting.handle.add(found);
            } else if let Some(socket) = self.processes.reach(found) {
                self.meet(found, &socket, None);
            }
        }
        for process in self.processes.newly_out_of_reach() {
            self.report.out_of_reach += 1;
            let program = fs::read_to_string(format!("/proc/{process}/comm"));
            self.emit(HoldEvent::OutOfReach {
                pid: process,
                program: program.unwrap_or_default().trim_end().to_owned(),
            });
        }
    }

    /// A socket that was not known. If it was told that it connects, its group is known.
    fn meet(&mut self, found: &FoundSocket, socket: &TcpSocket, group: Option<usize>) {
        let now = self.clock.now();
        match kind_of(socket) {
            Kind::Tcp => {
                if let Ok(connecting) = Connecting::new(now, found, socket, group) {
                    self.connecting.insert(found.inode, connecting);
                }
            }
            Kind::Udp => {
                let is_new = self.udp.see(found.inode, socket);
                self.report.udp_flows += u64::from(is_new);
            }
            Kind::Listener | Kind::Other => {
                self.left_alone.insert(found.inode, socket.cookie().ok());
            }
        }
    }

    /// Takes the sockets that have connected: of those that were told, or of all.
    fn await_connections(&mut self, now: Duration, all: bool) {
        let mut connected = Vec::new();
        for (&inode, connecting) in &mut self.connecting {
            if !all && !connecting.is_told {
                continue;
            }
            match connecting.addresses(now) {
                Some(Some((local, peer))) => connected.push((inode, local, peer)),
                Some(None) => {}
                None => self.looks.is_missing = true,
            }
        }
        for (inode, local, peer) in connected {
            let Some(mut connecting) = self.connecting.remove(&inode) else {
                continue;
            };
            if !self.settings.include_local && (peer.is_loopback() || peer == local) {
                if let Some(socket) = connecting.handle.socket().filter(|_| connecting.is_told) {
                    WindowLever::forgo(&socket);
                }
                self.report.local_connections += 1;
                self.left_alone
                    .insert(inode, Some(connecting.handle.cookie));
                continue;
            }
            self.take(now, inode, connecting, peer);
        }
    }

    /// Takes a connection under control.
    fn take(&mut self, now: Duration, inode: u64, mut connecting: Connecting, peer: IpAddr) {
        let path = self.paths.entry(peer).or_default();
        let receive = self
            .lever
            .holds_window()
            .then(|| path.lever(self.windows.clone()));
        if receive.is_some()
            && let Some(Err(error)) = connecting.handle.socket().map(|it| WindowLever::hold(&it))
        {
            tracing::debug!(%error, "a receive buffer was not held");
        }
        if self.held.is_empty() {
            self.lane.with_core(Core::connected);
        }
        let group = &mut self.groups[connecting.group];
        group.report.connections += 1;
        let place = group.take_place(&self.lane);
        let mut held = ForeignConnection::new(now, peer, connecting, receive, place);
        if self.looks.is_first {
            held.forget_past();
        }
        self.held.insert(inode, held);
        self.report.connections += 1;
    }

    /// Updates the connections that are due.
    fn update(&mut self, now: Duration) {
        let mut all = vec![Moved::default(); self.groups.len()];
        let mut broken = Vec::new();
        for (&inode, held) in &mut self.held {
            if held.update_at > now {
                continue;
            }
            let most = self.groups[held.group].most_weight();
            match held.update(now, self.clock, &self.senders, most) {
                Ok(Some(moved)) => {
                    all[held.group].received += moved.received;
                    all[held.group].sent += moved.sent;
                    if let Some(rtt) = moved.rtt {
                        self.rtts = (self.rtts.0 + rtt, self.rtts.1 + 1);
                    }
                }
                Ok(None) => {
                    self.looks.is_missing = true;
                    held.update_at = now + looks::MIN_PERIOD;
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection cannot be held; it goes on unlimited");
                    broken.push(inode);
                }
            }
        }
        for inode in broken {
            self.left_alone.insert(inode, None);
            if let Some(held) = self.forget(now, inode) {
                held.release();
            }
        }
        let rtt = self.rtt();
        for (group, moved) in self.groups.iter_mut().zip(all) {
            self.report.bytes_received += moved.received;
            self.report.bytes_sent += moved.sent;
            group.moved(now, moved);
            if moved.received + moved.sent > 0 {
                let bytes = moved.received + moved.sent;
                self.lane.moved(bytes, rtt, group.service());
            }
        }
    }

    /// The mean round-trip time since the last sample.
    fn rtt(&self) -> Option<Duration> {
        (self.rtts.1 > 0).then(|| self.rtts.0 / self.rtts.1)
    }

    /// A connection is gone, or is not held any more.
    fn forget(&mut self, now: Duration, inode: u64) -> Option<ForeignConnection> {
        let held = self.held.remove(&inode)?;
        self.groups[held.group].report.connections -= 1;
        if let Some(lever) = &held.receive {
            self.paths.entry(held.peer).or_default().learn(lever, now);
        }
        if self.held.is_empty() {
            self.lane
                .with_core(|core, _| core.controller.disconnected());
        }
        Some(held)
    }

    /// Ends a control period.
    fn sample(&mut self, now: Duration) {
        let period = now.saturating_sub(self.sampled_at);
        self.sampled_at = now;
        self.lane.notice_clock();
        self.count_senders(now);
        let done = self.report.bytes_received + self.report.bytes_sent;
        self.joining.see(&self.lane, &self.report);
        self.groups.iter().for_each(|group| group.tell(now));
        let mut plans = self.groups.iter().filter_map(Group::expected).peekable();
        let is_planned = plans.peek().is_some();
        let expected = is_planned.then(|| plans.sum());
        let sample = self.lane.sample();
        if self.held.values().any(|held| held.is_yielding(now)) {
            self.report.yielded_s += period.as_secs_f64();
        }
        let control = HoldControl {
            connections: self.held.len(),
            w: sample.w,
            brake: self.held.values().filter_map(|held| held.state(now)).max(),
            zeta: sample.zeta.filter(|_| is_planned),
            rate: sample.rate,
            rtt_ms: self.rtt().map(|rtt| rtt.as_secs_f64() * 1e3),
            bytes_done: done,
            bytes_total: expected,
        };
        self.rtts = (Duration::ZERO, 0);
        self.emit(HoldEvent::Control(control));
        for late in self.lane.with_core(Core::report_late) {
            self.emit(HoldEvent::from(late));
        }
    }

    /// Tells each connection how many send to the same host.
    fn count_senders(&mut self, now: Duration) {
        let mut senders = HashMap::new();
        for held in self.held.values().filter(|held| held.sends(now)) {
            *senders.entry(held.peer).or_insert(0) += 1;
        }
        for held in self.held.values_mut() {
            held.set_senders(senders.get(&held.peer).copied().unwrap_or(1));
        }
    }

    /// Whether no process is left whose connections could be held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }

    /// Reports an event of the caller's.
    pub fn emit(&mut self, event: HoldEvent) {
        self.events.push(TimedHoldEvent {
            t: self.clock.now().as_secs_f64(),
            event,
        });
    }

    /// What has happened since the last call.
    pub fn events(&mut self) -> Vec<TimedHoldEvent> {
        std::mem::take(&mut self.events)
    }

    /// What was held so far.
    #[must_use]
    pub fn report(&self) -> HoldReport {
        let deadline = self.groups[0].plan().deadline;
        let now = self.clock.now();
        HoldReport {
            elapsed_s: now.as_secs_f64(),
            deadline_met: deadline.map(|by| now <= self.clock.since_start(by, self.clock.drift())),
            ..self.report.clone()
        }
    }

    /// Lets all connections go.
    pub fn release(&mut self) {
        // Descriptors may have moved.
        self.look(self.clock.now());
        for held in std::mem::take(&mut self.held).into_values() {
            held.release();
        }
    }
}
