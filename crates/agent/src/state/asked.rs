//! What was asked for besides the jobs, and how jobs stand: what the daemon goes on
//! from after a restart. In words of the daemon's, which mean nothing here.

use std::collections::BTreeMap;

use redb::{ReadableTable, TableDefinition, WriteTransaction};
use tokio::sync::oneshot;

use super::writer::{StateWriter, Waiting};
use super::{META, StateDatabase, StateError};

/// What was asked for besides jobs, by number.
const EXTRAS: TableDefinition<u64, &[u8]> = TableDefinition::new("extras");

/// How a job stands, by its name; nothing when there is nothing to say.
const STANDINGS: TableDefinition<&str, &[u8]> = TableDefinition::new("standings");

/// So that readers find them.
pub(super) fn make_tables(transaction: &WriteTransaction) -> Result<(), StateError> {
    transaction.open_table(EXTRAS)?;
    transaction.open_table(STANDINGS)?;
    Ok(())
}

impl StateDatabase {
    /// What was asked for besides jobs, by number.
    ///
    /// # Errors
    /// See [`StateError`].
    pub fn extras(&self) -> Result<Vec<(u64, Vec<u8>)>, StateError> {
        let table = self.table(EXTRAS)?;
        let items = table.iter()?.map(|item| {
            let (number, extra) = item?;
            Ok((number.value(), extra.value().to_vec()))
        });
        items.collect()
    }

    /// How jobs stand, by their names: of those of which there is something to
    /// say.
    ///
    /// # Errors
    /// See [`StateError`].
    pub fn standings(&self) -> Result<BTreeMap<String, Vec<u8>>, StateError> {
        let table = self.table(STANDINGS)?;
        let items = table.iter()?.map(|item| {
            let (name, standing) = item?;
            Ok((name.value().to_owned(), standing.value().to_vec()))
        });
        items.collect()
    }
}

/// What is being remembered; what is asked first is remembered first, whether or
/// not anybody waits for it.
#[derive(Debug)]
pub struct CommitHandle<T>(oneshot::Receiver<T>);

impl<T> CommitHandle<T> {
    /// Resolves when it is remembered for good.
    ///
    /// # Errors
    /// [`StateError::Closed`].
    pub async fn done(self) -> Result<T, StateError> {
        self.0.await.map_err(|_| StateError::Closed)
    }
}

impl StateWriter {
    /// Remembers something that was asked for; gives the number that nothing else
    /// will have.
    pub fn add_extra(&self, extra: Vec<u8>) -> CommitHandle<u64> {
        let (done, kept) = oneshot::channel();
        self.ask(WriteRequest::Add(extra, done));
        CommitHandle(kept)
    }

    /// What is asked for has changed, or is over.
    pub fn set_extra(&self, number: u64, extra: Option<Vec<u8>>) -> CommitHandle<()> {
        let (done, kept) = oneshot::channel();
        self.ask(WriteRequest::Extra(number, extra, done));
        CommitHandle(kept)
    }

    /// How the job of this name stands from now on, if there is something to say.
    pub fn set_standing(&self, job: &str, standing: Option<Vec<u8>>) -> CommitHandle<()> {
        let (done, kept) = oneshot::channel();
        self.ask(WriteRequest::Standing(job.to_owned(), standing, done));
        CommitHandle(kept)
    }
}

/// What is to be remembered.
pub(super) enum WriteRequest {
    Add(Vec<u8>, oneshot::Sender<u64>),
    Extra(u64, Option<Vec<u8>>, oneshot::Sender<()>),
    Standing(String, Option<Vec<u8>>, oneshot::Sender<()>),
}

impl WriteRequest {
    /// Returns who is to be told of the commit.
    pub(super) fn apply(self, transaction: &WriteTransaction) -> Result<Waiting, StateError> {
        match self {
            Self::Add(extra, done) => {
                let mut meta = transaction.open_table(META)?;
                let number = meta.get("extras")?.map_or(0, |given| given.value()) + 1;
                meta.insert("extras", number)?;
                let mut extras = transaction.open_table(EXTRAS)?;
                extras.insert(number, extra.as_slice())?;
                Ok(Waiting::Number(done, number))
            }
            Self::Extra(number, extra, done) => {
                let mut extras = transaction.open_table(EXTRAS)?;
                match extra {
                    Some(extra) => extras.insert(number, extra.as_slice())?,
                    None => extras.remove(number)?,
                };
                Ok(Waiting::Done(done))
            }
            Self::Standing(job, standing, done) => {
                let mut standings = transaction.open_table(STANDINGS)?;
                match standing {
                    Some(standing) => standings.insert(job.as_str(), standing.as_slice())?,
                    None => standings.remove(job.as_str())?,
                };
                Ok(Waiting::Done(done))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_asked_for_is_there_after_a_restart_in_the_order_of_asking() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("state");
        let state = StateDatabase::open(&file).unwrap();
        let writer = state.writer();
        let first = writer.add_extra(b"one".to_vec()).done().await.unwrap();
        let second = writer.add_extra(b"two".to_vec()).done().await.unwrap();
        // Nobody waits for these.
        let _ = writer.set_extra(first, None);
        let _ = writer.set_standing("home", Some(b"x".to_vec()));
        let _ = writer.set_standing("home", Some(b"y".to_vec()));
        let _ = writer.set_standing("etc", Some(b"x".to_vec()));
        let last = writer.set_standing("etc", None);
        last.done().await.unwrap();
        let third = writer.add_extra(b"three".to_vec()).done().await.unwrap();
        assert_eq!((second, third), (first + 1, first + 2));
        let extras = [(second, b"two".to_vec()), (third, b"three".to_vec())];
        assert_eq!(state.extras().unwrap(), extras);
        let standings = BTreeMap::from([("home".to_owned(), b"y".to_vec())]);
        assert_eq!(state.standings().unwrap(), standings);
    }
}
