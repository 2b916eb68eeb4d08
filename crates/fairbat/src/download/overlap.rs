//! Which of several sources of a file are wrong, where only the hash of the whole file is known and
//! the file is wrong: all are asked for the same few bytes, at places all over the file. Those that
//! send others than most are wrong.

use std::collections::BTreeMap;
use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use super::part::PartError;
use super::part::file::PartFile;
use super::worker::RunContext;
use crate::blocking::blocking;
use crate::checksum::digest_of;
use crate::error::TransferError;
use crate::ranges::RangeSet;
use crate::transport::RemoteFile;

/// Places at which sources are compared. Where a source is wrong in a longer stretch than one of so
/// many parts of the file, it is found.
const PLACES: u64 = 32;

/// Bytes at each of them.
const LENGTH: u64 = 1024;

/// How long the sources may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A few bytes of the part file, and who has sent them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ComparedRange {
    range: Range<u64>,
    sender: usize,
}

/// SHA-256 of what each source sends of one place.
type Said = Vec<(usize, [u8; 32])>;

/// Places all over a file of so many bytes, each of which one source has sent.
pub(crate) fn places(total: u64, sent: &[(usize, RangeSet)]) -> Vec<ComparedRange> {
    let step = (total / PLACES).max(LENGTH);
    let starts = (0..PLACES).map(|index| index * step + (step - LENGTH) / 2);
    let ranges = starts.map(|start| start..start + LENGTH);
    let of_one = |range: Range<u64>| {
        let mut senders = sent.iter().filter(|(_, sent)| sent.contains_range(&range));
        let sender = senders.next()?.0;
        Some(ComparedRange { range, sender })
    };
    ranges.filter_map(of_one).collect()
}

/// The sources that send something else than most do, at any place. A tie says nothing.
fn outvoted(places: &[Said]) -> Vec<usize> {
    let mut outvoted = Vec::new();
    for said in places {
        let mut votes: BTreeMap<[u8; 32], usize> = BTreeMap::new();
        for (_, digest) in said {
            *votes.entry(*digest).or_default() += 1;
        }
        let most = votes.iter().find(|(_, votes)| **votes * 2 > said.len());
        let Some((right, _)) = most else {
            continue;
        };
        let wrong = said.iter().filter(|(_, digest)| digest != right);
        outvoted.extend(wrong.map(|(source, _)| *source));
    }
    outvoted.sort_unstable();
    outvoted.dedup();
    outvoted
}

/// Asks these sources for the bytes at these places, and compares them with the part. Returns those
/// that are outvoted.
///
/// # Errors
/// The part cannot be read.
pub(crate) async fn compare(
    context: &RunContext,
    part: &Arc<PartFile>,
    places: Vec<ComparedRange>,
    sources: &[(usize, Arc<RemoteFile>)],
) -> Result<Vec<usize>, TransferError> {
    let (part, here) = (Arc::clone(part), places.clone());
    let read = blocking(move || {
        let digests = here.into_iter().map(|place| {
            let read = |offset, buffer: &mut [u8]| part.read_at(offset, buffer);
            let digest = digest_of(place.range, read)?;
            Ok(vec![(place.sender, digest)])
        });
        digests.collect::<Result<Vec<Said>, PartError>>()
    });
    let mut said = read.await.map_err(TransferError::from)??;
    let asked = sources
        .iter()
        .map(|(source, remote)| ask(context, *source, remote, &places));
    for (source, answers) in join_all(asked).await {
        for (place, digest) in answers {
            said[place].push((source, digest));
        }
    }
    Ok(outvoted(&said))
}

/// What a source sends of the places that others have sent, until it fails.
async fn ask(
    context: &RunContext,
    source: usize,
    remote: &RemoteFile,
    places: &[ComparedRange],
) -> (usize, Vec<(usize, [u8; 32])>) {
    let mut limit = pin!(tokio::time::sleep(PATIENCE));
    let mut answers = Vec::new();
    for (index, place) in places.iter().enumerate() {
        if place.sender == source {
            continue;
        }
        let sampled = tokio::select! {
            () = &mut limit => break,
            sampled = context.sample(remote, place.range.clone()) => sampled,
        };
        match sampled {
            Ok(digest) => answers.push((index, digest)),
            Err(_) => break,
        }
    }
    (source, answers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_all_over_the_file_and_each_is_of_one_source() {
        let run = |range| std::iter::once(range).collect::<RangeSet>();
        let sent = [(3, run(0..500_000)), (1, run(500_000..1_000_000))];
        let found = places(1_000_000, &sent);
        assert_eq!(found.len(), PLACES as usize);
        assert!(found.iter().all(|it| it.range.end <= 1_000_000));
        let of = |sender| found.iter().filter(|it| it.sender == sender).count();
        assert_eq!((of(3), of(1)), (16, 16));
        // Nobody has sent a place whose bytes are of two, or of an earlier run.
        assert_eq!(places(100, &[(0, run(0..100))]), []);
        assert_eq!(places(4 * LENGTH, &[(0, run(0..LENGTH))]).len(), 1);
    }

    #[test]
    fn who_says_something_else_than_most_is_wrong() {
        let said = |digests: &[u8]| -> Said {
            let digests = digests.iter().enumerate();
            digests
                .map(|(source, byte)| (source, [*byte; 32]))
                .collect()
        };
        assert!(outvoted(&[said(&[1, 1, 1]), said(&[2, 2, 2])]).is_empty());
        assert_eq!(outvoted(&[said(&[1, 2, 1]), said(&[5, 4, 5])]), [1]);
        assert_eq!(outvoted(&[said(&[1, 1, 2]), said(&[4, 5, 5])]), [0, 2]);
        // Nobody knows who of two is right, nor of three that all differ.
        assert!(outvoted(&[said(&[1, 2]), said(&[1, 2, 3])]).is_empty());
    }
}
