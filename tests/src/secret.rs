//! Files that only their owner may read: tokens and private keys.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Writes what only this user may read, as a token.
///
/// # Panics
/// When it cannot be written.
pub fn write_secret(path: &Path, text: &str) {
    fs::write(path, text).expect("write a secret");
    fs::set_permissions(path, Permissions::from_mode(0o600)).expect("change its mode");
}
