//! The processes of this machine and what descends from what, as `/proc` shows them
//! (proc(5)).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{fs, io};

/// The number of this process.
#[must_use]
pub fn own_number() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// The processes that descend from these, as far as they can be seen.
///
/// A process whose parent has ended descends from the nearest subreaper above it
/// (`PR_SET_CHILD_SUBREAPER`), or from the first process.
///
/// # Errors
/// `/proc` cannot be read.
pub fn descendants(roots: impl IntoIterator<Item = i32>) -> io::Result<BTreeSet<i32>> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(process) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if let Some(parent) = parent_of(process) {
            children.entry(parent).or_default().push(process);
        }
    }
    let mut found = BTreeSet::new();
    let mut to_do: Vec<i32> = roots.into_iter().collect();
    while let Some(process) = to_do.pop() {
        let of_it = children.remove(&process).unwrap_or_default();
        found.extend(&of_it);
        to_do.extend(of_it);
    }
    Ok(found)
}

/// The processes of a control group (cgroups(7), version 2) and of those below it.
///
/// # Errors
/// It is gone, or is no control group.
pub fn members_of(group: &Path) -> io::Result<BTreeSet<i32>> {
    let listed = fs::read_to_string(group.join("cgroup.procs"))?;
    let mut found: BTreeSet<i32> = listed
        .lines()
        .filter_map(|line| line.parse().ok())
        .collect();
    for entry in fs::read_dir(group)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            // It may go away at any time.
            found.extend(members_of(&entry.path()).unwrap_or_default());
        }
    }
    Ok(found)
}

/// The parent of a process; `None` if it is gone, or has ended and waits to be noticed.
fn parent_of(process: i32) -> Option<i32> {
    let stat = fs::read(format!("/proc/{process}/stat")).ok()?;
    // The name of the program, in brackets, may contain anything.
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(&stat[end + 1..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    (state != "Z").then(|| fields.next()?.parse().ok())?
}

/// The process that a thread belongs to.
pub(crate) fn process_of(thread: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let group = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    group.trim().parse().ok()
}
