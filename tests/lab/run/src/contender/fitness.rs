//! What a scenario asks for that a contender does not do.

use dalbe::ebpf::CongestionLaw;

use crate::contender::kind::{Downloader, Sending};
use crate::contender::name::Contender;
use crate::contender::properties::Server;
use crate::scenario::{Background, Scenario};

impl Contender {
    /// What the scenario asks for that this contender does not do, and which
    /// contenders do.
    pub(super) fn unfit(self, scenario: &Scenario) -> Option<String> {
        let background = &scenario.background;
        let takers = || {
            let takers = Self::ALL.into_iter().filter(|one| one.takes_jobs());
            let names: Vec<_> = takers.map(|one| one.to_string()).collect();
            names.join(", ")
        };
        let is_list = !background.transfer.is_empty();
        let takes_list = self.is_fairbat()
            || matches!(
                self,
                Self::None | Self::Agent | Self::Hosts(_) | Self::Other(Downloader::Gets, _)
            );
        let has_end = is_list || background.size_mb.is_some();
        let can_be_stopped = self == Self::None || self.is_download_tool();
        let is_ipv4 = matches!(
            self,
            Self::Agent | Self::RclonePush | Self::Hosts(_) | Self::Iperf3(_) | Self::Sender(_)
        );
        let is_fleet = matches!(self, Self::Hosts(_));
        let asks = [
            (
                background.jobs.is_some() && !self.takes_jobs(),
                format!(
                    "takes no transfers while it runs: a scenario with [background.jobs] is for {}",
                    takers()
                ),
            ),
            (
                background.jobs.is_none() && matches!(self, Self::Queue(_) | Self::AgentStream),
                "moves what comes: it is for scenarios with [background.jobs]".to_owned(),
            ),
            (
                is_list && !takes_list,
                "moves one thing: a scenario with [[background.transfer]] is for none, agent, gets-8, \
                 lane-8, rclone-static and those called fairbat or fleet"
                    .to_owned(),
            ),
            (
                self.pushes() && !has_end,
                "pushes what there is: a scenario without background.size_mb is not for it"
                    .to_owned(),
            ),
            (
                is_fleet && (background.copies > 1 || scenario.link.len() != 1),
                "has hosts of its own behind the only link: a scenario with several links, or with \
                 background.copies, is not for it"
                    .to_owned(),
            ),
            (
                (background.stopped.is_some() || background.stalls.is_some()) && !can_be_stopped,
                "is not stopped under way: a scenario with background.stopped or stalls is for \
                 download tools"
                    .to_owned(),
            ),
            (
                background.ipv6 && is_ipv4,
                "goes over IPv4: a scenario with background.ipv6 is for none, utp and those that \
                 fetch from nginx or fairbat serve"
                    .to_owned(),
            ),
        ];
        let unfit = asks.into_iter().find(|(is_asked, _)| *is_asked);
        unfit
            .map(|(_, why)| why)
            .or_else(|| self.does_not_heed(background))
    }

    /// The key of the background that this contender does not heed, and which
    /// contenders do.
    pub(super) fn does_not_heed(self, background: &Background) -> Option<String> {
        let sending = match self {
            Self::None => return None,
            Self::Sender(sending) => Some(sending),
            _ => None,
        };
        let has_weight = sending.is_some_and(Sending::has_weight);
        let has_scale = sending.is_some_and(Sending::has_scale);
        let has_law = sending.and_then(Sending::law).is_some();
        let is_coupled = matches!(
            sending,
            Some(Sending::Law(CongestionLaw::Vegas | CongestionLaw::Cdg))
        );
        // A sender that cannot be controlled is the reference of those that can.
        let keys = [
            (
                background.server_kb_s.is_some() && self.server() != Server::Nginx,
                "server_kb_s: it is for those whose server is nginx",
            ),
            (
                !background.weights.is_empty() && !has_weight,
                "weights: it is for senders of the lab's with a weight",
            ),
            (
                background.g_ms.is_some() && !has_scale,
                "g_ms: it is for sender-cdg and sender-cdg-paper",
            ),
            (
                !background.priorities.is_empty() && !is_coupled,
                "priorities: it is for sender-vegas and sender-cdg",
            ),
            (
                background.phi.is_some() && !has_law,
                "phi: it is for senders with a congestion control of ours",
            ),
            (
                background.controller.is_some() && sending.is_none() && self != Self::Fairbat,
                "controller: it is for fairbat and the lab's senders",
            ),
        ];
        let unheeded = keys.into_iter().find(|(is_unheeded, _)| *is_unheeded);
        unheeded.map(|(_, key)| format!("does not heed background.{key}"))
    }
}
