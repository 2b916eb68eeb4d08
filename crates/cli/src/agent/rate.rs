//! How fast each task is: the agent tells it of lanes only. Pure.

use super::words::{Phase, Status, Task};

/// The rate of a task, byte/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Rate {
    /// Its own.
    Own(f64),
    /// That of a lane which it shares with others.
    Shared(f64),
}

/// The rate of a task in `status`; `before` is an earlier one. `None` for a task that
/// does not run.
pub(super) fn of(task: &Task, status: &Status, before: Option<&Status>) -> Option<Rate> {
    if task.phase != Phase::Running {
        return None;
    }
    let is_beside = |other: &&Task| {
        other.phase == Phase::Running && other.direction == task.direction && other.id != task.id
    };
    let lane = status
        .lanes
        .iter()
        .find(|lane| lane.direction == task.direction)?;
    let rate = lane.sample.rate?;
    if !status.tasks.iter().any(|other| is_beside(&other)) {
        return Some(Rate::Own(rate));
    }
    let measured = before.and_then(|before| measured(task, status, before));
    Some(measured.map_or(Rate::Shared(rate), Rate::Own))
}

/// From what was done in between, if it is the same run.
fn measured(task: &Task, status: &Status, before: &Status) -> Option<f64> {
    let earlier = before
        .tasks
        .iter()
        .find(|earlier| earlier.id == task.id && earlier.began == task.began)?;
    let seconds = status.now.duration_since(before.now).as_secs_f64();
    let bytes = task.bytes_done.checked_sub(earlier.bytes_done)?;
    (seconds > 0.0).then(|| bytes as f64 / seconds)
}

#[cfg(test)]
mod tests {
    use super::super::words::{Direction, Lane, Sample};
    use super::*;

    fn task(id: &str, bytes_done: u64) -> Task {
        Task {
            id: id.to_owned(),
            direction: Direction::Push,
            phase: Phase::Running,
            bytes_done,
            ..Task::default()
        }
    }

    fn status(second: i64, tasks: Vec<Task>) -> Status {
        let lane = |direction, rate| Lane {
            direction,
            sample: Sample {
                rate: Some(rate),
                ..Sample::default()
            },
            ..Lane::default()
        };
        Status {
            now: jiff::Timestamp::from_second(second).expect("a moment"),
            lanes: vec![lane(Direction::Push, 10.0), lane(Direction::Pull, 20.0)],
            tasks,
        }
    }

    #[test]
    fn who_is_alone_has_the_rate_of_the_lane() {
        let mut other = task("b", 0);
        other.direction = Direction::Pull;
        let waiting = Task {
            phase: Phase::Waiting,
            ..task("c", 0)
        };
        let status = status(0, vec![task("a", 0), other, waiting]);
        let rates: Vec<_> = status
            .tasks
            .iter()
            .map(|task| of(task, &status, None))
            .collect();
        assert_eq!(rates, [Some(Rate::Own(10.0)), Some(Rate::Own(20.0)), None]);
    }

    #[test]
    fn of_several_it_is_measured_or_shared() {
        let before = status(0, vec![task("a", 100), task("b", 7)]);
        let now = status(2, vec![task("a", 116), task("b", 7), task("c", 5)]);
        let rate = |i: usize, before| of(&now.tasks[i], &now, before);
        assert_eq!(rate(0, None), Some(Rate::Shared(10.0)));
        assert_eq!(rate(0, Some(&before)), Some(Rate::Own(8.0)));
        assert_eq!(rate(1, Some(&before)), Some(Rate::Own(0.0)));
        assert_eq!(
            rate(2, Some(&before)),
            Some(Rate::Shared(10.0)),
            "it is new"
        );
        assert_eq!(rate(0, Some(&now)), Some(Rate::Shared(10.0)), "no time");
    }

    #[test]
    fn another_run_is_not_compared() {
        let before = status(0, vec![task("a", 100), task("b", 0)]);
        let mut again = task("a", 120);
        again.began = Some(jiff::Timestamp::from_second(1).expect("a moment"));
        let now = status(2, vec![again, task("b", 0)]);
        let rate = of(&now.tasks[0], &now, Some(&before));
        assert_eq!(rate, Some(Rate::Shared(10.0)));
    }
}
