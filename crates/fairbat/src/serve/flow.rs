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
#[derive(Debug, Default)]
pub(super) struct Carried {
    /// How the response under way is to be sent; `None` between two.
    pub(super) manner: Option<Manner>,
    /// Responses begun so far.
    count: u64,
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
        let (now, watched) = watch::channel(Carried::default());
        (Self { now }, watched)
    }

    /// A response begins.
    pub(super) fn begin(&self, manner: Manner) -> Sending {
        let mut number = 0;
        self.now.send_modify(|carried| {
            carried.manner = Some(manner);
            carried.count += 1;
            number = carried.count;
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
            let is_own = carried.count == self.number;
            if is_own {
                carried.manner = None;
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
        assert_eq!(watched.borrow().manner, None);
        let first = flow.begin(Manner::Ordinary);
        let second = flow.begin(Manner::Weight(0.5));
        drop(first);
        assert_eq!(watched.borrow().manner, Some(Manner::Weight(0.5)));
        drop(second);
        assert_eq!(watched.borrow().manner, None);
    }
}
