//! Waits for the processes below this one.

use std::sync::mpsc::Sender;
use std::thread;

use rustix::io::Errno;
use rustix::process::{WaitOptions, wait};

use super::message::Ending;

/// What has become of processes.
pub(super) enum Reaped {
    /// This one has ended.
    One(i32, Ending),
    /// None is left.
    All,
}

/// Tells of each process below this one that ends, until none is left; has a thread of its own.
pub(super) fn reap<News: Send + 'static>(news: Sender<News>, of: fn(Reaped) -> News) {
    // The listener may have ended.
    thread::spawn(move || wait_for_each(|reaped| drop(news.send(of(reaped)))));
}

fn wait_for_each(tell: impl Fn(Reaped)) {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((process, status))) => {
                if let Some(ending) = Ending::of(status) {
                    tell(Reaped::One(process.as_raw_nonzero().get(), ending));
                }
            }
            Ok(None) | Err(Errno::INTR) => {}
            Err(_) => return tell(Reaped::All),
        }
    }
}
