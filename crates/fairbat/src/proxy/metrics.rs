//! What a proxy tells Prometheus, at `/metrics` of its own address.

use super::site::ProxySite;
use super::upstream::HoldSnapshot;
use crate::exposition::Exposition;
use crate::metric_families;

/// The label of connections that no rule is for. No rule can have this name.
pub const OTHERS: &str = "(others)";

metric_families! {
    BYTES: Counter "fairbat_proxy_bytes_total", "Bytes seen to move to (push) and from (pull) servers, by rule; of very short connections little is seen.";
    CONNECTIONS: Gauge "fairbat_proxy_connections", "Connections to servers that are held now, by rule.";
    DEADLINE: Gauge "fairbat_proxy_deadline_timestamp_seconds", "Next deadline of the rule, s since 1970. Absent without one, and out of its hours.";
    WEIGHT: Gauge "fairbat_proxy_weight", "Weight of all connections together (w), 0.02 to 1; 1 is one best-effort flow.";
    RATE: Gauge "fairbat_proxy_rate_bytes_per_second", "Mean rate over the last second, both ways.";
    DEMANDED: Gauge "fairbat_proxy_demanded_rate_bytes_per_second", "Lowest rate that still meets the deadlines (zeta). Absent without one.";
    YIELDED: Counter "fairbat_proxy_yielded_seconds_total", "How long the connections have yielded to other traffic.";
    REFUSED: Counter "fairbat_proxy_refused_total", "Requests without a connection to a server, by reason: network, token, private, server.";
}

/// All metrics.
pub(super) fn render(site: &ProxySite) -> String {
    let out = Exposition::new(ALL);
    let HoldSnapshot {
        groups,
        plans,
        control,
        yielded_s,
    } = site.upstream.held();
    let rules = site.upstream.rules().iter().map(|rule| rule.name.as_str());
    let names = std::iter::once(OTHERS).chain(rules);
    for ((name, group), plan) in names.zip(&groups).zip(&plans) {
        let rule = ("rule", name);
        let (push, pull) = (("direction", "push"), ("direction", "pull"));
        out.count(&BYTES, &[rule, push], group.bytes_sent);
        out.count(&BYTES, &[rule, pull], group.bytes_received);
        out.gauge(&CONNECTIONS, &[rule], group.connections as f64);
        if let Some(deadline) = plan.deadline {
            out.gauge(&DEADLINE, &[rule], deadline.as_second() as f64);
        }
    }
    // A counter is a whole number.
    out.count(&YIELDED, &[], yielded_s as u64);
    if let Some(control) = control {
        out.gauge(&WEIGHT, &[], control.w);
        out.gauge(&RATE, &[], control.rate);
        if let Some(zeta) = control.zeta {
            out.gauge(&DEMANDED, &[], zeta);
        }
    }
    for (reason, count) in site.refusals.by_reason() {
        out.count(&REFUSED, &[("reason", reason)], count);
    }
    out.render()
}
