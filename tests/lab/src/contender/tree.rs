//! A directory to be pushed: files of mixed sizes, all of it by a seed. Knows
//! neither who pushes it nor where to.

use std::fs;
use std::io;
use std::path::Path;

use fairbat_tests::content::Content;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// Size of the smallest file, bytes, but for what is left over.
const LEAST: u64 = 4_000;

/// The largest is so much of the whole at most: what people keep is a few large
/// files and many small ones.
const LARGEST: f64 = 1.0 / 3.0;

/// Files in a directory.
const IN_DIRECTORY: usize = 10;

/// A file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Leaf {
    /// Below the root, with slashes.
    pub(super) path: String,
    /// What is in it.
    pub(super) content: Content,
}

/// Files of so many bytes together. The logarithm of their sizes is of uniform
/// distribution.
pub(super) fn leaves(bytes: u64, seed: u64) -> Vec<Leaf> {
    let mut rng = StdRng::seed_from_u64(seed);
    let ratio = (bytes as f64 * LARGEST / LEAST as f64).max(1.0);
    let mut left = bytes;
    let mut leaves = Vec::new();
    while left > 0 {
        let drawn = LEAST as f64 * ratio.powf(rng.random::<f64>());
        let size = (drawn as u64).clamp(1, left);
        let index = leaves.len();
        leaves.push(Leaf {
            path: format!("{:02}/{index:04}.bin", index / IN_DIRECTORY),
            content: Content::new(rng.random(), size),
        });
        left -= size;
    }
    leaves
}

/// Makes them in this directory.
///
/// # Errors
/// Whatever the file system says.
pub(super) fn write(leaves: &[Leaf], root: &Path) -> io::Result<()> {
    for leaf in leaves {
        let path = root.join(&leaf.path);
        fs::create_dir_all(path.parent().expect("it is in a directory"))?;
        leaf.content.write_to(&path)?;
    }
    Ok(())
}

/// What is wrong with them in this directory, for people; `None` if nothing is.
pub(super) fn fault(leaves: &[Leaf], root: &Path) -> Option<String> {
    leaves.iter().find_map(|leaf| {
        let path = &leaf.path;
        match leaf.content.first_difference(&root.join(path)) {
            Ok(None) => None,
            Ok(Some(difference)) => Some(format!(
                "the {path} in the store is not the one that was pushed: it has {} bytes, and is \
                 wrong from byte {}",
                difference.found, difference.offset
            )),
            Err(error) => Some(format!("there is no {path} in the store: {error}")),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_files_of_mixed_sizes_and_all_the_bytes() {
        for (bytes, seed) in [(36_200_000, 1), (7_240_000, 2), (5_000, 3), (1, 4)] {
            let leaves = leaves(bytes, seed);
            let sizes: Vec<_> = leaves.iter().map(|leaf| leaf.content.len()).collect();
            assert_eq!(sizes.iter().sum::<u64>(), bytes, "seed {seed}");
            assert_eq!(leaves, super::leaves(bytes, seed));
            assert_ne!(leaves, super::leaves(bytes, seed + 10));
            if bytes > 1_000_000 {
                assert!(sizes.iter().any(|size| *size > bytes / 20), "{sizes:?}");
                assert!(sizes.iter().any(|size| *size < 100_000), "{sizes:?}");
                assert!(sizes.iter().all(|size| *size <= bytes / 3), "{sizes:?}");
            }
        }
    }

    #[test]
    fn what_is_missing_or_wrong_is_found() {
        let root = tempfile::tempdir().unwrap();
        let leaves = leaves(200_000, 7);
        write(&leaves, root.path()).unwrap();
        assert_eq!(fault(&leaves, root.path()), None);
        let last = root.path().join(&leaves[leaves.len() - 1].path);
        fs::write(&last, "other").unwrap();
        assert!(fault(&leaves, root.path()).unwrap().contains("wrong from"));
        fs::remove_file(&last).unwrap();
        assert!(fault(&leaves, root.path()).unwrap().contains("there is no"));
    }
}
