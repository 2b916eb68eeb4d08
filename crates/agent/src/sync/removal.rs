//! What goes from the store, if it may.

use std::collections::VecDeque;

use super::plan::PlanError;
use super::push::Job;
use super::report::{RunProblem, RunReport};
use super::teller::Teller;
use crate::config::Delete;
use crate::entry::TreePath;
use crate::state::{StateChange, Synced, SyncedKind};

/// Objects that are deleted in one request.
const DELETED_AT_ONCE: usize = 1_000;

impl Job {
    /// What something else has taken the place of has no path any more. Where
    /// deleting is allowed it goes from the store as well, before what is in its
    /// place comes; else the store keeps it, though no pull brings it back.
    pub(super) async fn displace(
        &self,
        displaced: impl Iterator<Item = std::io::Result<(TreePath, Synced)>>,
        may_delete: bool,
        teller: &mut Teller,
        report: &mut RunReport,
    ) -> Result<(), RunProblem> {
        if may_delete && matches!(self.settings.delete, Delete::Mirror { .. }) {
            return self.remove(displaced, teller, report).await;
        }
        for item in displaced {
            let (path, _) = item.map_err(PlanError::Spool)?;
            tracing::warn!(%path, "something else is in its place; the store keeps what it was");
            self.note(StateChange::Removed(path)).await?;
        }
        Ok(())
    }

    /// Deletes what is gone.
    pub(super) async fn remove(
        &self,
        removed: impl Iterator<Item = std::io::Result<(TreePath, Synced)>>,
        teller: &mut Teller,
        report: &mut RunReport,
    ) -> Result<(), RunProblem> {
        let mut gathered = VecDeque::new();
        let mut removed = removed.peekable();
        while let Some(item) = removed.next() {
            gathered.push_back(item.map_err(PlanError::Spool)?);
            if gathered.len() >= DELETED_AT_ONCE || removed.peek().is_none() {
                self.delete(std::mem::take(&mut gathered), report).await?;
                teller.tell_if_due(self).await?;
            }
        }
        Ok(())
    }

    async fn delete(
        &self,
        gone: VecDeque<(TreePath, Synced)>,
        report: &mut RunReport,
    ) -> Result<(), RunProblem> {
        let files = gone.iter().filter(|(_, entry)| is_file(entry));
        let keys: Vec<_> = files.map(|(path, _)| self.key(path)).collect();
        let count = keys.len() as u64;
        if !keys.is_empty() {
            // Until it is known what became of them, none counts as there.
            let paths = gone.iter().map(|(path, _)| path.clone()).collect();
            self.writer
                .keep(self.id, StateChange::Replacing(paths))
                .await?;
            self.insist(|| self.store.delete(keys.clone())).await?;
        }
        for (path, _) in gone {
            self.note(StateChange::Removed(path)).await?;
        }
        report.deleted += count;
        Ok(())
    }
}

fn is_file(entry: &Synced) -> bool {
    matches!(entry.kind, SyncedKind::File { .. })
}
