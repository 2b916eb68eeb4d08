//! How many connections to a socket of the agent are open, of each user and of all. The
//! kernel knows the user at the other end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::UnixStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Connections at once, of each user and of all.
#[derive(Debug, Clone)]
pub(crate) struct Connections {
    of_users: Arc<Mutex<HashMap<Option<u32>, usize>>>,
    max_of_user: usize,
    all: Arc<Semaphore>,
}

/// Counts a connection of a user until it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    connections: Connections,
    user: Option<u32>,
    _of_all: OwnedSemaphorePermit,
}

impl Connections {
    /// So many of one user, and so many of all.
    pub(crate) fn at_most(max_of_user: usize, max: usize) -> Self {
        Self {
            of_users: Arc::default(),
            max_of_user,
            all: Arc::new(Semaphore::new(max)),
        }
    }

    /// Counts one more connection of the user at the other end; no permit if there are enough
    /// already.
    pub(crate) fn admit(&self, stream: &UnixStream) -> (Option<u32>, Option<ConnectionPermit>) {
        let user = stream.peer_cred().map(|peer| peer.uid()).ok();
        (user, self.permit(user))
    }

    fn permit(&self, user: Option<u32>) -> Option<ConnectionPermit> {
        let of_all = Arc::clone(&self.all).try_acquire_owned().ok()?;
        let mut counts = self.of_users.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(user).or_default();
        if *count >= self.max_of_user {
            return None;
        }
        *count += 1;
        Some(ConnectionPermit {
            connections: self.clone(),
            user,
            _of_all: of_all,
        })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let counts = self.connections.of_users.lock();
        let mut counts = counts.unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.user);
            }
        }
    }
}
