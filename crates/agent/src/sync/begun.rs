//! An upload in parts at both of its ends: one whose beginning was not heard of may be
//! there all the same, and one whose end was not heard of may have made its object.

use super::push::Job;
use crate::state::{StateChange, StateError};
use crate::store::StoreError;

/// An upload that was begun.
#[derive(Debug)]
pub(super) struct Begun {
    /// What the store calls it.
    pub(super) name: String,
    /// Whether there can be no other for its key that nobody knows.
    pub(super) is_only: bool,
}

impl Job {
    /// Begins an upload. That there may be one for this key is remembered until
    /// [`StateChange::Certain`] is noted, which is for [`Begun::is_only`] to allow.
    pub(super) async fn begin<E>(&self, key: &str, mark: &str) -> Result<Begun, E>
    where
        E: From<StateError> + From<StoreError>,
    {
        let (state, id) = (self.state.clone(), self.id);
        let suspected = tokio::task::spawn_blocking(move || state.beginning(id)).await;
        let mut is_only = match suspected {
            Ok(suspected) => !suspected?.contains(key),
            Err(_) => false,
        };
        let beginning = StateChange::Beginning(key.to_owned());
        self.writer.keep(self.id, beginning).await?;
        let mut tries = self.attempts.tries();
        loop {
            let permit = self.member.admit().await;
            let error = match self.store.begin(key, mark).await {
                Ok(name) => return Ok(Begun { name, is_only }),
                Err(error) => error,
            };
            drop(permit);
            is_only = false;
            tries.after(&self.member, error).await?;
        }
    }

    /// Whether what is under a key was made by an upload with one of these marks.
    pub(super) async fn has_made(&self, key: &str, marks: &[String]) -> Result<bool, StoreError> {
        let has = self.insist(|| self.store.mark(key)).await?;
        Ok(has.is_some_and(|has| marks.contains(&has)))
    }
}
