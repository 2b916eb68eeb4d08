//! Pushes that take long, or end in the middle: what can be pulled meanwhile, and
//! what is believed of the store afterwards.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fairbat_agent::sync::{Delete, PushSettings, RunProgress, RunReport, Verify};
use fairbat_tests::message::Reply;
use fairbat_tests::poll::wait_until;
use fairbat_tests::stores::{Exchange, Fault, FaultProxy, Requests, S3, S3Kind};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::agent::Agent;
use crate::round_trip::{clean, dir, s3};
use crate::tree::expect_same;

/// For what is sure to happen.
const PATIENCE: Duration = Duration::from_secs(120);

/// An agent, and a store that may fail.
pub(crate) struct Scene {
    pub(crate) source: TempDir,
    _states: TempDir,
    _server: S3,
    pub(crate) proxy: FaultProxy,
    pub(crate) agent: Arc<Agent>,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let (source, states) = (dir(), dir());
        let server = S3::start(S3Kind::Moto);
        let proxy = FaultProxy::start(server.address());
        let agent = Agent::new(&s3(&server, &proxy.url()), &states.path().join("state"));
        Self {
            source,
            _states: states,
            _server: server,
            proxy,
            agent: Arc::new(agent),
        }
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.source.path().join(name), content).expect("write a file");
    }

    pub(crate) async fn push(&self) -> RunReport {
        self.agent.push(self.source.path(), Delete::Never).await
    }

    /// A push beside the test.
    pub(crate) fn pushing(
        &self,
        change: impl FnOnce(&mut PushSettings) + Send + 'static,
    ) -> JoinHandle<RunReport> {
        let (agent, source) = (Arc::clone(&self.agent), self.source.path().to_owned());
        tokio::spawn(async move { agent.push_with(&source, change).await })
    }

    /// A push that tells the store of nothing before its end, but at its beginning.
    fn pushing_silently(&self) -> JoinHandle<RunReport> {
        self.pushing(|settings| settings.publish_interval = PATIENCE * 10)
    }

    /// A push that is killed once there was such an exchange.
    pub(crate) async fn killed_after(&self, is_it: impl Fn(&Exchange) -> bool) {
        let run = self.pushing_silently();
        self.wait_for(is_it).await;
        killed(run).await;
    }

    pub(crate) async fn wait_for(&self, is_it: impl Fn(&Exchange) -> bool) {
        tokio::task::block_in_place(|| {
            wait_until("a request", PATIENCE, || {
                self.proxy.exchanges().iter().any(&is_it)
            });
        });
    }

    /// Requests of this kind come to nothing.
    pub(crate) fn refuse(&self, requests: Requests) {
        self.proxy
            .on(requests, Fault::Answer(refusal(500, "InternalError")));
    }

    /// Waits until the store has the newer `a` as well.
    async fn wait_for_second_a(&self) {
        let is_it = done("PUT", "home/a");
        tokio::task::block_in_place(|| {
            wait_until("another `a`", PATIENCE, || {
                let exchanges = self.proxy.exchanges();
                exchanges.iter().filter(|one| is_it(one)).count() > 1
            });
        });
    }

    async fn pulled(&self) -> (TempDir, RunReport) {
        let pulled = dir();
        let report = self.agent.pull(pulled.path(), Delete::Never).await;
        (pulled, report)
    }

    /// Waits until the store has been told of `a`, and pulls it.
    async fn expect_told(&self, content: &str) {
        self.wait_for_second_a().await;
        tokio::task::block_in_place(|| {
            wait_until("the manifest", PATIENCE, || {
                let exchanges = self.proxy.exchanges();
                let last = |is_it: &dyn Fn(&Exchange) -> bool| exchanges.iter().rposition(is_it);
                last(&done("PUT", "current.json")) > last(&done("PUT", "home/a"))
            });
        });
        let (pulled, report) = self.pulled().await;
        clean(report);
        let found = fs::read_to_string(pulled.path().join("a")).expect("it is there");
        assert_eq!(found, content);
    }

    async fn expect_in_step(&self) {
        let (pulled, report) = self.pulled().await;
        clean(report);
        expect_same(self.source.path(), pulled.path());
    }
}

/// Kills a push that goes on.
async fn killed(run: JoinHandle<RunReport>) {
    run.abort();
    let ended = run.await;
    assert!(ended.is_err(), "it was over before: {ended:#?}");
}

/// An answer with an error document of S3.
pub(crate) fn refusal(status: u16, code: &str) -> Reply {
    let body = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code></Error>");
    Reply::status(status).body(body.into_bytes())
}

/// A request of this method for this, that was answered by the store.
pub(crate) fn done(method: &'static str, target: &'static str) -> impl Fn(&Exchange) -> bool {
    move |seen| {
        seen.method == method
            && seen.target.contains(target)
            && seen.status.is_some_and(|status| status < 300)
    }
}

fn large() -> Vec<u8> {
    (0..12 * 1024 * 1024_u32).map(|i| (i >> 8) as u8).collect()
}

/// A store that has an older `a`, and takes no more than it and the first part of `z`.
async fn halfway() -> Scene {
    let scene = Scene::new();
    scene.write("a", "first");
    clean(scene.push().await);
    scene.write("a", "second, longer");
    scene.write("z", large());
    scene.refuse(Requests::of("PUT").containing("partNumber=2"));
    scene
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_come_can_be_pulled_while_the_rest_is_under_way() {
    let scene = halfway().await;
    let run = scene.pushing(|settings| settings.publish_interval = Duration::from_millis(200));
    scene.wait_for(done("PUT", "partNumber=1")).await;
    scene.expect_told("second, longer").await;
    assert!(!run.is_finished());
    scene.proxy.heal();
    clean(run.await.expect("the push does not panic"));
    scene.expect_in_step().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_push_has_brought_is_told_first() {
    let scene = halfway().await;
    let run = scene.pushing_silently();
    scene.wait_for(done("PUT", "partNumber=1")).await;
    scene.wait_for_second_a().await;
    killed(run).await;
    let run = scene.pushing_silently();
    scene.expect_told("second, longer").await;
    assert!(!run.is_finished());
    run.abort();
    scene.proxy.heal();
    clean(scene.push().await);
    scene.expect_in_step().await;
}

fn touch(path: &Path, time: SystemTime) {
    let file = fs::File::options().write(true).open(path);
    let touched = file.and_then(|file| file.set_modified(time));
    touched.expect("set a time");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_replaced_before_a_kill_is_not_taken_for_what_was_there() {
    let scene = Scene::new();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let path = scene.source.path().join("a");
    scene.write("a", "first");
    touch(&path, time);
    clean(scene.push().await);
    scene.write("a", "other");
    // The store has it, and nobody hears of that.
    let puts = Requests::of("PUT").containing("/home/a");
    scene.proxy.on(puts, Fault::LoseResponse);
    let before = scene.proxy.count("PUT");
    let run = scene.pushing(|_| {});
    tokio::task::block_in_place(|| {
        wait_until("a PUT", PATIENCE, || scene.proxy.count("PUT") > before);
    });
    run.abort();
    let _ = run.await;
    scene.proxy.heal();
    // It is what it was, to the last bit, at the same time.
    scene.write("a", "first");
    touch(&path, time);
    let report = clean(scene.push().await);
    assert_eq!((report.sent, report.same), (1, 0), "{report:#?}");
    scene.expect_in_step().await;
}

fn is_first(seen: &Exchange) -> bool {
    seen.target.contains("partNumber=1&")
}

/// A push that was killed when the store had a part of `z` and nobody had heard of
/// that.
async fn killed_before_it_heard() -> Scene {
    let scene = Scene::new();
    scene.write("z", large());
    let first = Requests::of("PUT").containing("partNumber=1");
    scene.proxy.on(first.nth(0..1), Fault::LoseResponse);
    scene.refuse(Requests::of("PUT").containing("partNumber"));
    scene.killed_after(is_first).await;
    scene.proxy.heal();
    scene
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_does_not_show_what_is_in_it_is_sent_again() {
    let parts = |etag: &str| {
        let body = format!(
            "<?xml version=\"1.0\"?><ListPartsResult><Part><PartNumber>1</PartNumber>\
             <ETag>{etag}</ETag><Size>{}</Size></Part></ListPartsResult>",
            5 * 1024 * 1024
        );
        Fault::Answer(Reply::status(200).body(body.into_bytes()))
    };
    // Of whatever it is, and of another content.
    for etag in ["something", "00000000000000000000000000000000"] {
        let scene = killed_before_it_heard().await;
        let list = Requests::of("GET").containing("uploadId=");
        scene.proxy.on(list, parts(etag));
        let before = scene.proxy.exchanges().len();
        clean(scene.push().await);
        let again = &scene.proxy.exchanges()[before..];
        let first = done("PUT", "partNumber=1&");
        assert!(again.iter().any(first), "{again:#?}");
        scene.expect_in_step().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_which_nobody_heard_is_not_sent_again() {
    let scene = killed_before_it_heard().await;
    let before = scene.proxy.exchanges().len();
    clean(scene.push().await);
    let again = &scene.proxy.exchanges()[before..];
    assert!(again.iter().any(done("PUT", "partNumber=2")), "{again:#?}");
    // The killed push may have asked once more, and has heard nothing.
    let first = done("PUT", "partNumber=1&");
    assert!(!again.iter().any(first), "{again:#?}");
    scene.expect_in_step().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_waits_to_be_tried_again_keeps_no_other_file_waiting() {
    let scene = Scene::new();
    scene.write("a", large());
    for i in 0..20 {
        scene.write(&format!("b{i:02}"), vec![i; 1024 * 1024]);
    }
    scene.refuse(Requests::of("PUT").containing("partNumber"));
    let run = scene.pushing(|_| {});
    scene.wait_for(done("PUT", "home/b19")).await;
    assert!(!run.is_finished());
    scene.proxy.heal();
    clean(run.await.expect("the push does not panic"));
    scene.expect_in_step().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_was_completed_before_a_kill_is_not_sent_again() {
    let again = completed_after_a_kill(Duration::from_secs(4)).await;
    assert!(!again.iter().any(done("PUT", "home/z")), "{again:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn unless_it_was_of_a_file_that_may_have_been_written_on() {
    let again = completed_after_a_kill(Duration::ZERO).await;
    assert!(again.iter().any(done("PUT", "home/z")), "{again:#?}");
}

/// Pushes a file of this age; it is killed before the last part is remembered, the
/// upload is completed, and it is pushed again. Returns what that asked.
async fn completed_after_a_kill(age: Duration) -> Vec<Exchange> {
    let scene = Scene::new();
    scene.write("z", large());
    tokio::time::sleep(age).await;
    let last = Requests::of("PUT").containing("partNumber=3");
    scene.proxy.on(last.nth(0..1), Fault::LoseResponse);
    scene.refuse(Requests::of("PUT").containing("partNumber=3"));
    let is_last = |seen: &Exchange| seen.target.contains("partNumber=3&");
    scene.killed_after(is_last).await;
    scene.proxy.heal();
    let store = &scene.agent.store;
    let pending = store.pending("home").await.expect("list uploads").remove(0);
    let (key, upload) = (pending.key, pending.upload);
    let mut parts = store.parts(&key, &upload).await.expect("list parts");
    parts.sort_by_key(|part| part.index);
    let names: Vec<_> = parts.into_iter().map(|part| part.name).collect();
    assert_eq!(names.len(), 3);
    let completed = store.complete(&key, &upload, names).await;
    completed.expect("complete an upload");

    let before = scene.proxy.exchanges().len();
    let report = clean(scene.push().await);
    assert_eq!(report.sent, 1, "{report:#?}");
    let again = scene.proxy.exchanges().split_off(before);
    scene.expect_in_step().await;
    again
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_the_store_has_given_up_is_begun_anew() {
    let scene = Scene::new();
    scene.write("z", large());
    scene.refuse(Requests::of("PUT").containing("partNumber=2"));
    scene.killed_after(done("PUT", "partNumber=1")).await;
    scene.proxy.heal();
    let store = &scene.agent.store;
    let pending = store.pending("home").await.expect("list uploads").remove(0);
    let aborted = store.abort(&pending.key, &pending.upload).await;
    aborted.expect("give an upload up");
    let report = clean(scene.push().await);
    assert_eq!((report.sent, report.retries), (1, Default::default()));
    scene.expect_in_step().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_and_then_a_failure_end_no_upload() {
    let scene = Scene::new();
    scene.write("z", large());
    let complete = Requests::of("POST").containing("uploadId=");
    scene
        .proxy
        .on(complete.clone().nth(0..1), Fault::LoseResponse);
    let gone = Fault::Answer(refusal(404, "NoSuchUpload"));
    scene.proxy.on(complete.nth(1..2), gone);
    scene.refuse(Requests::of("HEAD").nth(0..2));
    let report = clean(scene.push().await);
    assert_eq!(report.sent, 1, "{report:#?}");
    assert_eq!(scene.proxy.count("HEAD"), 3);
    scene.expect_in_step().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_reads_back_wrong_counts_once() {
    let scene = Scene::new();
    scene.write("small", "x".repeat(1_000));
    scene.write("z", large());
    let wrong = Fault::Answer(Reply::status(200).body(b"wrong".to_vec()));
    for name in ["home/small", "home/z"] {
        let gets = Requests::of("GET").containing(name);
        scene.proxy.on(gets, wrong.clone());
    }
    let ledger = RunProgress::default();
    let verified = |settings: &mut PushSettings| settings.verify = Verify::ReadBack;
    let pushed = scene
        .agent
        .push_on(&ledger, scene.source.path(), verified)
        .await;
    assert_eq!((pushed.sent, pushed.failed), (0, 2), "{pushed:#?}");
    let standing = ledger.totals();
    assert_eq!(standing.bytes, 1_000 + large().len() as u64);
    assert_eq!(standing.bytes_done, standing.bytes, "{standing:?}");
    assert_eq!(standing.bytes_moved, standing.bytes, "{standing:?}");
}
