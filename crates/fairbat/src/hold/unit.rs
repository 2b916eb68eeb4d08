//! Where systemd keeps the processes of a unit: a control group of its name, below slices
//! (systemd.slice(5)). Only the system's units are found, not those of users.

use std::fs;
use std::path::{Path, PathBuf};

/// Where control groups are (cgroups(7), version 2), ...
pub const CONTROL_GROUPS: &str = "/sys/fs/cgroup";
/// ... and where they are beside those of version 1.
const UNIFIED_GROUPS: &str = "/sys/fs/cgroup/unified";

/// The control group of a unit; `None` if it does not run. A name without an ending is that of a
/// service, as for `systemctl`.
#[must_use]
pub fn control_group(unit: &str) -> Option<PathBuf> {
    let name = match unit.rsplit_once('.') {
        Some((_, "service" | "scope" | "slice" | "socket" | "mount" | "swap")) => unit.to_owned(),
        Some(_) | None => format!("{unit}.service"),
    };
    let roots = [CONTROL_GROUPS, UNIFIED_GROUPS].map(Path::new);
    let is_valid = !name.contains('/');
    let root = roots.into_iter().find(|root| is_group(root));
    root.filter(|_| is_valid)
        .and_then(|root| search(root, &name))
}

/// Whether this is the directory of a control group.
#[must_use]
pub fn is_group(directory: &Path) -> bool {
    directory.join("cgroup.procs").exists()
}

/// Looks below a slice. Below other units there are none.
fn search(slice: &Path, name: &str) -> Option<PathBuf> {
    let own = slice.join(name);
    if is_group(&own) {
        return Some(own);
    }
    let entries = fs::read_dir(slice).ok()?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut slices = paths.filter(|path| path.extension().is_some_and(|it| it == "slice"));
    slices.find_map(|slice| search(&slice, name))
}
