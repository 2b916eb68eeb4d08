//! A path as the disk has it. Neither a symbolic link nor a second mount of a directory
//! leads around a comparison.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

/// Device and inode.
type FileIdentity = (u64, u64);

/// A path, and all directories above it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiskPath {
    /// The path itself first and the root last, each with its identity if it exists.
    steps: Vec<(PathBuf, Option<FileIdentity>)>,
}

impl DiskPath {
    /// Follows all symbolic links of an absolute path. What does not exist is taken as it
    /// is. Blocking.
    pub(crate) fn of(path: &Path) -> Self {
        let identity = |path: &Path| {
            let found = path.metadata().ok()?;
            Some((found.dev(), found.ino()))
        };
        let resolved = resolved(path);
        let ancestors = resolved.ancestors();
        Self {
            steps: ancestors
                .map(|step| (step.to_owned(), identity(step)))
                .collect(),
        }
    }

    /// Whether this is `other`, or below it.
    pub(crate) fn is_at_or_below(&self, other: &Self) -> bool {
        let Some((path, identity)) = other.steps.first() else {
            return false;
        };
        let is_other = |(step, found): &(PathBuf, Option<FileIdentity>)| match (found, identity) {
            // Something may be mounted there by now.
            (Some(found), Some(identity)) => found == identity,
            _ => step == path,
        };
        self.steps.iter().any(is_other)
    }
}

/// The path with the symbolic links of its existing part followed.
fn resolved(path: &Path) -> PathBuf {
    let mut missing = Vec::new();
    let mut existing = path.components();
    // Names that a later `..` takes back, as it will when they exist.
    let (mut taken_back, mut is_shorter) = (0, false);
    loop {
        if let Ok(found) = existing.as_path().canonicalize() {
            let names = missing.into_iter().rev();
            let path = names.fold(found, |path, name| path.join(name));
            return if is_shorter { resolved(&path) } else { path };
        }
        match existing.next_back() {
            Some(Component::Normal(_)) if taken_back > 0 => taken_back -= 1,
            Some(Component::Normal(name)) => missing.push(name),
            Some(Component::ParentDir) => (taken_back, is_shorter) = (taken_back + 1, true),
            Some(_) => {}
            None => return path.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_and_what_is_missing_is_taken_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("state")).unwrap();
        symlink(at("state"), at("link")).unwrap();
        symlink("state/missing", at("dangling")).unwrap();
        let state = DiskPath::of(&at("state"));
        for (path, is_below) in [
            ("state", true),
            ("state/file", true),
            ("link", true),
            ("link/new/file", true),
            ("new/../link/file", true),
            ("states", false),
            ("", false),
            // It would be replaced itself.
            ("dangling", false),
        ] {
            let found = DiskPath::of(&at(path)).is_at_or_below(&state);
            assert_eq!(found, is_below, "{path}");
        }
        assert!(state.is_at_or_below(&DiskPath::of(Path::new("/"))));
        let missing = DiskPath::of(&at("no/credentials"));
        assert!(DiskPath::of(&at("no/credentials")).is_at_or_below(&missing));
        assert!(!DiskPath::of(&at("no")).is_at_or_below(&missing));
    }
}
