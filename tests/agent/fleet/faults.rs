//! Rights that are missing, answers that are lost, and a site that is too large for one message.

use std::thread;
use std::time::Duration;

use fairbat::lane::wire::LaneDemand;
use fairbat_agent::fleet::message::{HostDemand, VERSION, demands_of};
use fairbat_tests::nats::Nats;
use fairbat_tests::poll::wait_until;

use super::{fleet, host, said_by, status, wait_for_hosts};
use crate::service::{Place, SOON};

/// What an agent says when it takes office.
const IN_OFFICE: &str = "this agent coordinates the site";

/// The key that says who coordinates.
const KEY: &str = "$KV.fairbat_coordinator_berlin.coordinator";

#[test]
fn who_cannot_read_the_holds_does_not_take_office() {
    let nats = Nats::start_without_rights(&[
        "$JS.API.STREAM.INFO.KV_fairbat_holds_berlin",
        "$JS.API.STREAM.CREATE.KV_fairbat_holds_berlin",
    ]);
    let a = host(&nats, "a");
    let _agent = a.start();
    a.wait_for_log("which hosts are held is not known", 1);
    assert!(!a.log().contains(IN_OFFICE), "{}", a.log());
    let away = said_by(&fleet(&a, &["status"]), 5);
    assert!(
        away.contains("no coordinator of the site answers"),
        "{away}"
    );
}

#[test]
fn who_cannot_send_grants_leaves_office_for_a_while() {
    let nats = Nats::start_without_rights(&["fairbat.v1.berlin.grant.*"]);
    let a = host(&nats, "a");
    let _agent = a.start();
    a.wait_for_log("its own grants do not come back", 2);
    // It takes office again, and the pauses between grow (a unit test).
    assert!(a.log().matches(IN_OFFICE).count() >= 2, "{}", a.log());
}

#[test]
fn an_office_outlasts_a_renewal_without_an_answer() {
    let nats = Nats::start();
    let a = host(&nats, "a");
    let _agent = a.start();
    wait_for_hosts(&nats, 1, SOON);
    let term = status(&nats)["term"].as_u64();
    let stored = nats.request(&format!(
        "$JS.API.DIRECT.GET.KV_fairbat_coordinator_berlin.{KEY}"
    ));
    let stored = stored.expect("a key");
    assert!(stored.starts_with("a "), "{stored}");
    // As by a renewal of its own of which it does not know.
    nats.publish(KEY, stored.as_bytes());
    thread::sleep(Duration::from_secs(7));
    assert_eq!(status(&nats)["term"].as_u64(), term, "{}", a.log());
    assert!(!a.log().contains("no longer coordinates"), "{}", a.log());
    nats.publish(KEY, b"a 0");
    a.wait_for_log("another agent has its key", 1);
    wait_until("another office", SOON, || {
        status(&nats)["term"].as_u64() > term
    });
}

#[test]
fn what_is_stored_without_an_answer_is_held() {
    let nats = Nats::start();
    let a = host(&nats, "a");
    let _agent = a.start();
    wait_for_hosts(&nats, 1, SOON);
    said_by(&fleet(&a, &["hold", "b"]), 0);
    // As by a write of its own that it has given up.
    nats.publish("$KV.fairbat_holds_berlin.holds", br#"["b", "c"]"#);
    let said = said_by(&fleet(&a, &["hold", "d", "c"]), 0);
    assert!(
        said.contains("d: held") && said.contains("c: is held already"),
        "{said}"
    );
    let shown = said_by(&fleet(&a, &["status"]), 0);
    for line in ["b     held", "c     held", "d     held"] {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
    // The key of nobody.
    nats.publish("$KV.fairbat_holds_berlin.holds", b"[]");
    let said = said_by(&fleet(&a, &["release", "b"]), 0);
    assert!(said.contains("b: was not held"), "{said}");
}

#[test]
fn no_question_makes_the_coordinator_write_elsewhere() {
    let nats = Nats::start();
    let a = host(&nats, "a");
    let _agent = a.start();
    wait_for_hosts(&nats, 1, SOON);
    said_by(&fleet(&a, &["hold", "b"]), 0);
    let term = status(&nats)["term"].as_u64();
    for elsewhere in ["$KV.fairbat_holds_berlin.holds", KEY] {
        nats.publish(&format!("fairbat.v1.berlin.status {elsewhere}"), b"");
    }
    // An answer that comes after those two.
    assert_eq!(status(&nats)["term"].as_u64(), term);
    let said = said_by(&fleet(&a, &["hold", "b"]), 0);
    assert!(said.contains("b: is held already"), "{said}");
    // Whatever is stored there, a change makes it good.
    nats.publish("$KV.fairbat_holds_berlin.holds", b"nothing of ours");
    said_by(&fleet(&a, &["hold", "c"]), 0);
    a.wait_for_log("cannot be read", 1);
    let shown = said_by(&fleet(&a, &["status"]), 0);
    assert!(
        shown.contains("c     held") && !shown.contains("b     held"),
        "{shown}"
    );
    assert_eq!(status(&nats)["term"].as_u64(), term, "{}", a.log());
}

#[test]
fn without_credentials_that_can_be_read_questions_are_answered() {
    let place = Place::new();
    let missing = place.join("missing");
    let fleet_table = format!(
        "[fleet]\nurl = \"nats://127.0.0.1:1\"\nsite = \"berlin\"\nhost = \"a\"\n\
         credentials = {missing:?}"
    );
    place.configure("connections = 1", &fleet_table);
    let _agent = place.start();
    for words in [&["status"][..], &["hold", "a"], &["release", "a"]] {
        let away = said_by(&fleet(&place, words), 5);
        assert!(away.contains("NATS is out of reach"), "{away}");
    }
}

#[test]
fn a_status_that_is_too_long_says_how_many_hosts_it_leaves_out() {
    const HOSTS: usize = 60;
    let nats = Nats::start_with("max_payload: 8KB\n");
    let a = host(&nats, "a");
    let _agent = a.start();
    wait_for_hosts(&nats, 1, SOON);
    let mut told = status(&nats);
    wait_until("all hosts", SOON, || {
        for index in 0..HOSTS {
            let demand = HostDemand {
                version: VERSION,
                session: 1,
                push: LaneDemand::default(),
                pull: LaneDemand::default(),
            };
            let demand = serde_json::to_vec(&demand).expect("JSON");
            nats.publish(&demands_of("berlin", &format!("h{index}")), &demand);
        }
        told = status(&nats);
        let listed = told["hosts"].as_array().map_or(0, Vec::len);
        listed as u64 + told["unlisted"].as_u64().unwrap_or_default() == HOSTS as u64 + 1
    });
    assert!(told["unlisted"].as_u64() > Some(0), "{told}");
    assert!(
        told["hosts"]
            .as_array()
            .is_some_and(|hosts| hosts.len() > 10),
        "{told}"
    );
    let shown = said_by(&fleet(&a, &["status"]), 0);
    assert!(
        shown.contains("\nand ") && shown.contains(" more\n"),
        "{shown}"
    );
}
