//! Stores that fail: tried again, or reported with what helps.

mod dav;
mod jobs;

use std::fs;
use std::time::Duration;

use fairbat_agent::store::StoreErrorKind;
use fairbat_agent::sync::{Delete, EntryFailure, RunProblem};
use fairbat_tests::message::Reply;
use fairbat_tests::stores::{Dav, DavKind, Exchange, Fault, FaultProxy, Requests, S3, S3Kind};

use crate::agent::{Agent, StoreAccess};
use crate::round_trip::{clean, dir, s3};
use crate::tree::expect_same;

/// How long a server may be silent.
const SILENCE: Duration = Duration::from_secs(4);

/// An answer with an error document of S3.
pub(crate) fn refusal(status: u16, code: &str) -> Reply {
    let body = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code></Error>");
    Reply::status(status).body(body.into_bytes())
}

/// What an answer promises when it wants to be left alone for so many seconds.
fn busy(reply: Reply, seconds: u64) -> Fault {
    Fault::Answer(reply.header("Retry-After", &seconds.to_string()))
}

/// A small and a large file, an agent, and a proxy before its store.
pub(crate) struct Scene {
    pub(crate) source: tempfile::TempDir,
    states: tempfile::TempDir,
    server: Server,
    pub(crate) proxy: FaultProxy,
    pub(crate) agent: Agent,
}

#[expect(dead_code, reason = "they end with the scene")]
enum Server {
    S3(S3),
    Dav(Dav),
}

impl Scene {
    pub(crate) fn s3(kind: S3Kind) -> Self {
        let server = S3::start(kind);
        let proxy = FaultProxy::start(server.address());
        let settings = s3(&server, &proxy.url());
        Self::new(Server::S3(server), proxy, &settings)
    }

    pub(crate) fn dav() -> Self {
        let server = Dav::start(DavKind::Wsgidav);
        let proxy = FaultProxy::start(server.address());
        let settings = crate::round_trip::dav(&server, &proxy.url());
        Self::new(Server::Dav(server), proxy, &settings)
    }

    fn new(server: Server, proxy: FaultProxy, settings: &StoreAccess) -> Self {
        let (source, states) = (dir(), dir());
        fs::write(source.path().join("small"), "small").expect("write a file");
        let large: Vec<u8> = (0..12 * 1024 * 1024_u32)
            .map(|i| (i / 1000) as u8)
            .collect();
        fs::write(source.path().join("large"), large).expect("write a file");
        let agent = Agent::waiting(settings, &states.path().join("state"), SILENCE);
        Self {
            source,
            states,
            server,
            proxy,
            agent,
        }
    }

    /// Whether large files go in parts, and not in one request.
    pub(crate) fn takes_parts(&self) -> bool {
        matches!(self.server, Server::S3(_))
    }

    /// What a pull brings is what is in the source.
    pub(crate) async fn expect_in_step(&self) {
        let pulled = self.states.path().join("pulled");
        clean(self.agent.pull(&pulled, Delete::Never).await);
        expect_same(self.source.path(), &pulled);
        fs::remove_dir_all(&pulled).expect("remove what was pulled");
    }

    /// Requests of a method for what has this in its URL.
    fn seen(&self, method: &str, part: &str) -> Vec<Exchange> {
        let mut seen = self.proxy.exchanges();
        seen.retain(|seen| seen.method == method && seen.target.contains(part));
        seen
    }

    /// The first of these requests was answered with a wish to be left alone for so
    /// long, and it was.
    fn expect_pause(&self, method: &str, part: &str, pause: Duration) {
        let seen = self.seen(method, part);
        assert_eq!(seen[0].status, None, "{seen:#?}");
        assert!(seen[1].at - seen[0].at >= pause, "{seen:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_passes_is_tried_again() {
    let scene = Scene::s3(S3Kind::S3sFs);
    let puts = || Requests::of("PUT").nth(0..1);
    let on = |requests, fault| scene.proxy.on(requests, fault);
    on(
        puts().containing("small"),
        busy(refusal(503, "SlowDown"), 2),
    );
    on(
        puts().containing("partNumber=1"),
        Fault::StallRequest(100_000),
    );
    on(
        puts().containing("partNumber=2"),
        Fault::CutRequest(100_000),
    );
    on(puts().containing("partNumber=3"), Fault::LoseResponse);
    let posts = || Requests::of("POST").containing("large");
    on(
        posts().nth(0..1),
        Fault::Answer(refusal(500, "InternalError")),
    );
    on(posts().nth(1..2), Fault::Delay(Duration::from_millis(700)));
    // S3 may find out that it cannot after it has said that all is well.
    on(
        posts().nth(2..3),
        Fault::Answer(refusal(200, "InternalError")),
    );
    let report = clean(scene.agent.push(scene.source.path(), Delete::Never).await);
    assert_eq!(report.sent, 2, "{report:#?}");
    assert_eq!(report.retries.busy, 1, "{report:#?}");
    assert!(report.retries.network >= 3, "{report:#?}");
    assert!(report.retries.server >= 2, "{report:#?}");
    scene.expect_pause("PUT", "small", Duration::from_secs(2));
    scene.expect_in_step().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_breaks_off_on_its_way_back_is_fetched_again() {
    let scene = Scene::s3(S3Kind::S3sFs);
    clean(scene.agent.push(scene.source.path(), Delete::Never).await);
    let gets = |file: &str| Requests::of("GET").containing(file);
    let on = |requests: Requests, fault| scene.proxy.on(requests, fault);
    on(gets("large").nth(0..1), Fault::CutResponse(5_000_000));
    on(gets("large").nth(1..2), Fault::StallResponse(9_000_000));
    on(gets("small").nth(0..1), Fault::CutResponse(0));
    on(gets("small").nth(1..2), busy(refusal(503, "SlowDown"), 1));
    let pulled = dir();
    let report = clean(scene.agent.pull(pulled.path(), Delete::Never).await);
    assert_eq!(
        (report.retries.network, report.retries.busy),
        (3, 1),
        "{report:#?}"
    );
    expect_same(scene.source.path(), pulled.path());
}

/// The store holds another part than the one whose name it told.
#[tokio::test(flavor = "multi_thread")]
async fn a_part_with_another_name_is_sent_anew_and_nothing_half_is_stored() {
    let scene = Scene::s3(S3Kind::Moto);
    let wrong = "\"00000000000000000000000000000000\"".to_owned();
    let wrong = Fault::Header("etag".to_owned(), wrong);
    for requests in ["partNumber=2", "small"] {
        let first = Requests::of("PUT").containing(requests).nth(0..1);
        scene.proxy.on(first, wrong.clone());
    }
    let report = clean(scene.agent.push(scene.source.path(), Delete::Never).await);
    assert_eq!(
        (report.sent, report.retries.integrity),
        (2, 1),
        "{report:#?}"
    );
    assert_eq!(scene.seen("PUT", "partNumber=2").len(), 2);
    let pending = scene.agent.store.pending("home").await;
    assert_eq!(pending.expect("list uploads"), []);
    scene.expect_in_step().await;

    // Not for ever.
    fs::write(scene.source.path().join("large"), vec![1; 11_000_000]).expect("write a file");
    scene
        .proxy
        .on(Requests::of("PUT").containing("partNumber"), wrong);
    let report = scene.agent.push(scene.source.path(), Delete::Never).await;
    let [(path, EntryFailure::Store(error))] = report.failures.as_slice() else {
        panic!("{report:#?}");
    };
    assert_eq!(path.to_string(), "large");
    assert!(error.message.contains("InvalidPart"), "{error}");
    scene.proxy.heal();
    clean(scene.agent.push(scene.source.path(), Delete::Never).await);
    scene.expect_in_step().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_pass_ends_the_run_and_says_what_helps() {
    let refusals = [
        (403, "RequestTimeTooSkewed", StoreErrorKind::Clock, "clock"),
        (400, "ExpiredToken", StoreErrorKind::Credentials, "renew"),
        (
            403,
            "SignatureDoesNotMatch",
            StoreErrorKind::Credentials,
            "secret key",
        ),
        (507, "XMinioStorageFull", StoreErrorKind::Full, "room"),
        (403, "QuotaExceeded", StoreErrorKind::Full, "quota"),
    ];
    for (status, code, kind, hint) in refusals {
        let scene = Scene::s3(S3Kind::S3sFs);
        let refused = Fault::Answer(refusal(status, code));
        scene.proxy.on(Requests::of("PUT"), refused);
        let report = scene.agent.push(scene.source.path(), Delete::Never).await;
        let Some(RunProblem::Store(error)) = &report.problem else {
            panic!("{code}: {report:#?}");
        };
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.contains(code), "{error}");
        assert!(error.hint.contains(hint), "{}", error.hint);
        // It goes well as soon as it can.
        scene.proxy.heal();
        let report = clean(scene.agent.push(scene.source.path(), Delete::Never).await);
        assert!(report.sent >= 1, "{report:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_file_that_is_refused_does_not_hold_up_the_others() {
    let scene = Scene::s3(S3Kind::S3sFs);
    let refused = Fault::Answer(refusal(400, "InvalidRequest"));
    scene
        .proxy
        .on(Requests::of("PUT").containing("small"), refused);
    let report = scene.agent.push(scene.source.path(), Delete::Never).await;
    assert_eq!((report.sent, report.failed), (1, 1), "{report:#?}");
    assert!(report.problem.is_none(), "{report:#?}");
    let (path, failure) = &report.failures[0];
    assert_eq!(path.to_string(), "small");
    assert!(matches!(failure, EntryFailure::Store(_)), "{failure:?}");
}
