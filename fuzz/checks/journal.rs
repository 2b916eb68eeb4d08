//! What must hold for any journal file.

use fairbat::download::part::journal::{Journal, tail_line};

/// Panics if a journal is not read back as it would be written, trusts bytes
/// it does not name, or takes a cut or foreign tail for more than it is.
pub(crate) fn check(data: &[u8]) {
    check_whole(data);
    // Hardly any mutation survives the checksum, so the input is also taken
    // for the record itself, and for what stands behind a sound one.
    if let Ok(json) = std::str::from_utf8(data)
        && !json.contains('\n')
    {
        check_whole(&sealed(json));
    }
    let mut tailed = sealed(SOUND);
    tailed.extend_from_slice(data);
    check_whole(&tailed);
    check_cut(&tailed);
}

/// A record of a file of 1000 bytes, the first 10 synced.
const SOUND: &str = r#"{"url":"http://h/f","resource":"r","version":{"total":1000,"validator":{"etag":"\"a\"","last_modified":null}},"synced":[[0,10]],"instance":"b"}"#;

/// A journal whose record has this JSON and the right checksum.
fn sealed(json: &str) -> Vec<u8> {
    let lines = format!("fairbat-journal 1\n{json}\n");
    let crc = crc32fast::hash(lines.as_bytes());
    format!("{lines}{crc:08x}\n").into_bytes()
}

fn check_whole(data: &[u8]) {
    let Ok(journal) = Journal::decode(data) else {
        return;
    };
    let total = journal
        .record
        .version
        .as_ref()
        .map_or(0, |version| version.total);
    let mut written = journal.record.encode();
    for range in &journal.tail {
        assert!(range.start < range.end && range.end <= total);
        written.extend_from_slice(tail_line(range).as_bytes());
    }
    assert_eq!(Journal::decode(&written).as_ref(), Ok(&journal));

    let synced: u64 = journal.trusted("").total();
    for instance in ["", "another", journal.record.instance.as_str()] {
        let trusted = journal.trusted(instance);
        assert!(trusted.iter().all(|range| range.end <= total));
        assert!(trusted.total() >= synced);
        if instance.is_empty() || instance != journal.record.instance {
            assert_eq!(trusted.total(), synced, "the tail counted elsewhere");
        }
    }
}

/// However a journal is cut, it is either refused or has lost some of its
/// tail.
fn check_cut(data: &[u8]) {
    let whole = Journal::decode(data).expect("a sound record, whatever its tail");
    for end in data.len().saturating_sub(64)..data.len() {
        if let Ok(cut) = Journal::decode(&data[..end]) {
            assert_eq!(cut.record, whole.record);
            assert!(whole.tail.starts_with(&cut.tail));
        }
    }
}
