//! Several deadlines that cannot all be met, beside a greedy flow.

use crate::turn::shared;
use crate::{is_root, only_contender, record_of, while_the_machine_runs};

/// Three files in another order than that of their deadlines, which ask for more than
/// there is: the run has several connections, of which one carries the weight.
const SCENARIO: &str = "
    description = 'Three deadlines that are missed'
    duration_s = 50
    measure_from_s = 2
    [[link]]
    rate_mbit = 10
    delay_ms = 20
    queue = { bdp = 1.0 }
    [[foreground]]
    traffic = { greedy = {} }
    [background]
    start_s = 2
    transfer = [
        { size_mb = 4, deadline_s = 9 },
        { size_mb = 4, deadline_s = 3 },
        { size_mb = 4, deadline_s = 6 },
    ]
";

#[test]
fn what_is_due_first_is_there_first_however_late() {
    if !is_root() {
        return;
    }
    let _turn = shared();
    while_the_machine_runs(|| {
        let Some(record) = record_of(SCENARIO, "fairbat") else {
            return;
        };
        let fairbat = only_contender(&record);
        let places: Vec<_> = fairbat.transfers.iter().map(|one| one.place).collect();
        assert_eq!(
            places,
            [Some(3), Some(1), Some(2)],
            "{:?}",
            fairbat.transfers
        );
        let most = fairbat.control.iter().map(|sample| sample.active).max();
        assert!(most > Some(1), "it had one connection only");
    });
}
