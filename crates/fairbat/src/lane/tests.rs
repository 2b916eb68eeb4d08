use jiff::SignedDuration;

use std::sync::Mutex;
use std::time::Duration;

use jiff::Timestamp;

use super::*;

const SETTINGS: LaneSettings = LaneSettings {
    is_held: true,
    ..LaneSettings::new(3)
};

fn within(seconds: i64) -> Option<Timestamp> {
    #[allow(
        clippy::disallowed_methods,
        reason = "a deadline is a moment of the wall clock"
    )]
    let now = Timestamp::now();
    Some(now + SignedDuration::from_secs(seconds))
}

/// Whether it gets a permit at once.
async fn at_once(member: &Member) -> Option<Permit> {
    tokio::select! {
        biased;
        permit = member.admit() => Some(permit),
        () = tokio::task::yield_now() => None,
    }
}

#[tokio::test]
async fn one_connection_at_first_and_the_next_when_it_is_given_back() {
    let lane = Lane::start(SETTINGS).unwrap();
    let member = lane.enter("host", Service::of_batch(None));
    let permit = at_once(&member).await.expect("nobody else is there");
    assert!(at_once(&member).await.is_none());
    drop(permit);
    assert!(at_once(&member).await.is_some());
}

#[tokio::test]
async fn the_earliest_deadline_goes_first() {
    let lane = Lane::start(SETTINGS).unwrap();
    let none = lane.enter("host", Service::of_batch(None));
    let late = lane.enter("host", Service::of_batch(within(900)));
    let early = lane.enter("host", Service::of_batch(within(600)));
    let first = lane.enter("host", Service::of_batch(within(300)));
    let permit = at_once(&first).await.expect("nobody else waits");
    let order = Mutex::new(Vec::new());
    let take = async |member: &Member, name| {
        let _permit = member.admit().await;
        order.lock().unwrap().push(name);
    };
    let release = async {
        tokio::task::yield_now().await;
        drop(permit);
    };
    tokio::join!(
        take(&none, "none"),
        take(&late, "late"),
        take(&early, "early"),
        release
    );
    assert_eq!(order.into_inner().unwrap(), ["early", "late", "none"]);
}

#[tokio::test]
async fn who_is_due_first_does_not_wait_for_those_that_are_due_later() {
    let lane = Lane::start(SETTINGS).unwrap();
    let (none, early) = (
        lane.enter("host", Service::of_batch(None)),
        lane.enter("host", Service::of_batch(within(600))),
    );
    let _slow = at_once(&none).await.expect("nobody else waits");
    let _permit = at_once(&early).await.expect("nobody is due before");
    assert!(at_once(&early).await.is_none());
}

#[tokio::test]
async fn who_gives_up_waiting_leaves_no_gap() {
    let lane = Lane::start(SETTINGS).unwrap();
    let member = lane.enter("host", Service::of_batch(None));
    let permit = at_once(&member).await.unwrap();
    for _ in 0..10 {
        assert!(at_once(&member).await.is_none());
    }
    // Granted, and nobody comes for it.
    let mut waiting = Box::pin(member.admit());
    assert!(
        tokio::time::timeout(Duration::ZERO, &mut waiting)
            .await
            .is_err()
    );
    drop(permit);
    drop(waiting);
    assert!(at_once(&member).await.is_some());
}

#[tokio::test]
async fn a_member_that_leaves_takes_its_wishes_along_and_its_permits_stay() {
    let lane = Lane::start(SETTINGS).unwrap();
    let gone = lane.enter("host", Service::of_batch(None));
    let stays = lane.enter("host", Service::of_batch(None));
    let permit = at_once(&gone).await.unwrap();
    drop(gone);
    assert!(at_once(&stays).await.is_none());
    drop(permit);
    assert!(at_once(&stays).await.is_some());
}

#[tokio::test]
async fn a_host_that_pushes_back_gets_none_until_it_is_asked_again() {
    let lane = Lane::start(SETTINGS).unwrap();
    let (busy, other) = (
        lane.enter("busy", Service::of_batch(None)),
        lane.enter("other", Service::of_batch(None)),
    );
    let permit = at_once(&busy).await.unwrap();
    permit.refused(Duration::from_secs(3600));
    assert!(at_once(&busy).await.is_none());
    assert!(at_once(&other).await.is_some());
}

#[tokio::test]
async fn no_waiting_request_overtakes_a_push_back() {
    let lane = Lane::start(SETTINGS).unwrap();
    let (one, another) = (
        lane.enter("busy", Service::of_batch(None)),
        lane.enter("busy", Service::of_batch(None)),
    );
    let permit = at_once(&one).await.expect("nobody else is there");
    let mut waiting = another.request();
    permit.refused(Duration::from_secs(3600));
    assert!(waiting.try_take().is_none());
    assert!(
        at_once(&lane.enter("other", Service::of_batch(None)))
            .await
            .is_some()
    );
}

#[tokio::test]
async fn chunks_without_a_deadline_bring_as_many_connections_as_there_may_be() {
    let lane = Lane::start(SETTINGS).unwrap();
    let member = lane.enter("host", Service::of_batch(None));
    member.set_backlog(Backlog {
        bytes: 1 << 30,
        inactive: 10_000,
        ..Backlog::default()
    });
    let mut samples = lane.samples();
    let all = samples.wait_for(|sample| sample.m >= 3.0);
    let sample = *tokio::time::timeout(Duration::from_secs(60), all)
        .await
        .expect("m rises")
        .unwrap();
    assert!(sample.n >= 10_000.0, "{sample:?}");
    let mut permits = Vec::new();
    while let Some(permit) = at_once(&member).await {
        permits.push(permit);
    }
    assert_eq!(permits.len(), 3);
    assert_eq!(sample.w, 0.02, "{sample:?}");
}

#[tokio::test]
async fn a_deadline_that_presses_is_told_to_the_connections_and_foretold() {
    let lane = Lane::start(LaneSettings {
        limit_rate: Some(1_000),
        ..SETTINGS
    })
    .unwrap();
    let member = lane.enter("host", Service::of_batch(within(60)));
    member.set_backlog(Backlog {
        bytes: 10_000_000,
        inactive: 10,
        ..Backlog::default()
    });
    let _permit = member.admit().await;
    let mut samples = lane.samples();
    let foretold = samples.wait_for(|sample| sample.attainable.is_some());
    let sample = *tokio::time::timeout(Duration::from_secs(30), foretold)
        .await
        .expect("the ceiling is far below what is asked for")
        .unwrap();
    assert_eq!(sample.attainable, Some(1_000.0));
    assert!(
        sample.zeta.is_some_and(|zeta| zeta > 100_000.0),
        "{sample:?}"
    );
    let late = member
        .forecast()
        .lateness(1_000.0)
        .expect("it will be late");
    assert!((9_900.0..=10_000.0).contains(&late), "{late} s");
    assert!(member.forecast().lateness(1e9).is_none());
}

#[tokio::test]
async fn what_goes_before_a_member_delays_its_end() {
    let lane = Lane::start(SETTINGS).unwrap();
    let [early, late, free] =
        [within(600), within(900), None].map(|by| lane.enter("host", Service::of_batch(by)));
    for (member, bytes) in [(&early, 1_000), (&late, 500), (&free, 250)] {
        member.set_backlog(Backlog {
            bytes,
            inactive: 1,
            ..Backlog::default()
        });
    }
    let ends = [&early, &late, &free].map(|member| member.forecast().finish(10.0));
    let seconds = |s| Some(Duration::from_secs(s));
    assert_eq!(ends, [seconds(100), seconds(150), seconds(175)]);
    assert_eq!(free.forecast().finish(0.0), None, "nothing moves");
    let gone = late.forecast();
    drop(late);
    assert_eq!(gone.finish(10.0), None);
    assert_eq!(free.forecast().finish(10.0), seconds(125));
}

mod recorded;
