//! What a connection carries now: told by those who answer requests, watched
//! by those who hold it back. Knows nothing of either.

use tokio::sync::watch;

use super::pace::Manner;

/// The response under way on a connection, if there is one.
#[derive(Debug, Clone)]
pub(super) struct Flow {
    now: watch::Sender<Carried>,
}

/// What a connection carries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Carried {
    /// How the last response that began is to be sent: what of it waits in the
    /// kernel, all of a short one, is sent when it is no longer under way.
    pub(super) manner: Manner,
    /// Whether it is under way.
    pub(super) is_sending: bool,
    /// Responses begun so far.
    pub(super) begun: u64,
}

/// A response is under way for as long as this lives, or until the next
/// begins.
#[derive(Debug)]
pub(super) struct Sending {
    flow: Flow,
    number: u64,
}

impl Flow {
    /// For a new connection, and how to watch it.
    pub(super) fn new() -> (Self, watch::Receiver<Carried>) {
        let (now, watched) = watch::channel(Carried {
            manner: Manner::Ordinary,
            is_sending: false,
            begun: 0,
        });
        (Self { now }, watched)
    }

    /// A response begins.
    pub(super) fn begin(&self, manner: Manner) -> Sending {
        let mut number = 0;
        self.now.send_modify(|carried| {
            carried.manner = manner;
            carried.is_sending = true;
            carried.begun += 1;
            number = carried.begun;
        });
        Sending {
            flow: self.clone(),
            number,
        }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.flow.now.send_if_modified(|carried| {
            let is_own = carried.begun == self.number;
            if is_own {
                carried.is_sending = false;
            }
            is_own
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_response_says_nothing_of_the_next() {
        let (flow, watched) = Flow::new();
        assert!(!watched.borrow().is_sending);
        let first = flow.begin(Manner::Ordinary);
        let second = flow.begin(Manner::Weight(0.5));
        drop(first);
        assert!(watched.borrow().is_sending);
        drop(second);
        assert!(!watched.borrow().is_sending);
    }

    #[test]
    fn a_response_that_is_over_at_once_is_not_missed() {
        let (flow, mut watched) = Flow::new();
        drop(flow.begin(Manner::Weight(0.5)));
        assert!(watched.has_changed().expect("the flow is there"));
        let expected = Carried {
            manner: Manner::Weight(0.5),
            is_sending: false,
            begun: 1,
        };
        assert_eq!(*watched.borrow_and_update(), expected);
    }
}
