//! Where programs of this crate leave what they make.

use std::fs;
use std::path::PathBuf;

/// `target/NAME`, wherever target is; made if it is not there.
///
/// # Panics
/// When it cannot be made.
#[must_use]
pub fn output_directory(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("the path of this program");
    let target = own.ancestors().nth(2).expect("it lies in target/PROFILE");
    let directory = target.join(name);
    fs::create_dir_all(&directory)
        .unwrap_or_else(|error| panic!("make {}: {error}", directory.display()));
    directory
}

/// The Python whose packages the tests run (`tests/requirements.txt`), installed somewhere above
/// this program.
///
/// # Panics
/// When it is nowhere.
#[must_use]
pub fn python() -> PathBuf {
    let own = std::env::current_exe().expect("the path of this program");
    let places = own.ancestors().skip(1);
    places
        .map(|directory| directory.join("python/bin/python"))
        .find(|path| path.exists())
        .unwrap_or_else(|| panic!("no Python above {}: .ci/deps test", own.display()))
}
