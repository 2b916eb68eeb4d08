//! What earlier runs have left unsettled, as far as a plan has to know: objects of
//! which it is not known which version they are, and uploads to be continued. Pure.

use std::collections::{HashMap, HashSet};

use crate::entry::{FileState, TreePath};
use crate::state::{JobId, StateDatabase, StateError, UploadRecord};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Unsettled {
    /// Entries whose object was about to be replaced.
    replacing: HashSet<TreePath>,
    uploads: HashMap<TreePath, UploadRecord>,
}

impl Unsettled {
    pub(super) fn of(state: &StateDatabase, job: JobId) -> Result<Self, StateError> {
        Ok(Self {
            replacing: state.replacing(job)?,
            uploads: state.uploads(job)?.into_iter().collect(),
        })
    }

    /// Whether the store may have another content than is remembered: it has to be
    /// sent, whatever the source has.
    pub(super) fn may_be_replaced(&self, path: &TreePath) -> bool {
        self.replacing.contains(path)
    }

    /// This version of a file will be sent, if it has to be: an upload of it goes
    /// on.
    pub(super) fn wanted(&mut self, path: &TreePath, state: &FileState) {
        let is_of_it = |upload: &UploadRecord| upload.state == *state;
        if self.uploads.get(path).is_some_and(is_of_it) {
            self.uploads.remove(path);
        }
    }

    /// What is here cannot be looked at: it may be as it was.
    pub(super) fn unreadable(&mut self, path: &TreePath) {
        self.uploads
            .retain(|uploaded, _| !uploaded.is_at_or_below(path));
    }

    /// The uploads that nothing will go on with.
    pub(super) fn left(self) -> Vec<(TreePath, UploadRecord)> {
        self.uploads.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Moment;

    fn path(name: &str) -> TreePath {
        TreePath::from_bytes(name.as_bytes()).unwrap()
    }

    fn version(inode: u64) -> FileState {
        FileState {
            size: 9,
            changed: Moment::default(),
            inode,
            device: 1,
        }
    }

    fn upload(inode: u64) -> UploadRecord {
        UploadRecord {
            name: "u".to_owned(),
            key: "k".to_owned(),
            part_size: 5,
            state: version(inode),
            modified: Moment::default(),
        }
    }

    #[test]
    fn only_uploads_of_what_is_gone_or_changed_are_left() {
        let names = ["same", "changed", "gone", "d\0unreadable", "dx"];
        let mut unsettled = Unsettled {
            replacing: HashSet::from([path("same")]),
            uploads: names.map(|name| (path(name), upload(1))).into(),
        };
        unsettled.wanted(&path("same"), &version(1));
        unsettled.wanted(&path("changed"), &version(2));
        unsettled.wanted(&path("new"), &version(1));
        unsettled.unreadable(&path("d"));
        assert!(unsettled.may_be_replaced(&path("same")));
        assert!(!unsettled.may_be_replaced(&path("changed")));
        let mut left: Vec<_> = unsettled
            .left()
            .into_iter()
            .map(|(path, _)| path.to_string())
            .collect();
        left.sort();
        assert_eq!(left, ["changed", "dx", "gone"]);
    }
}
