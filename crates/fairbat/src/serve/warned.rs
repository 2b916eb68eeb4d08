//! What has been warned of lately. Clients cause some warnings, and none is to
//! fill the log with them: each thing is told of now and then, and of many
//! things some. Pure.

use std::collections::VecDeque;
use std::time::Duration;

/// The same thing is not told of again for this long.
const PAUSE: Duration = Duration::from_secs(600);

/// Things that are told of within that time, at most.
const MOST: usize = 16;

/// See the module. One kind of warning, told apart by what it is about.
#[derive(Debug)]
pub(super) struct Warned<T> {
    /// When and of what, the oldest first.
    lately: VecDeque<(Duration, T)>,
}

impl<T> Default for Warned<T> {
    fn default() -> Self {
        Self {
            lately: VecDeque::new(),
        }
    }
}

impl<T: PartialEq> Warned<T> {
    /// Whether to warn of this now; then it counts as done.
    pub(super) fn is_due(&mut self, now: Duration, about: T) -> bool {
        while self
            .lately
            .front()
            .is_some_and(|(then, _)| now >= *then + PAUSE)
        {
            self.lately.pop_front();
        }
        let is_due = self.lately.len() < MOST && self.lately.iter().all(|(_, it)| *it != about);
        if is_due {
            self.lately.push_back((now, about));
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_told_of_once_in_a_while() {
        let mut warned = Warned::default();
        let at = Duration::from_secs;
        assert!(warned.is_due(at(0), "one"));
        assert!(warned.is_due(at(1), "other"));
        assert!(!warned.is_due(at(1), "one") && !warned.is_due(at(599), "one"));
        assert!(warned.is_due(at(600), "one"));
        assert!(!warned.is_due(at(600), "other"));
    }

    #[test]
    fn of_many_some_are_told_of() {
        let mut warned = Warned::default();
        let told = |warned: &mut Warned<u32>, now| {
            let now = Duration::from_secs(now);
            (0..1000).filter(|n| warned.is_due(now, *n)).count()
        };
        assert_eq!(told(&mut warned, 0), MOST);
        assert_eq!(told(&mut warned, 599), 0);
        assert_eq!(told(&mut warned, 600), MOST);
    }
}
