//! Jobs that would get in each other's way, or in their own.
//!
//! By names: two stores that are one and the same under different hosts are not
//! noticed, nor are symbolic links.

use std::path::{Path, PathBuf};

use super::jobs::Located;
use super::stores::Stores;
use crate::config::job::Course;
use crate::config::problem::Complaints;
use crate::config::store::{Place, Store};

/// Where a place really is: two stores may be parts of one.
#[derive(Debug)]
struct Location {
    /// What can have nothing in common with another.
    root: String,
    /// Below it.
    path: PathBuf,
}

impl Location {
    fn of(place: &Place, stores: &Stores) -> Option<Self> {
        Some(match stores.get(&place.store)?.as_ref()? {
            Store::S3(store) => {
                let endpoint = store.endpoint.as_ref().map(ToString::to_string);
                let endpoint = endpoint.unwrap_or_default();
                Self {
                    root: format!("s3 {endpoint} {}", store.bucket),
                    path: Path::new(&store.prefix).join(&place.path),
                }
            }
            Store::Webdav(store) | Store::Fairbat(store) => Self {
                root: store.url.origin().ascii_serialization(),
                path: Path::new(store.url.path()).join(&place.path),
            },
            Store::Local(path) => Self {
                root: "local".to_owned(),
                path: path.join(&place.path),
            },
        })
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.root == other.root && overlap(&self.path, &other.path)
    }
}

/// Whether one of the two is the other, or contains it.
fn overlap(a: &Path, b: &Path) -> bool {
    a.starts_with(b) || b.starts_with(a)
}

/// Where a job writes.
enum Written<'a> {
    Store(Option<Location>),
    Directory(&'a Path),
}

pub(super) fn complain(jobs: &[Located], stores: &Stores, complaints: &mut Complaints<'_>) {
    let written = jobs.iter().map(|located| match &located.job.course {
        Course::Push { to, .. } => Written::Store(Location::of(to, stores)),
        Course::Pull { to, .. } => Written::Directory(to),
    });
    let written: Vec<Written<'_>> = written.collect();
    for (i, located) in jobs.iter().enumerate() {
        let earlier = written.iter().zip(jobs).take(i);
        for (theirs, other) in earlier {
            let in_the_way = match (&written[i], theirs) {
                (Written::Store(Some(a)), Written::Store(Some(b))) => a.overlaps(b),
                (Written::Directory(a), Written::Directory(b)) => overlap(a, b),
                _ => false,
            };
            if in_the_way {
                let (name, other) = (&located.job.name, &other.job.name);
                let what = format!("jobs `{name}` and `{other}` write to the same directory");
                let hint = "give each a destination that is not within the other's";
                complaints.add(located.destination.clone(), what, hint);
            }
        }
        on_itself(located, stores, complaints);
    }
}

/// A job whose ends are both on this machine, one within the other.
fn on_itself(located: &Located, stores: &Stores, complaints: &mut Complaints<'_>) {
    let (Course::Push {
        from: directory,
        to: place,
    }
    | Course::Pull {
        from: place,
        to: directory,
    }) = &located.job.course;
    let Some(Some(Store::Local(path))) = stores.get(&place.store) else {
        return;
    };
    if overlap(directory, &path.join(&place.path)) {
        let what = format!(
            "job `{}` writes to what it reads: {place} and {} are within each other",
            located.job.name,
            directory.display()
        );
        let hint = "take directories that are beside each other";
        complaints.add(located.source.clone(), what, hint);
    }
}
