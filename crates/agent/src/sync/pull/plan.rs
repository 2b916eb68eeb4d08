//! The plan of a pull: the manifests compared with the disk. Directories and links are
//! made at once; files are listed. Blocking.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::run::PullRun;
use crate::config::Detect;
use crate::entry::{Attributes, TreePath};
use crate::filter::{EntryFilter, FilterVerdict};
use crate::manifest::{ItemContent, ManifestItem};
use crate::sync::install::{DirectoryCache, Existing, SET_ID, SET_USER_ID, is_temporary};
use crate::sync::manifest_store::FetchedManifests;
use crate::sync::report::{RunProblem, RunReport};
use crate::sync::spool::Spool;

/// How much of a file is read at once, bytes.
const PIECE: usize = 256 * 1024;

/// A file to fetch.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct WantedFile {
    pub(crate) path: TreePath,
    pub(crate) attributes: Attributes,
    pub(crate) size: u64,
    pub(crate) sha256: [u8; 32],
}

/// The work of a pass.
#[derive(Debug, Default)]
pub(crate) struct PullPlan {
    /// Files to fetch, ordered by path.
    pub(crate) files: Spool<WantedFile>,
    /// Links whose places are taken by directories.
    pub(crate) links: Vec<ManifestItem>,
    /// Directories in the places of files and links, ordered by path.
    pub(crate) blocked: Vec<TreePath>,
    /// Their attributes are set after all changes of their members.
    pub(crate) directories: Vec<(TreePath, Attributes)>,
    /// Number of files to fetch, and their bytes.
    pub(crate) wanted: (u64, u64),
    /// Entries, unchanged files, and failures.
    pub(crate) report: RunReport,
}

impl PullRun {
    /// Compares the manifests with the disk. Makes directories and links at once.
    pub(crate) fn plan(&self, fetched: &mut FetchedManifests) -> Result<PullPlan, RunProblem> {
        let mut plan = PullPlan::default();
        let mut cache = self.installer.cache();
        for item in FilteredItems::new(fetched.items()?, &self.settings.run.filter) {
            self.check_stopped()?;
            let item = item?;
            plan.report.entries += 1;
            let path = item.path.clone();
            if let Err(error) = self.take(item, &mut cache, &mut plan)? {
                self.note_failure(path, &error, &mut plan.report)?;
            }
        }
        Ok(plan)
    }

    /// Makes links once nothing is in their way.
    pub(crate) fn link_all(&self, links: Vec<ManifestItem>) -> Result<RunReport, RunProblem> {
        let mut report = RunReport::default();
        let mut cache = self.installer.cache();
        for item in links {
            let ItemContent::Symlink(target) = &item.content else {
                continue;
            };
            let installer = &self.installer;
            if let Err(error) = installer.link(&mut cache, &item.path, target, &item.attributes) {
                self.note_failure(item.path, &error, &mut report)?;
            }
        }
        Ok(report)
    }

    /// Sets the attributes of directories, the innermost first.
    pub(crate) fn set_all_attributes(
        &self,
        directories: Vec<(TreePath, Attributes)>,
    ) -> Result<RunReport, RunProblem> {
        let mut report = RunReport::default();
        let mut cache = self.installer.cache();
        for (path, attributes) in directories.into_iter().rev() {
            self.check_stopped()?;
            let set = self
                .installer
                .set_attributes(&mut cache, &path, &attributes);
            if let Err(error) = set {
                self.note_failure(path, &error, &mut report)?;
            }
        }
        Ok(report)
    }

    /// Takes an entry into the plan. The inner error concerns the entry, the outer one
    /// the run.
    fn take(
        &self,
        item: ManifestItem,
        cache: &mut DirectoryCache<'_>,
        plan: &mut PullPlan,
    ) -> Result<io::Result<()>, RunProblem> {
        let installer = &self.installer;
        if matches!(item.content, ItemContent::Symlink(_))
            && let Ok(Existing::Directory) = installer.status(cache, &item.path)
        {
            plan.blocked.push(item.path.clone());
            plan.links.push(item);
            return Ok(Ok(()));
        }
        let ManifestItem {
            path,
            mut attributes,
            content,
        } = item;
        Ok(match content {
            ItemContent::Directory => {
                if !self.settings.setuid {
                    // Some systems heed it for directories as well.
                    attributes.mode &= !SET_USER_ID;
                }
                let made = installer.directory(cache, &path);
                plan.directories.push((path, attributes));
                made
            }
            ItemContent::Symlink(target) => installer.link(cache, &path, &target, &attributes),
            ItemContent::File { size, sha256 } => {
                if attributes.mode & SET_ID != 0 && !self.settings.setuid {
                    attributes.mode &= !SET_ID;
                    plan.report.setuid_dropped += 1;
                }
                let wanted = WantedFile {
                    path,
                    attributes,
                    size,
                    sha256,
                };
                return self.take_file(&wanted, cache, plan);
            }
        })
    }

    fn take_file(
        &self,
        wanted: &WantedFile,
        cache: &mut DirectoryCache<'_>,
        plan: &mut PullPlan,
    ) -> Result<io::Result<()>, RunProblem> {
        let found = match self.installer.status(cache, &wanted.path) {
            Ok(found) => found,
            Err(error) => return Ok(Err(error)),
        };
        if let Existing::File { size, attributes } = found
            && size == wanted.size
            && self.is_same(wanted, &attributes, cache)?
        {
            plan.report.same += 1;
            if attributes == wanted.attributes {
                return Ok(Ok(()));
            }
            let installer = &self.installer;
            return Ok(installer.set_attributes(cache, &wanted.path, &wanted.attributes));
        }
        if found == Existing::Directory {
            plan.blocked.push(wanted.path.clone());
        }
        plan.wanted.0 += 1;
        plan.wanted.1 += wanted.size;
        plan.files.push(wanted)?;
        Ok(Ok(()))
    }

    /// Whether a file of the right size is unchanged.
    fn is_same(
        &self,
        wanted: &WantedFile,
        has: &Attributes,
        cache: &mut DirectoryCache<'_>,
    ) -> Result<bool, RunProblem> {
        match self.settings.run.detect {
            Detect::Metadata => Ok(has.modified == wanted.attributes.modified),
            Detect::Content => {
                let file = self.installer.open(cache, &wanted.path);
                match file.and_then(|file| self.hash(file)) {
                    Ok(Some(sha256)) => Ok(sha256 == wanted.sha256),
                    Ok(None) => Err(RunProblem::Stopped),
                    // An unreadable file is replaced.
                    Err(_) => Ok(false),
                }
            }
        }
    }

    /// `None` if the run is stopped.
    fn hash(&self, mut file: File) -> io::Result<Option<[u8; 32]>> {
        let mut hash = Sha256::new();
        let mut piece = vec![0; PIECE];
        loop {
            if self.is_stopped() {
                return Ok(None);
            }
            match file.read(&mut piece)? {
                0 => return Ok(Some(hash.finalize().into())),
                length => hash.update(&piece[..length]),
            }
        }
    }
}

/// The entries of a manifest that a filter keeps, an iterator ordered by path.
///
/// The filter judges as in a walk of a disk: a directory before its members, and a
/// directory on the way to included entries only if one of them is kept.
#[derive(Debug)]
pub(crate) struct FilteredItems<I> {
    items: I,
    filter: EntryFilter,
    /// The directories around the last entry, with their verdicts.
    around: Vec<(TreePath, FilterVerdict)>,
    /// Directories that are kept only if a member is.
    waiting: Vec<ManifestItem>,
    ready: VecDeque<ManifestItem>,
}

impl<I> FilteredItems<I> {
    pub(crate) fn new(items: I, filter: &EntryFilter) -> Self {
        Self {
            items,
            filter: filter.clone(),
            around: Vec::new(),
            waiting: Vec::new(),
            ready: VecDeque::new(),
        }
    }

    fn take(&mut self, item: ManifestItem) {
        // Temporary files of a run are no entries.
        if is_temporary(&item.path) {
            return;
        }
        let is_directory = matches!(item.content, ItemContent::Directory);
        let is_around = |path: &TreePath| item.path.is_at_or_below(path);
        while self.around.pop_if(|(path, _)| !is_around(path)).is_some() {}
        while self
            .waiting
            .pop_if(|directory| !is_around(&directory.path))
            .is_some()
        {}
        match self.judge(&item.path, is_directory) {
            FilterVerdict::Out => {}
            FilterVerdict::OnTheWay => self.waiting.push(item),
            FilterVerdict::In => {
                self.ready.extend(self.waiting.drain(..));
                self.ready.push_back(item);
            }
        }
    }

    fn judge(&mut self, path: &TreePath, is_directory: bool) -> FilterVerdict {
        let known = self.around.last();
        let mut verdict = known.map_or(self.filter.of_root(), |(_, verdict)| *verdict);
        let mut here = known.map_or_else(TreePath::root, |(path, _)| path.clone());
        let depth = here.names().count();
        for name in path.names().skip(depth) {
            // Names of a path always make a path.
            here = here.join(name).unwrap_or_default();
            let is_around = here != *path;
            verdict = self.filter.judge(&here, is_around || is_directory, verdict);
            if is_around || is_directory {
                self.around.push((here.clone(), verdict));
            }
        }
        verdict
    }
}

impl<I: Iterator<Item = Result<ManifestItem, E>>, E> Iterator for FilteredItems<I> {
    type Item = Result<ManifestItem, E>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(Ok(item));
            }
            match self.items.next()? {
                Ok(item) => self.take(item),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::entry::{Attributes, Moment};

    fn item(path: &str) -> ManifestItem {
        let is_directory = path.ends_with('/');
        let path = path.trim_end_matches('/').replace('/', "\0");
        ManifestItem {
            path: TreePath::from_bytes(path.as_bytes()).unwrap(),
            attributes: Attributes {
                mode: 0o644,
                uid: 0,
                gid: 0,
                modified: Moment::default(),
            },
            content: match is_directory {
                true => ItemContent::Directory,
                false => ItemContent::File {
                    size: 0,
                    sha256: [0; 32],
                },
            },
        }
    }

    fn kept(include: &[&str], exclude: &[&str], paths: &[&str]) -> Vec<String> {
        let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let filter = EntryFilter::new(&owned(include), &owned(exclude)).unwrap();
        let items = paths.iter().map(|path| Ok::<_, Infallible>(item(path)));
        let sifted = FilteredItems::new(items, &filter);
        sifted.map(|item| item.unwrap().path.to_string()).collect()
    }

    #[test]
    fn what_is_left_out_is_left_out_with_all_that_is_in_it() {
        let paths = [
            "a/",
            "a/cache/",
            "a/cache/x",
            "a/cache/y/",
            "a/cache/y/z",
            "a/f",
        ];
        assert_eq!(kept(&[], &["cache/"], &paths), ["a", "a/f"]);
        // A manifest need not have the directories.
        assert_eq!(kept(&[], &["cache/"], &["a/cache/x", "a/f"]), ["a/f"]);
    }

    #[test]
    fn directories_on_the_way_are_kept_where_they_lead_to_something() {
        let paths = [
            "a/", "a/b/", "a/b/f.rs", "a/c/", "a/c/f.c", "d/", "d/e/", "f.rs",
        ];
        assert_eq!(
            kept(&["*.rs"], &[], &paths),
            ["a", "a/b", "a/b/f.rs", "f.rs"]
        );
    }

    #[test]
    fn what_a_run_has_made_for_itself_is_nobodys() {
        let paths = [".fairbat-unfinished/", ".fairbat-unfinished/0", "a"];
        assert_eq!(kept(&[], &[], &paths), ["a"]);
    }
}
