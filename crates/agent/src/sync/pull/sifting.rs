//! What of a manifest a filter keeps.
//!
//! The filter judges as a walk of a disk would: a directory before what is in it,
//! and one that nothing asks for only if something in it is kept.

use std::collections::VecDeque;

use crate::entry::TreePath;
use crate::filter::{Filter, FilterVerdict};
use crate::manifest::{ItemContent, ManifestItem};
use crate::sync::placing::is_unfinished;

/// An iterator of the entries that are kept, of an iterator of entries in the
/// order of their paths.
#[derive(Debug)]
pub(super) struct Sifted<I> {
    items: I,
    filter: Filter,
    /// The directories that the last entry was in, and what became of them.
    around: Vec<(TreePath, FilterVerdict)>,
    /// Those of them that wait for something in them to be kept.
    waiting: Vec<ManifestItem>,
    ready: VecDeque<ManifestItem>,
}

impl<I> Sifted<I> {
    pub(super) fn new(items: I, filter: &Filter) -> Self {
        Self {
            items,
            filter: filter.clone(),
            around: Vec::new(),
            waiting: Vec::new(),
            ready: VecDeque::new(),
        }
    }

    fn sift(&mut self, item: ManifestItem) {
        // What a run has made for itself is nobody's.
        if is_unfinished(&item.path) {
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
            // The names of a path make a path.
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

impl<I: Iterator<Item = Result<ManifestItem, E>>, E> Iterator for Sifted<I> {
    type Item = Result<ManifestItem, E>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(Ok(item));
            }
            match self.items.next()? {
                Ok(item) => self.sift(item),
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
        let filter = Filter::new(&owned(include), &owned(exclude)).unwrap();
        let items = paths.iter().map(|path| Ok::<_, Infallible>(item(path)));
        let sifted = Sifted::new(items, &filter);
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
