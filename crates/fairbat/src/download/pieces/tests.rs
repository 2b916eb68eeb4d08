mod chunk_size;

use super::*;

fn set(ranges: &[Range<u64>]) -> RangeSet {
    let mut set = RangeSet::new();
    for range in ranges {
        set.insert(range.clone());
    }
    set
}

#[test]
#[allow(
    clippy::single_range_in_vec_init,
    reason = "a set of one range is meant"
)]
fn only_what_is_missing_is_fetched() {
    let have = set(&[0..10, 50..60]);
    assert_eq!(
        Work::missing(Some(100), true, &have),
        Some(Work::Ranges(set(&[10..50, 60..100])))
    );
    assert_eq!(Work::missing(Some(60), true, &set(&[0..60])), None);
    assert_eq!(Work::missing(Some(0), false, &set(&[])), None);
}

#[test]
fn without_ranges_the_whole_file_is_one_stream() {
    let stream = Work::Stream;
    assert_eq!(
        Work::missing(Some(100), false, &set(&[])),
        Some(stream(Some(100)))
    );
    assert_eq!(Work::missing(None, true, &set(&[])), Some(stream(None)));
}
