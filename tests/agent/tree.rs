//! Trees with everything that makes trouble, and whether two are the same.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};
use sha2::{Digest, Sha256};

/// Names that some tool or other gets wrong.
fn odd_names() -> Vec<Vec<u8>> {
    let mut names: Vec<Vec<u8>> = [
        &b"a b"[..],
        b" leading",
        b"trailing ",
        b"trailing.",
        b"new\nline",
        b"tab\there",
        b"\x01\x1b[31m",
        b"\xff\xfe",
        b"latin-\xe9",
        b"per%20cent",
        b"%",
        b"a+b",
        b"a&b=c;d",
        b"a#b?c",
        b"back\\slash",
        b"quote\"'`",
        b"star*",
        b"colon:",
        b"<>|",
        b"~tilde",
        b"...",
        b"..two",
        b".. ..",
        b"%2e%2e",
        b"..%2fup",
        b"..\\up",
        b".hidden",
        b".fairbat",
        b".htaccess",
        b"con",
        b"-rf",
        b"a,b",
        b"$HOME",
        b"[x]{y}",
        b"@",
        b"case",
        b"CASE",
    ]
    .iter()
    .map(|name| name.to_vec())
    .collect();
    names.extend([
        "\u{fc}mlaut".as_bytes().to_vec(),
        "u\u{308}mlaut".as_bytes().to_vec(),
        "\u{1f600}\u{200d}".as_bytes().to_vec(),
        vec![b'n'; 255],
        vec![0xff; 255],
        "\u{e9}".repeat(127).into_bytes(),
    ]);
    names
}

/// What there is in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) names: Names,
    /// How many regular files, at least 200.
    pub(crate) files: usize,
    /// The sizes of the largest, bytes. The others have up to 64 KiB, some none.
    pub(crate) large: &'static [usize],
}

/// Which names there are in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    /// All that a file system takes.
    All,
    /// Those of them that make short keys.
    Short,
}

/// One part of S3, and the least file that has two.
const PART: usize = 5 * 1024 * 1024;

/// Makes a tree.
pub(crate) fn make(root: &Path, shape: Shape, seed: u64) {
    println!("seed {seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let mut odd = odd_names();
    if shape.names == Names::Short {
        odd.retain(|name| name.len() < 50);
    }
    let directories = make_directories(root, &odd, shape.files / 20, &mut rng);
    let sizes = [0; 8].iter().chain(&[PART, PART + 1]).chain(shape.large);
    let mut sizes = sizes.copied();
    let mut paths = Vec::new();
    for i in 0..shape.files {
        let directory = &directories[rng.random_range(0..directories.len())];
        let path = match odd.get(i) {
            Some(name) => root.join(OsStr::from_bytes(name)).join("file"),
            None => directory.join(format!("f{i}")),
        };
        fs::create_dir_all(path.parent().expect("a parent")).expect("make a directory");
        if i >= odd.len() && i % 40 == 39 {
            let other: &PathBuf = &paths[rng.random_range(odd.len()..paths.len())];
            fs::hard_link(other, &path).expect("make a hard link");
            continue;
        }
        let small = 2_usize.pow(rng.random_range(0..16)) + rng.random_range(0..100);
        write(&path, sizes.next().unwrap_or(small), &mut rng);
        let mode = [0o644, 0o600, 0o444, 0o755, 0o4711, 0o000, 0o2750][i % 7];
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("set a mode");
        age(&path, &mut rng);
        paths.push(path);
    }
    make_links(root, &odd);
    for (i, directory) in directories.iter().enumerate().skip(1).rev() {
        let mode = [0o755, 0o700, 0o1777, 0o2775][i % 4];
        fs::set_permissions(directory, fs::Permissions::from_mode(mode)).expect("set a mode");
        age(directory, &mut rng);
    }
}

/// The root, and so many others, some in others and under odd names.
fn make_directories(root: &Path, odd: &[Vec<u8>], count: usize, rng: &mut StdRng) -> Vec<PathBuf> {
    let mut directories = vec![root.to_owned()];
    for i in 0..count {
        let parent = &directories[rng.random_range(0..directories.len())];
        let name = match odd.get(i) {
            Some(name) if name.len() < 200 => OsStr::from_bytes(name).to_owned(),
            _ => format!("d{i}").into(),
        };
        // Not too deep for tools that go by paths.
        if parent.as_os_str().len() < 1_000 {
            let directory = parent.join(name).join("inner");
            fs::create_dir_all(&directory).expect("make a directory");
            directories.push(directory);
        }
    }
    directories
}

/// Empty directories, and links: to themselves, to a directory, to nothing, and out
/// of the tree.
fn make_links(root: &Path, odd: &[Vec<u8>]) {
    fs::create_dir_all(root.join("links")).expect("make a directory");
    for (i, name) in odd.iter().enumerate() {
        let name = OsStr::from_bytes(name);
        fs::create_dir_all(root.join("empty").join(name)).expect("make a directory");
        let target = match i % 4 {
            0 => name,
            1 => OsStr::new("../empty"),
            2 => OsStr::from_bytes(b"../nowhere/at \xff all"),
            _ => OsStr::new("/etc/passwd"),
        };
        symlink(target, root.join("links").join(name)).expect("make a link");
    }
}

/// Gives a file or directory some time of modification, to the nanosecond: between
/// 1922 and 2017.
fn age(path: &Path, rng: &mut StdRng) {
    let since = Duration::from_nanos(rng.random_range(0..1_500_000_000_000_000_000));
    let time = if rng.random_bool(0.2) {
        SystemTime::UNIX_EPOCH - since
    } else {
        SystemTime::UNIX_EPOCH + since
    };
    let opened = fs::File::open(path).expect("open what was made");
    opened.set_modified(time).expect("set a time");
}

/// Content of which no two pieces are the same.
fn write(path: &Path, size: usize, rng: &mut StdRng) {
    const PIECE: usize = 1024 * 1024;
    let mut piece = vec![0; size.min(PIECE)];
    rng.fill_bytes(&mut piece);
    let mut file = fs::File::create_new(path).expect("make a file");
    for start in (0..size).step_by(PIECE) {
        let length = piece.len().min(size - start);
        if length > 8 {
            piece[..8].copy_from_slice(&rng.random::<u64>().to_ne_bytes());
        }
        file.write_all(&piece[..length]).expect("write a file");
    }
}

/// What a tree is, path by path: kind, mode, owner, time, and content. Times of
/// links and of directories count as well.
pub(crate) fn look(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut directories = vec![PathBuf::new()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(root.join(&directory)).expect("read a directory") {
            let path = directory.join(entry.expect("an entry").file_name());
            let metadata = fs::symlink_metadata(root.join(&path)).expect("look at an entry");
            let content = if metadata.is_symlink() {
                let target = fs::read_link(root.join(&path)).expect("read a link");
                format!("link {:?}", target.into_os_string().into_vec())
            } else if metadata.is_dir() {
                directories.push(path.clone());
                "directory".to_owned()
            } else {
                let content = fs::read(root.join(&path)).expect("read a file");
                format!("file {} {:x?}", content.len(), Sha256::digest(content))
            };
            let mode = if metadata.is_symlink() {
                0
            } else {
                metadata.mode()
            };
            let about = format!(
                "{content} {mode:o} {}:{} {}.{:09}",
                metadata.uid(),
                metadata.gid(),
                metadata.mtime(),
                metadata.mtime_nsec()
            );
            found.insert(path, about);
        }
    }
    found
}

/// Asserts that two trees are the same.
pub(crate) fn expect_same(one: &Path, other: &Path) {
    let (one, other) = (look(one), look(other));
    for (path, about) in &one {
        let there = other.get(path);
        assert_eq!(there, Some(about), "{path:?}");
    }
    let added: Vec<_> = other
        .keys()
        .filter(|path| !one.contains_key(*path))
        .collect();
    assert!(added.is_empty(), "{added:?}");
}
