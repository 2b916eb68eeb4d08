//! A simulation as a record of a run, so that its pages are those of what was measured.

use std::time::Duration;

use crate::connection::Connection;
use crate::figures::Remains;
use crate::run::remains;
use crate::setup;
use crate::setup::{Unsupported, unsupported};
use lab_run::contender::Contender;
use lab_run::contender::served::{Served, outcomes};
use lab_run::host::Class;
use lab_run::record::Record;
use lab_run::run::{Plan, Seen};
use lab_run::samples::{BackgroundRecord, Fetch, FlowRecord, Lateness, LinkRecord};
use lab_run::scenario::{Scenario, Traffic};

/// Whether a run can be calculated: of the lab's senders, or of nobody.
///
/// # Errors
/// When the scenario or the contender is not modelled.
pub fn check(scenario: &Scenario, contender: Contender) -> Result<(), Unsupported> {
    if !matches!(contender, Contender::Sender(_) | Contender::None) {
        return Err(unsupported(&format!("record of contender {contender}")));
    }
    let mut foreground = scenario.foreground.iter();
    if foreground.any(|one| matches!(one.traffic, Traffic::Call {})) {
        return Err(unsupported("record of calls"));
    }
    setup::check(scenario, contender)
}

/// Calculates what [`lab_run::run::run`] measures. There are no probes, no processor time, and
/// nothing is late.
///
/// # Errors
/// When the scenario or the contender is not modelled.
pub fn record(plan: &Plan) -> Result<Record, Unsupported> {
    let plan = &Plan {
        scenario: plan.contender.as_run(&plan.scenario, None),
        ..plan.clone()
    };
    let scenario = &plan.scenario;
    check(scenario, plan.contender)?;
    let provenance = plan.provenance();
    let Remains {
        directions: [forward, backward],
        received,
        connections,
    } = remains(scenario, plan.contender, plan.seed, plan.sampling)?;
    let mut received = received.into_iter();
    let names = scenario.flow_names().into_iter();
    let flows = scenario.flows().zip(names).zip(received.by_ref());
    let flows = flows.map(|((foreground, name), received)| FlowRecord {
        name,
        backward: foreground.backward,
        received,
        packets: Vec::new(),
    });
    let flows = flows.collect();
    let end = Duration::from_secs_f64(scenario.duration_s);
    let (ours, others): (Vec<_>, Vec<_>) = connections
        .into_iter()
        .partition(|one| one.class == Class::Background);
    let served = Served::all(&scenario.background, plan.seed);
    let background = ours.into_iter().zip(received);
    let seen = Seen {
        links: vec![LinkRecord {
            forward,
            backward,
            cpu_s: 0.0,
            lateness: Lateness::default(),
        }],
        flows,
        fetches: others.iter().filter_map(|one| fetch(one, end)).collect(),
        background: background
            .map(|(one, received)| sender(one, received, &served, end))
            .collect(),
        ..Seen::default()
    };
    Ok(plan.record(provenance, seen))
}

/// A web fetch, if it had begun by the end.
fn fetch(one: &Connection, end: Duration) -> Option<Fetch> {
    let bytes = one.fetched()?;
    let done = one.done.map(|done| (done - one.start).as_secs_f64());
    (one.start <= end).then_some(Fetch {
        t: one.start.as_secs_f64(),
        bytes,
        seconds: done,
    })
}

/// What a connection of the background did.
fn sender(
    one: Connection,
    received: Vec<u64>,
    served: &[Served],
    end: Duration,
) -> BackgroundRecord {
    let began = one.start.as_secs_f64();
    let done = one.done.map(|done| done.as_secs_f64());
    let samples = one.steering.map(|steering| steering.into_record());
    BackgroundRecord {
        bytes: Some(one.receiver.received),
        received,
        began: Some(began),
        done,
        transfers: outcomes(served, &[], done, began..end.as_secs_f64()),
        ..samples.unwrap_or_default()
    }
}
