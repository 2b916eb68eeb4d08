//! Where a socket of another program is, and a look at it.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use dalbe::process::ForeignProcess;
use dalbe::receive_window::ArrivalWatch;
use dalbe::socket::TcpSocket;

use super::scope::FoundSocket;
use crate::clock::Clock;

/// Where a socket is: the descriptors that name it, one of which is tried after the other.
#[derive(Debug)]
pub(super) struct Handle {
    pub(super) cookie: u64,
    places: Vec<(Arc<ForeignProcess>, i32)>,
}

impl Handle {
    /// Of this socket, which was found there.
    pub(super) fn new(found: &FoundSocket, cookie: u64) -> Self {
        Self {
            cookie,
            places: vec![(Arc::clone(&found.process), found.descriptor)],
        }
    }

    /// It was found there too, or again.
    pub(super) fn add(&mut self, found: &FoundSocket) {
        self.places.retain(|(process, _)| !process.has_ended());
        let is_known = self.places.iter().any(|(process, descriptor)| {
            process.number() == found.process.number() && *descriptor == found.descriptor
        });
        if !is_known {
            self.places
                .push((Arc::clone(&found.process), found.descriptor));
        }
    }

    /// The socket, for a moment; `None` if it is not where it was.
    pub(super) fn socket(&mut self) -> Option<TcpSocket> {
        while let Some((process, descriptor)) = self.places.first() {
            match process.socket(*descriptor) {
                Ok(socket) if socket.cookie().ok() == Some(self.cookie) => return Some(socket),
                // No descriptor is left for the duplicate: it may be there all the same.
                Err(error) if is_shortage(&error) => return None,
                Ok(_) | Err(_) => {
                    self.places.remove(0);
                }
            }
        }
        None
    }
}

/// Whether this process lacks descriptors or memory.
fn is_shortage(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let shortages = [Errno::MFILE, Errno::NFILE, Errno::NOMEM];
    shortages
        .into_iter()
        .any(|it| error.raw_os_error() == Some(it.raw_os_error()))
}

impl Handle {
    /// Looks at what arrives, for a tenth of a second. It has a thread of its own, as in the
    /// window manager.
    pub(super) fn watch(&self, clock: Clock) -> Option<JoinHandle<ArrivalWatch>> {
        let (process, descriptor) = self.places.first().cloned()?;
        let mut handle = Self {
            cookie: self.cookie,
            places: vec![(process, descriptor)],
        };
        let watch = move || {
            let look = || {
                let info = handle.socket().and_then(|socket| socket.info().ok());
                (clock.now(), info)
            };
            ArrivalWatch::of(look, |tick| {
                std::thread::sleep(tick);
                true
            })
        };
        let thread = std::thread::Builder::new().name("arrivals".to_owned());
        thread.spawn(watch).ok()
    }
}
