//! Other deadlines for transfers that are in the queue already.

use fairbat::download::queue::{Piece, Queue, TransferId, Work};
use fairbat::ranges::RangeSet;
use proptest::prelude::*;

use crate::{deadline, lease_all, non_zero};

/// Everything that is left in a queue, in its order.
fn leftovers(queue: &mut Queue) -> Vec<(TransferId, Piece)> {
    lease_all(queue, 3)
        .into_iter()
        .map(|lease| (lease.transfer, lease.piece))
        .collect()
}

proptest! {
    #[test]
    fn a_reordered_queue_is_one_that_had_these_deadlines_from_the_beginning(
        transfers in prop::collection::vec(
            (prop::option::of(0_u64..5), prop::option::of(0_u64..5), 1_u64..20, any::<bool>()),
            1..10,
        ),
        taken in 0_usize..20,
    ) {
        let filled = |reordered: bool| {
            let mut queue = Queue::new();
            for (id, &(before, after, size, stream)) in transfers.iter().enumerate() {
                let by = if reordered { before } else { after };
                let work = if stream {
                    Work::Stream(Some(size))
                } else {
                    Work::Ranges(RangeSet::from(0..size))
                };
                queue.insert(TransferId(id as u64), by.map(deadline), work).unwrap();
            }
            queue
        };
        let after = |id: TransferId| transfers[id.0 as usize].1.map(deadline);
        let (mut fresh, mut reordered) = (filled(false), filled(true));
        // Leases that are out survive it, and fail into the new order.
        let leases: Vec<_> = (0..taken).map_while(|_| reordered.lease(non_zero(4), |_| true)).collect();
        reordered.reorder(after);
        for (turn, lease) in leases.iter().enumerate() {
            if turn % 2 == 0 {
                let start = match &lease.piece {
                    Piece::Range(range) => range.start,
                    Piece::Stream => 0,
                };
                prop_assert_eq!(reordered.advance(lease.id, start), Ok(()));
            }
            prop_assert_eq!(reordered.fail(lease.id), Ok(()));
        }
        prop_assert_eq!(reordered.pending_bytes(), fresh.pending_bytes());
        prop_assert!(reordered.due().eq(fresh.due()));
        prop_assert_eq!(leftovers(&mut reordered), leftovers(&mut fresh));
    }
}

#[test]
fn new_deadlines_change_the_order_and_leave_the_leases() {
    let mut queue = Queue::new();
    for (id, by) in [(0, Some(30)), (1, Some(60)), (2, None)] {
        let work = Work::Ranges(RangeSet::from(0..4));
        queue
            .insert(TransferId(id), by.map(deadline), work)
            .unwrap();
    }
    let first = queue.lease(non_zero(2), |_| true).unwrap();
    assert_eq!(first.transfer, TransferId(0));
    queue.reorder(|id| [None, Some(60), Some(10)][id.0 as usize].map(deadline));
    let due: Vec<_> = queue.due().collect();
    assert_eq!(due, [(deadline(10), 4), (deadline(60), 4)]);
    assert_eq!(queue.advance(first.id, 1), Ok(()));
    assert_eq!(queue.remaining(TransferId(0)), Some(3));
    assert_eq!(queue.advance(first.id, 2), Ok(()));
    assert_eq!(queue.finish(first.id), Ok(()));
    let order = leftovers(&mut queue).into_iter().map(|(id, _)| id.0);
    assert_eq!(order.collect::<Vec<_>>(), [2, 2, 1, 1, 0]);
}
