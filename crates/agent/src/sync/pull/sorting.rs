//! What a pull has to do: a manifest beside what is on the disk. What has no
//! content is made at once, and what has is listed. Blocking.

use std::fs::File;
use std::io::{self, Read};

use sha2::{Digest, Sha256};

use super::sifting::Sifted;
use super::{Run, disk, spool};
use crate::config::Detect;
use crate::entry::{Attributes, TreePath};
use crate::manifest::{ItemContent, ManifestItem};
use crate::sync::fetched::Fetched;
use crate::sync::placing::{Found, Way, is_of_disk};
use crate::sync::report::{EntryFailure, RunProblem, RunReport};
use crate::sync::spool::{Spool, Spooled};

/// What is read of a file at once, bytes.
const PIECE: usize = 256 * 1024;

/// A file to fetch.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub(super) struct Wanted {
    pub(super) path: TreePath,
    pub(super) attributes: Attributes,
    pub(super) size: u64,
    pub(super) sha256: [u8; 32],
}

/// What there is to do.
#[derive(Debug)]
pub(super) struct Sorted {
    /// In the order of their paths.
    pub(super) files: Spooled<Wanted>,
    /// Links whose places directories have.
    pub(super) links: Vec<ManifestItem>,
    /// The directories that are in places of files and links, in the order of
    /// their paths.
    pub(super) blocked: Vec<TreePath>,
    /// They get their attributes when all is in them.
    pub(super) directories: Vec<(TreePath, Attributes)>,
    /// How many files, and their bytes.
    pub(super) wanted: (u64, u64),
    /// Entries, what is the same, and what failed.
    pub(super) report: RunReport,
}

struct Sorter<'r> {
    run: &'r Run,
    way: Way<'r>,
    files: Spool<Wanted>,
    links: Vec<ManifestItem>,
    blocked: Vec<TreePath>,
    directories: Vec<(TreePath, Attributes)>,
    wanted: (u64, u64),
    same: u64,
}

impl Run {
    pub(super) fn sort(&self, fetched: &mut Fetched) -> Result<Sorted, RunProblem> {
        let mut sorter = Sorter {
            run: self,
            way: self.placing.way(),
            files: Spool::new(),
            links: Vec::new(),
            blocked: Vec::new(),
            directories: Vec::new(),
            wanted: (0, 0),
            same: 0,
        };
        let mut report = RunReport::default();
        for item in Sifted::new(fetched.items()?, &self.settings.filter) {
            self.check_stopped()?;
            let item = item?;
            report.entries += 1;
            let path = item.path.clone();
            match sorter.take(item)? {
                Ok(()) => {}
                Err(error) if is_of_disk(&error) => {
                    return Err(disk(&path.under(&self.settings.to), &error));
                }
                Err(error) => report.failed(path, EntryFailure::Unwritable(error.to_string())),
            }
        }
        report.same = sorter.same;
        Ok(Sorted {
            files: sorter.files.finish().map_err(|error| spool(&error))?,
            links: sorter.links,
            blocked: sorter.blocked,
            directories: sorter.directories,
            wanted: sorter.wanted,
            report,
        })
    }

    /// Makes links, once there is room for them.
    pub(super) fn link_all(&self, links: Vec<ManifestItem>) -> Result<RunReport, RunProblem> {
        let mut report = RunReport::default();
        let mut way = self.placing.way();
        for item in links {
            let ItemContent::Symlink(target) = &item.content else {
                continue;
            };
            let placing = &self.placing;
            match placing.link(&mut way, &item.path, target, &item.attributes) {
                Ok(()) => {}
                Err(error) if is_of_disk(&error) => {
                    return Err(disk(&item.path.under(&self.settings.to), &error));
                }
                Err(error) => report.failed(item.path, EntryFailure::Unwritable(error.to_string())),
            }
        }
        Ok(report)
    }

    /// Gives directories their attributes, the innermost first.
    pub(super) fn dress_all(
        &self,
        directories: Vec<(TreePath, Attributes)>,
    ) -> Result<RunReport, RunProblem> {
        let mut report = RunReport::default();
        let mut way = self.placing.way();
        for (path, attributes) in directories.into_iter().rev() {
            self.check_stopped()?;
            match self.placing.dress(&mut way, &path, &attributes) {
                Ok(()) => {}
                Err(error) if is_of_disk(&error) => {
                    return Err(disk(&path.under(&self.settings.to), &error));
                }
                Err(error) => report.failed(path, EntryFailure::Unwritable(error.to_string())),
            }
        }
        Ok(report)
    }
}

impl Sorter<'_> {
    /// The inner error is of the entry, the outer of the run.
    fn take(&mut self, item: ManifestItem) -> Result<io::Result<()>, RunProblem> {
        let placing = &self.run.placing;
        if matches!(item.content, ItemContent::Symlink(_))
            && let Ok(Found::Directory) = placing.look(&mut self.way, &item.path)
        {
            self.blocked.push(item.path.clone());
            self.links.push(item);
            return Ok(Ok(()));
        }
        let ManifestItem {
            path,
            attributes,
            content,
        } = item;
        Ok(match content {
            ItemContent::Directory => {
                let made = placing.directory(&mut self.way, &path);
                self.directories.push((path, attributes));
                made
            }
            ItemContent::Symlink(target) => {
                placing.link(&mut self.way, &path, &target, &attributes)
            }
            ItemContent::File { size, sha256 } => {
                return self.take_file(&Wanted {
                    path,
                    attributes,
                    size,
                    sha256,
                });
            }
        })
    }

    fn take_file(&mut self, wanted: &Wanted) -> Result<io::Result<()>, RunProblem> {
        let placing = &self.run.placing;
        let found = match placing.look(&mut self.way, &wanted.path) {
            Ok(found) => found,
            Err(error) => return Ok(Err(error)),
        };
        if let Found::File { size, attributes } = found
            && size == wanted.size
            && self.is_same(wanted, &attributes)?
        {
            self.same += 1;
            return Ok(match attributes == wanted.attributes {
                true => Ok(()),
                false => placing.dress(&mut self.way, &wanted.path, &wanted.attributes),
            });
        }
        if found == Found::Directory {
            self.blocked.push(wanted.path.clone());
        }
        self.wanted.0 += 1;
        self.wanted.1 += wanted.size;
        Ok(self.files.push(wanted))
    }

    /// Whether a file of the right size has the right content.
    fn is_same(&mut self, wanted: &Wanted, has: &Attributes) -> Result<bool, RunProblem> {
        match self.run.settings.detect {
            Detect::Metadata => Ok(has.modified == wanted.attributes.modified),
            Detect::Content => {
                let file = self.run.placing.open(&mut self.way, &wanted.path);
                match file.and_then(|file| self.hash(file)) {
                    Ok(Some(sha256)) => Ok(sha256 == wanted.sha256),
                    Ok(None) => Err(RunProblem::Stopped),
                    // What cannot be read is replaced.
                    Err(_) => Ok(false),
                }
            }
        }
    }

    /// `None` when the run is stopped.
    fn hash(&self, mut file: File) -> io::Result<Option<[u8; 32]>> {
        let mut hash = Sha256::new();
        let mut piece = vec![0; PIECE];
        loop {
            if self.run.is_stopped() {
                return Ok(None);
            }
            match file.read(&mut piece)? {
                0 => return Ok(Some(hash.finalize().into())),
                length => hash.update(&piece[..length]),
            }
        }
    }
}
