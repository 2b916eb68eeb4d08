use proptest::prelude::*;

use super::*;

fn by(seconds: u64) -> Option<Deadline> {
    Some(Deadline::new(Duration::ZERO, Duration::from_secs(seconds)))
}

fn grant(book: &mut Book, most: usize) -> Option<(WishId, MemberId)> {
    book.grant(most, |_, _| true)
}

fn backlog(bytes: u64) -> Backlog {
    Backlog { bytes, inactive: 3 }
}

#[test]
fn the_earliest_deadline_goes_first_and_then_who_came_first() {
    let mut book = Book::default();
    let ids = [None, by(90), None, by(60)].map(|deadline| book.enter("host", deadline));
    let mut wishes = Vec::new();
    for id in ids.iter().chain(&ids) {
        wishes.push(book.wish(*id));
    }
    let granted: Vec<_> = std::iter::from_fn(|| grant(&mut book, 100)).collect();
    let order: Vec<_> = granted.iter().map(|&(_, id)| id.0).collect();
    assert_eq!(order, [3, 3, 1, 1, 0, 0, 2, 2]);
    assert_eq!(book.active(), 8);
    assert_eq!(book.due_share(), 0.5);
}

#[test]
fn no_more_connections_are_in_use_than_there_may_be() {
    let mut book = Book::default();
    let id = book.enter("host", None);
    for _ in 0..5 {
        book.wish(id);
    }
    let granted = std::iter::from_fn(|| grant(&mut book, 2)).count();
    assert_eq!(granted, 2);
    book.give_back(id);
    assert!(grant(&mut book, 2).is_some());
    assert!(grant(&mut book, 2).is_none());
    assert!(grant(&mut book, 3).is_some());
}

#[test]
fn who_is_due_before_all_that_have_a_connection_gets_one_more() {
    let mut book = Book::default();
    let (late, soon, free) = (
        book.enter("host", by(90)),
        book.enter("host", by(60)),
        book.enter("host", None),
    );
    book.wish(free);
    assert_eq!(grant(&mut book, 1).map(|(_, id)| id), Some(free));
    book.wish(free);
    assert_eq!(grant(&mut book, 1), None, "not for want of a deadline");
    book.wish(late);
    assert_eq!(grant(&mut book, 1).map(|(_, id)| id), Some(late));
    book.wish(soon);
    assert_eq!(grant(&mut book, 1), None, "but one more is all");
    book.give_back(free);
    assert_eq!(grant(&mut book, 1).map(|(_, id)| id), Some(soon));
    book.give_back(late);
    book.wish(soon);
    book.wish(late);
    assert_eq!(grant(&mut book, 1), None, "nobody is before oneself");
    assert_eq!(grant(&mut book, 0), None);
}

#[test]
fn a_host_that_wants_no_more_is_passed_over() {
    let mut book = Book::default();
    let (busy, other) = (book.enter("busy", by(1)), book.enter("other", None));
    for id in [busy, busy, other, other] {
        book.wish(id);
    }
    let admits = |host: &str, active| host == "other" || active < 1;
    let granted: Vec<_> = std::iter::from_fn(|| book.grant(9, admits)).collect();
    let order: Vec<_> = granted.iter().map(|&(_, id)| id).collect();
    assert_eq!(order, [busy, other, other]);
    assert_eq!(book.refused(busy), Some(("busy".into(), 1)));
    assert_eq!(
        book.hosts().into_iter().collect::<Vec<_>>(),
        ["busy", "other"]
    );
}

#[test]
fn a_new_deadline_moves_those_who_wait() {
    let mut book = Book::default();
    let (first, second) = (book.enter("host", by(10)), book.enter("host", by(20)));
    book.wish(first);
    book.wish(second);
    book.set_deadline(second, by(5));
    assert_eq!(grant(&mut book, 9).map(|(_, id)| id), Some(second));
    book.set_deadline(first, None);
    assert_eq!(grant(&mut book, 9).map(|(_, id)| id), Some(first));
}

#[test]
fn who_leaves_waits_no_more_and_what_is_withdrawn_is_not_granted() {
    let mut book = Book::default();
    let (gone, stays) = (book.enter("host", None), book.enter("host", None));
    book.wish(gone);
    let withdrawn = book.wish(stays);
    let wish = book.wish(stays);
    book.withdraw(withdrawn);
    book.leave(gone);
    assert_eq!(grant(&mut book, 9), Some((wish, stays)));
    assert_eq!(grant(&mut book, 9), None);
    book.leave(stays);
    book.give_back(stays);
    assert_eq!(book.active(), 0);
    assert!(book.is_empty());
}

#[test]
fn only_what_has_bytes_and_a_deadline_is_demanded() {
    let now = Duration::from_secs(10);
    let mut book = Book::default();
    let (idle, late, free) = (
        book.enter("host", by(20)),
        book.enter("host", by(110)),
        book.enter("host", None),
    );
    assert_eq!(book.demand(now), None);
    book.set_backlog(free, backlog(1_000));
    assert_eq!(book.demand(now), None);
    assert_eq!(book.inactive(), 3);
    book.set_backlog(late, backlog(9_780));
    let demand = book.demand(now).unwrap();
    assert_eq!((demand.remaining, demand.overdue), (9_780, 0));
    assert!((demand.zeta - 100.0).abs() < 0.1, "{demand:?}");
    assert_eq!(book.time_left(now), Some(Duration::from_secs(100)));
    book.set_backlog(idle, backlog(20));
    assert_eq!(book.time_left(now), Some(Duration::from_secs(10)));
    assert_eq!(book.before(late), Some(9_800));
    assert_eq!(book.before(free), Some(10_800));
    assert_eq!(book.before(idle), Some(20));
}

proptest! {
    #[test]
    fn what_is_granted_was_wished_and_is_given_once(
        steps in prop::collection::vec((0..6_u8, 0..4_u64, 0..6_usize), 1..80),
    ) {
        let mut book = Book::default();
        let (mut waiting, mut held) = (Vec::new(), Vec::new());
        for _ in 0..4 {
            book.enter("host", None);
        }
        for (what, member, most) in steps {
            let id = MemberId(member);
            match what {
                0 | 1 => waiting.push((book.wish(id), id)),
                2 => {
                    if let Some((wish, _)) = waiting.pop() {
                        book.withdraw(wish);
                    }
                }
                3 => {
                    if let Some(id) = held.pop() {
                        book.give_back(id);
                    }
                }
                4 => book.set_deadline(id, by(most as u64)),
                _ => {
                    let before = book.active();
                    if let Some(granted) = grant(&mut book, most) {
                        // One more goes to whoever is due first.
                        let is_due = book.members[&granted.1].deadline.is_some();
                        prop_assert!(before < most || (before == most && before > 0 && is_due));
                        let at = waiting.iter().position(|&wish| wish == granted);
                        prop_assert!(at.is_some(), "{granted:?} of {waiting:?}");
                        waiting.remove(at.unwrap());
                        held.push(granted.1);
                    } else {
                        prop_assert!(before >= most || waiting.is_empty());
                    }
                }
            }
            prop_assert_eq!(book.active(), held.len());
        }
    }
}
