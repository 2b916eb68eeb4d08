//! What breaks off, is refused or does not fit leaves nothing half.

use std::fs;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use fairbat_agent::config::credentials::{SecretText, StoreCredentials};
use fairbat_agent::store::{StagedFile, Store, StoreError, StoreErrorKind};
use fairbat_agent::sync::{EntryFailure, RunProblem};
use fairbat_tests::tmpfs::TmpFs;
use futures_util::stream;

use super::agent::Agent;
use super::servers::{Relay, Server, USER};
use super::{clean, content, fetch};

const MIB: usize = 1024 * 1024;

/// A server is looked at so often, ...
const LOOKS: u32 = 100;
/// ... and then.
const LOOK: Duration = Duration::from_millis(200);

/// Sends 20 pieces of 1 MiB, or fails before the one of this number.
async fn send(store: &dyn Store, fails_at: usize) -> Result<StagedFile, StoreError> {
    let pieces = (0..20).map(move |i| match i == fails_at {
        true => Err(io::Error::other("the file changed").into()),
        false => Ok(Bytes::from(vec![b'n'; MIB])),
    });
    let pieces = Box::pin(stream::iter(pieces));
    let size = 20 * MIB as u64;
    store
        .put_stream("d/f", size, pieces, Default::default())
        .await
}

async fn keeps_what_was_there(server: &Server) {
    let agent = Agent::new(&server.settings());
    let old = Bytes::from_static(b"old");
    let put = agent.store.put("d/f", old, Default::default());
    put.await.unwrap();
    let file = server.files().join("d/f");

    // The source breaks off, even at its last piece.
    for fails_at in [0, 10, 19] {
        send(&*agent.store, fails_at).await.unwrap_err();
        assert_eq!(fs::read(&file).unwrap(), b"old", "{fails_at}");
    }
    // The connection does.
    let relay = Relay::cutting(server, 10 * MIB as u64);
    let broken = Agent::new(&server.settings_by(&relay));
    let error = send(&*broken.store, usize::MAX).await.unwrap_err();
    assert!(relay.has_cut());
    assert_eq!(error.kind, StoreErrorKind::Network, "{error}");
    assert_eq!(fs::read(&file).unwrap(), b"old");

    let mut arrived = send(&*broken.store, usize::MAX).await.unwrap();
    broken.store.place(&mut arrived).await.unwrap();
    assert_eq!(fs::read(&file).unwrap(), vec![b'n'; 20 * MIB]);
    // What was left is deleted by and by, when the server has let go of it.
    for _ in 0..LOOKS {
        for agent in [&agent, &broken] {
            let small = Bytes::from_static(b"new");
            let put = agent.store.put("d/f", small, Default::default());
            put.await.unwrap();
        }
        if server.unfinished() == 0 {
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
    panic!("{} unfinished files are left", server.unfinished());
}

#[tokio::test(flavor = "multi_thread")]
async fn rclone_keeps_what_was_there() {
    if let Some(server) = Server::rclone() {
        keeps_what_was_there(&server).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fairbat_keeps_what_was_there() {
    if let Some(server) = Server::fairbat() {
        keeps_what_was_there(&server).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_on_where_a_connection_broke() {
    for server in [Server::rclone(), Server::fairbat()].into_iter().flatten() {
        let source = tempfile::tempdir().unwrap();
        let large = content(7, 20_000_000);
        fs::write(source.path().join("large"), &large).unwrap();
        let relay = Relay::cutting(&server, 10_000_000);
        let agent = Agent::new(&server.settings_by(&relay));
        let report = clean(agent.push(source.path()).await);
        assert!(relay.has_cut());
        assert_eq!((report.sent, report.retries.network), (1, 1), "{report:#?}");
        assert!(fs::read(server.files().join("home/large")).unwrap() == large);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_is_told_so_without_secrets() {
    let wrong = |credentials| async move {
        for server in [Server::rclone(), Server::fairbat()].into_iter().flatten() {
            let agent = Agent::new(&server.settings_as(StoreCredentials::clone(&credentials)));
            let source = tempfile::tempdir().unwrap();
            fs::write(source.path().join("large"), content(7, 20_000_000)).unwrap();
            let report = agent.push(source.path()).await;
            let Some(RunProblem::Store(error)) = &report.problem else {
                panic!("{report:#?}");
            };
            assert_eq!(error.kind, StoreErrorKind::Credentials, "{error}");
            let told = format!("{error:?} {:?} {:?}", agent.store, server.settings());
            for secret in ["pass-4711", "token-4711", "not-4711"] {
                assert!(!told.contains(secret), "{told}");
            }
            assert!(!server.files().join("home").exists());
        }
    };
    wrong(StoreCredentials::Password {
        user: USER.to_owned(),
        password: SecretText::new("not-4711".to_owned()),
    })
    .await;
    wrong(StoreCredentials::Token(SecretText::new(
        "not-4711".to_owned(),
    )))
    .await;
    wrong(StoreCredentials::Anonymous).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_told_and_leaves_nothing_half() {
    let Some(disk) = TmpFs::mount(4 * MIB as u64) else {
        return;
    };
    let Some(server) = Server::rclone_in(Some(disk.path())) else {
        return;
    };
    let source = tempfile::tempdir().unwrap();
    fs::write(source.path().join("large"), content(7, 20_000_000)).unwrap();
    fs::write(source.path().join("medium"), content(8, 4_500_000)).unwrap();
    let agent = Agent::new(&server.settings());
    let report = agent.push(source.path()).await;
    // This server does not say what is the matter, and so each file is named.
    assert_eq!((report.sent, report.failed), (0, 2), "{report:#?}");
    for (_, failure) in &report.failures {
        let EntryFailure::Store(error) = failure else {
            panic!("{failure}");
        };
        assert!(error.hint.contains("disk"), "{error}: {}", error.hint);
    }
    for name in ["large", "medium"] {
        assert!(!disk.path().join("home").join(name).exists(), "{name}");
    }
    // There is room again for what fits.
    fs::remove_file(source.path().join("large")).unwrap();
    fs::write(source.path().join("medium"), content(8, 3_000_000)).unwrap();
    let report = clean(agent.push(source.path()).await);
    assert_eq!(report.sent, 1, "{report:#?}");
    assert_eq!(server.unfinished(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_is_not_replaced_unless_it_is_empty() {
    let Some(server) = Server::rclone() else {
        return;
    };
    let agent = Agent::new(&server.settings());
    fs::create_dir_all(server.files().join("d/e")).unwrap();
    fs::write(server.files().join("d/e/precious"), "x").unwrap();
    let put = |key: &'static str| {
        let new = Bytes::from_static(b"new");
        agent.store.put(key, new, Default::default())
    };
    let error = put("d/e").await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Refused, "{error}");
    assert_eq!(fs::read(server.files().join("d/e/precious")).unwrap(), b"x");
    fs::remove_file(server.files().join("d/e/precious")).unwrap();
    put("d/e").await.unwrap();
    assert_eq!(fetch(&*agent.store, "d/e").await, b"new");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_run_has_left_is_deleted_and_nothing_of_others() {
    let Some(server) = Server::rclone() else {
        return;
    };
    let unfinished = server.files().join(".fairbat/unfinished");
    fs::create_dir_all(&unfinished).unwrap();
    let names = ["home%2Fx~00-0", "elsewhere%2Fx~00-0", "what is this"];
    for name in names {
        fs::write(unfinished.join(name), "half").unwrap();
    }
    let agent = Agent::new(&server.settings());
    let pending = agent.store.pending("home").await.unwrap();
    let [pending] = pending.as_slice() else {
        panic!("{pending:?}");
    };
    assert_eq!(
        (pending.key.as_str(), pending.upload.as_str()),
        ("home/x", names[0])
    );
    let source = tempfile::tempdir().unwrap();
    fs::write(source.path().join("x"), "whole").unwrap();
    let report = clean(agent.push(source.path()).await);
    assert_eq!(report.orphans, 1, "{report:#?}");
    let left = names.map(|name| unfinished.join(name).exists());
    assert_eq!(left, [false, true, true]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_root_that_is_not_there_is_not_made() {
    let Some(server) = Server::rclone() else {
        return;
    };
    let mut settings = server.settings();
    if let fairbat_agent::config::StoreConfig::Webdav(http) = &mut settings.0 {
        http.url.set_path("/not/mounted");
    }
    let agent = Agent::new(&settings);
    let new = Bytes::from_static(b"new");
    let put = agent.store.put("x", new, Default::default());
    let error = put.await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Refused, "{error}");
    assert!(error.hint.contains("URL"), "{}", error.hint);
    assert!(!server.files().join("not").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_name_that_is_forbidden_does_not_end_a_run() {
    let Some(server) = Server::fairbat() else {
        return;
    };
    // The server does not follow it out of what it serves.
    fs::create_dir(server.files().join("home")).unwrap();
    std::os::unix::fs::symlink("/tmp", server.files().join("home/out")).unwrap();
    let source = tempfile::tempdir().unwrap();
    for name in ["a", "out", "z"] {
        fs::create_dir(source.path().join(name)).unwrap();
        fs::write(source.path().join(name).join("file"), name).unwrap();
    }
    let agent = Agent::new(&server.settings());
    let report = agent.push(source.path()).await;
    assert_eq!(report.problem, None, "{report:#?}");
    assert_eq!((report.sent, report.failed), (2, 1), "{report:#?}");
}
