//! What the contenders are: who sends, what they need, and what they can do.

use dalbe::ebpf::EbpfPart;

use crate::contender::kind::{CongestionControl, Pushing};
use crate::contender::name::Contender;
use crate::scenario::Scenario;

/// Whose program sends what a contender moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Server {
    /// Nothing is sent.
    None,
    /// nginx.
    Nginx,
    /// `fairbat serve`.
    Serve,
    /// A store, to which the contender sends itself.
    Store,
    /// Another one of the contender's own.
    Own,
}

impl Contender {
    /// Whose program sends.
    pub(crate) fn server(self) -> Server {
        match self {
            Self::None => Server::None,
            Self::Engine
            | Self::Fairbat
            | Self::FairbatNoDeadline(_)
            | Self::Curl
            | Self::Aria2
            | Self::Rclone
            | Self::Tcp
            | Self::TcpReno
            | Self::Queue(_)
            | Self::AgentStream
            | Self::Rival(_)
            | Self::Rledbat
            | Self::Other(..) => Server::Nginx,
            Self::FairbatServed | Self::Http3(_) => Server::Serve,
            Self::Agent | Self::RclonePush | Self::Hosts(_) => Server::Store,
            Self::Utp(_) | Self::Iperf3(_) | Self::Sender(_) | Self::Upload(..) => Server::Own,
        }
    }

    /// Whether `background.congestion_control` of a scenario makes a
    /// difference: whether a server of the lab sends, over the kernel's TCP
    /// and with whatever congestion control its host has.
    #[must_use]
    pub fn heeds_server_congestion_control(self) -> bool {
        let has_own = matches!(self, Self::TcpReno | Self::Rival(_));
        let is_nginx = self.server() == Server::Nginx && !has_own;
        is_nginx || matches!(self, Self::RclonePush | Self::Hosts(Pushing::Static))
    }

    /// Whether it is a program that downloads files, and leaves them as they were
    /// served.
    pub(crate) fn is_download_tool(self) -> bool {
        let is_tool = matches!(
            self,
            Self::Curl | Self::Aria2 | Self::Rclone | Self::Rival(_)
        );
        self.is_fairbat() || is_tool
    }

    /// Whether this is the program `fairbat`.
    #[must_use]
    pub fn is_fairbat(self) -> bool {
        self.has_deadline() || matches!(self, Self::FairbatNoDeadline(_) | Self::Http3(_))
    }

    /// Whether it pushes directories to a store, in place of files that are fetched.
    #[must_use]
    pub fn pushes(self) -> bool {
        self.server() == Server::Store
    }

    /// Whether it is told of a deadline by a flag of `fairbat get`.
    #[must_use]
    pub fn has_deadline(self) -> bool {
        matches!(self, Self::Fairbat | Self::FairbatServed)
    }

    /// Whether each of its jobs goes over a TCP connection of its own, as in the
    /// paper: one that has grown for the job before would press harder.
    #[must_use]
    pub fn opens_for_each_job(self) -> bool {
        matches!(self, Self::Queue(_))
    }

    /// Whether it moves the scenario's jobs as they come.
    #[must_use]
    pub fn takes_jobs(self) -> bool {
        matches!(
            self,
            Self::None
                | Self::Tcp
                | Self::TcpReno
                | Self::Utp(_)
                | Self::Queue(_)
                | Self::AgentStream
                | Self::Rival(_)
        )
    }

    /// A scenario as it runs it: with a congestion control of its own, if it has one.
    /// A rival's is the one that was `loaded`, by the kernel's name.
    #[must_use]
    pub fn as_run(self, scenario: &Scenario, loaded: Option<&str>) -> Scenario {
        let mut scenario = scenario.clone();
        let own = match self {
            Self::TcpReno => Some(CongestionControl::Reno.name()),
            _ => loaded,
        };
        if let Some(name) = own {
            scenario.background.congestion_control = name.to_owned();
        }
        scenario.background.quick_acks |= self.needs_quick_acks();
        scenario
    }

    /// Whether its receiver is to acknowledge each packet at once
    /// ([`crate::rivals::Rival::needs_quick_acks`]).
    #[must_use]
    pub fn needs_quick_acks(self) -> bool {
        matches!(self, Self::Rival(rival) if rival.needs_quick_acks())
    }

    /// What it needs of what `fairbat setup` makes of the machine.
    #[must_use]
    pub fn needs(self) -> Option<EbpfPart> {
        match self {
            Self::FairbatNoDeadline(receiver) => {
                receiver.is_observed().then_some(EbpfPart::Observer)
            }
            Self::Sender(sending) => sending.law().map(|_| EbpfPart::CongestionControls),
            Self::FairbatServed | Self::Agent => Some(EbpfPart::CongestionControls),
            Self::Hosts(pushing) => pushing.has_agents().then_some(EbpfPart::CongestionControls),
            Self::Rledbat => Some(EbpfPart::Observer),
            _ => None,
        }
    }
}
