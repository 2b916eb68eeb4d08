use super::*;
use crate::entry::{Attributes, FileState, Moment};

fn path(name: &str) -> TreePath {
    TreePath::from_bytes(name.as_bytes()).unwrap()
}

fn file_state(size: u64) -> FileState {
    FileState {
        size,
        changed: Moment::default(),
        inode: 7,
        device: 1,
    }
}

fn synced(size: u64) -> Synced {
    Synced {
        attributes: Attributes {
            mode: 0o644,
            uid: 1,
            gid: 2,
            modified: Moment {
                seconds: -1,
                nanoseconds: 999,
            },
        },
        kind: SyncedKind::File {
            state: file_state(size),
            sha256: [size as u8; 32],
        },
    }
}

fn upload(name: &str) -> UploadRecord {
    UploadRecord {
        name: name.to_owned(),
        key: "key".to_owned(),
        part_size: 5,
        state: file_state(12),
        modified: Moment::default(),
    }
}

fn part(name: &str) -> UploadedPart {
    UploadedPart {
        name: name.to_owned(),
        sha256: [3; 32],
    }
}

fn open() -> (tempfile::TempDir, StateDatabase) {
    let directory = tempfile::tempdir().unwrap();
    let state = StateDatabase::open(&directory.path().join("state")).unwrap();
    (directory, state)
}

fn names(state: &StateDatabase, job: JobId) -> Vec<(String, u64)> {
    let entries = state.entries(job).unwrap().map(|entry| {
        let (path, synced) = entry.unwrap();
        let SyncedKind::File { state, .. } = synced.kind else {
            panic!("a file went in");
        };
        (path.to_string(), state.size)
    });
    entries.collect()
}

#[tokio::test]
async fn what_is_kept_is_there_after_a_crash() {
    let (directory, state) = open();
    let (job, record) = state.job("home").unwrap();
    assert_eq!(record, JobRecord::default());
    let writer = state.writer();
    for (name, size) in [("b", 2), ("a\0x", 1), ("a", 3), ("b", 4)] {
        writer
            .note(job, StateChange::Synced(path(name), synced(size)))
            .await
            .unwrap();
    }
    let record = JobRecord {
        succeeded: Some(17),
        ..JobRecord::default()
    };
    writer
        .keep(job, StateChange::Job(record.clone()))
        .await
        .unwrap();
    // The file as it is in this moment, as after kill -9.
    let copy = directory.path().join("copy");
    std::fs::copy(directory.path().join("state"), &copy).unwrap();
    let crashed = StateDatabase::open(&copy).unwrap();
    let (again, kept) = crashed.job("home").unwrap();
    assert_eq!((again, kept), (job, record));
    let expected = [("a", 3), ("a/x", 1), ("b", 4)];
    assert_eq!(
        names(&crashed, job),
        expected.map(|(name, size)| (name.to_owned(), size))
    );
    let last = crashed.entries(job).unwrap().last().unwrap().unwrap();
    assert_eq!(last, (path("b"), synced(4)));
}

#[tokio::test]
async fn jobs_do_not_see_each_other() {
    let (_directory, state) = open();
    let ids = ["b", "a", "c"].map(|name| state.job(name).unwrap().0);
    let writer = state.writer();
    for (id, size) in ids.iter().zip(1..) {
        writer
            .keep(*id, StateChange::Synced(path("x"), synced(size)))
            .await
            .unwrap();
    }
    writer
        .keep(ids[1], StateChange::Removed(path("x")))
        .await
        .unwrap();
    assert_eq!(names(&state, ids[0]), [("x".to_owned(), 1)]);
    assert_eq!(names(&state, ids[1]), []);
    assert_eq!(names(&state, ids[2]), [("x".to_owned(), 3)]);
    assert_eq!(state.job("a").unwrap().0, ids[1]);
}

#[tokio::test]
async fn what_the_manifest_has_not_been_told_is_known_until_it_is() {
    let (_directory, state) = open();
    let (job, _) = state.job("home").unwrap();
    let writer = state.writer();
    let untold = || {
        let items = state.untold(job).unwrap().map(|item| {
            let (path, entry) = item.unwrap();
            (path.to_string(), entry.is_some())
        });
        items.collect::<Vec<_>>()
    };
    writer
        .note(job, StateChange::Synced(path("a"), synced(1)))
        .await
        .unwrap();
    writer
        .note(job, StateChange::Synced(path("b"), synced(1)))
        .await
        .unwrap();
    writer
        .note(job, StateChange::Refreshed(path("c"), synced(1)))
        .await
        .unwrap();
    writer
        .keep(job, StateChange::Removed(path("b")))
        .await
        .unwrap();
    assert_eq!(untold(), [("a".to_owned(), true), ("b".to_owned(), false)]);
    let record = JobRecord::default();
    writer.keep(job, StateChange::Told(record)).await.unwrap();
    assert_eq!(untold(), []);
}

#[tokio::test]
async fn an_upload_is_known_with_its_parts_until_it_is_over() {
    let (_directory, state) = open();
    let (job, _) = state.job("home").unwrap();
    let writer = state.writer();
    let (big, other) = (path("big"), path("big\0x"));
    writer
        .note(job, StateChange::Begun(big.clone(), upload("one")))
        .await
        .unwrap();
    writer
        .note(job, StateChange::Begun(other.clone(), upload("two")))
        .await
        .unwrap();
    writer
        .note(job, StateChange::Arrived(big.clone(), 1, part("p1")))
        .await
        .unwrap();
    writer
        .note(job, StateChange::Arrived(other.clone(), 0, part("x0")))
        .await
        .unwrap();
    writer
        .keep(job, StateChange::Arrived(big.clone(), 0, part("p0")))
        .await
        .unwrap();
    let (found, parts) = state.upload(job, &big).unwrap().expect("it is under way");
    assert_eq!(found, upload("one"));
    assert_eq!(parts, BTreeMap::from([(0, part("p0")), (1, part("p1"))]));
    assert_eq!(state.uploads(job).unwrap().len(), 2);
    // Begun anew: its old parts are of no use.
    writer
        .keep(job, StateChange::Begun(big.clone(), upload("three")))
        .await
        .unwrap();
    let (found, parts) = state.upload(job, &big).unwrap().expect("it is under way");
    assert_eq!((found.name.as_str(), parts.len()), ("three", 0));
    writer
        .note(job, StateChange::Gone(other.clone()))
        .await
        .unwrap();
    writer
        .keep(job, StateChange::Completed(big.clone(), synced(12)))
        .await
        .unwrap();
    assert_eq!(state.uploads(job).unwrap(), []);
    assert_eq!(state.upload(job, &other).unwrap(), None);
    // Begun for the second time, it left the first.
    let left = state.left(job).unwrap();
    assert_eq!(left, [("key".to_owned(), "one".to_owned())]);
}

#[tokio::test]
async fn an_upload_that_nobody_goes_on_with_is_known_until_it_is_gone() {
    let (_directory, state) = open();
    let (job, _) = state.job("home").unwrap();
    let (another, _) = state.job("another").unwrap();
    let writer = state.writer();
    for (name, after) in [
        ("sent as a whole", StateChange::Synced(path("a"), synced(1))),
        ("removed", StateChange::Removed(path("a"))),
        ("left", StateChange::Left(path("a"))),
    ] {
        let begun = StateChange::Begun(path("a"), upload(name));
        writer.note(job, begun).await.unwrap();
        writer.keep(job, after).await.unwrap();
        assert_eq!(state.uploads(job).unwrap(), [], "{name}");
        let left = state.left(job).unwrap();
        assert_eq!(left, [("key".to_owned(), name.to_owned())]);
        assert_eq!(state.left(another).unwrap(), []);
        writer
            .keep(job, StateChange::Aborted(name.to_owned()))
            .await
            .unwrap();
        assert_eq!(state.left(job).unwrap(), []);
    }
    let beginning = StateChange::Beginning("key".to_owned());
    writer.keep(job, beginning).await.unwrap();
    assert_eq!(state.beginning(job).unwrap(), ["key".to_owned()].into());
    assert!(state.beginning(another).unwrap().is_empty());
    writer
        .keep(job, StateChange::Certain("key".to_owned()))
        .await
        .unwrap();
    assert!(state.beginning(job).unwrap().is_empty());
}

#[tokio::test]
async fn what_is_being_replaced_is_not_relied_on_until_it_is_in_step() {
    let (_directory, state) = open();
    let (job, _) = state.job("home").unwrap();
    let writer = state.writer();
    let all = ["a", "b", "c", "d"].map(path);
    let replacing = StateChange::Replacing(all.to_vec());
    writer.keep(job, replacing).await.unwrap();
    assert_eq!(state.replacing(job).unwrap(), all.into());
    for change in [
        StateChange::Synced(path("a"), synced(1)),
        StateChange::Completed(path("b"), synced(1)),
        StateChange::Removed(path("c")),
    ] {
        writer.keep(job, change).await.unwrap();
    }
    assert_eq!(state.replacing(job).unwrap(), [path("d")].into());
    let forgotten = StateChange::Forgotten(JobRecord::default());
    writer.keep(job, forgotten).await.unwrap();
    assert!(state.replacing(job).unwrap().is_empty());
}

#[tokio::test]
async fn what_changes_while_the_manifest_is_told_stays_untold() {
    let (_directory, state) = open();
    let (job, record) = state.job("home").unwrap();
    let writer = state.writer();
    let untold = || {
        let items = state.untold(job).unwrap();
        items
            .map(|item| item.unwrap().0.to_string())
            .collect::<Vec<_>>()
    };
    for name in ["a", "b", "c"] {
        let synced = StateChange::Synced(path(name), synced(1));
        writer.note(job, synced).await.unwrap();
    }
    writer.keep(job, StateChange::Telling).await.unwrap();
    writer
        .note(job, StateChange::Synced(path("b"), synced(2)))
        .await
        .unwrap();
    writer
        .note(job, StateChange::Removed(path("c")))
        .await
        .unwrap();
    writer
        .note(job, StateChange::Synced(path("d"), synced(2)))
        .await
        .unwrap();
    writer
        .keep(job, StateChange::Told(record.clone()))
        .await
        .unwrap();
    assert_eq!(untold(), ["b", "c", "d"]);
    writer.keep(job, StateChange::Telling).await.unwrap();
    writer.keep(job, StateChange::Told(record)).await.unwrap();
    assert!(untold().is_empty());
}

#[tokio::test]
async fn who_notes_more_than_there_is_room_for_waits() {
    let (_directory, state) = open();
    let (job, _) = state.job("home").unwrap();
    let writer = state.writer();
    // Nothing is written meanwhile.
    let held = state.database.begin_write().unwrap();
    let mut noted = 0;
    loop {
        let note = writer.note(job, StateChange::Aborted(String::new()));
        let note = tokio::task::unconstrained(note);
        if futures_util::FutureExt::now_or_never(note).is_none() {
            break;
        }
        noted += 1;
    }
    assert!(noted >= 1_000, "{noted}");
    held.abort().unwrap();
    let after = StateChange::Synced(path("a"), synced(1));
    writer.keep(job, after).await.unwrap();
    assert_eq!(names(&state, job).len(), 1);
}

#[tokio::test]
async fn of_a_job_that_has_another_store_nothing_is_kept_and_of_others_everything() {
    let (_directory, state) = open();
    let [moved, stays] = ["moved", "stays"].map(|name| state.job(name).unwrap().0);
    let writer = state.writer();
    for job in [moved, stays] {
        for change in [
            StateChange::Synced(path("a"), synced(1)),
            StateChange::Replacing(vec![path("a")]),
            StateChange::Begun(path("b"), upload("left")),
            StateChange::Left(path("b")),
            StateChange::Begun(path("b"), upload("under way")),
            StateChange::Arrived(path("b"), 0, part("p0")),
            StateChange::Beginning("key".to_owned()),
        ] {
            writer.keep(job, change).await.unwrap();
        }
    }
    let record = JobRecord {
        place: Some(PlaceRecord {
            store: "local /mnt".to_owned(),
            path: "home".to_owned(),
        }),
        ..JobRecord::default()
    };
    let moving = StateChange::Moved(record.clone());
    writer.keep(moved, moving).await.unwrap();
    assert_eq!(state.job("moved").unwrap(), (moved, record));
    for (job, kept) in [(moved, 0), (stays, 1)] {
        let found = [
            names(&state, job).len(),
            state.untold(job).unwrap().count(),
            state.replacing(job).unwrap().len(),
            state.uploads(job).unwrap().len(),
            state.left(job).unwrap().len(),
            state.beginning(job).unwrap().len(),
        ];
        assert_eq!(found, [kept; 6]);
    }
    // A new one of the same name does not find the old one's parts.
    let begun = StateChange::Begun(path("b"), upload("another"));
    writer.keep(moved, begun).await.unwrap();
    let parts = |job| state.upload(job, &path("b")).unwrap().unwrap().1.len();
    assert_eq!((parts(moved), parts(stays)), (0, 1));
}

#[test]
fn a_second_process_is_refused_and_so_is_another_form() {
    let (directory, state) = open();
    let file = directory.path().join("state");
    assert!(matches!(
        StateDatabase::open(&file),
        Err(StateError::Database(_))
    ));
    drop(state);
    let written_by = |form| {
        let database = redb::Database::create(&file).unwrap();
        let write = database.begin_write().unwrap();
        write
            .open_table(META)
            .unwrap()
            .insert("form", form)
            .unwrap();
        write.commit().unwrap();
    };
    written_by(FORM + 1);
    assert!(matches!(
        StateDatabase::open(&file),
        Err(StateError::Later(_))
    ));
    written_by(FORM - 1);
    assert!(matches!(
        StateDatabase::open(&file),
        Err(StateError::Earlier(_))
    ));
}

#[tokio::test]
async fn what_was_asked_for_is_there_after_a_restart_in_the_order_of_asking() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("state");
    let state = StateDatabase::open(&file).unwrap();
    let writer = state.writer();
    let first = writer
        .add_ad_hoc_task(b"one".to_vec())
        .done()
        .await
        .unwrap();
    let second = writer
        .add_ad_hoc_task(b"two".to_vec())
        .done()
        .await
        .unwrap();
    // Nobody waits for these.
    let _ = writer.set_ad_hoc_task(first, None);
    let _ = writer.set_task_state("home", Some(b"x".to_vec()));
    let _ = writer.set_task_state("home", Some(b"y".to_vec()));
    let _ = writer.set_task_state("etc", Some(b"x".to_vec()));
    let last = writer.set_task_state("etc", None);
    last.done().await.unwrap();
    let third = writer
        .add_ad_hoc_task(b"three".to_vec())
        .done()
        .await
        .unwrap();
    assert_eq!((second, third), (first + 1, first + 2));
    let tasks = [(second, b"two".to_vec()), (third, b"three".to_vec())];
    assert_eq!(state.ad_hoc_tasks().unwrap(), tasks);
    let states = BTreeMap::from([("home".to_owned(), b"y".to_vec())]);
    assert_eq!(state.task_states().unwrap(), states);
}
