//! Which entries of a tree are synced, by patterns in the syntax of `.gitignore`. Pure.
//!
//! Names are bytes, as on the disk. The caller must not enter directories that the
//! filter leaves out.

use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::entry::TreePath;

/// A filter of entries. Two filters are equal if they have the same patterns.
#[derive(Debug, Clone)]
pub struct EntryFilter {
    /// The patterns to include, then those to exclude.
    patterns: [Vec<String>; 2],
    exclude: Option<Gitignore>,
    include: Option<IncludePatterns>,
}

impl PartialEq for EntryFilter {
    fn eq(&self, other: &Self) -> bool {
        self.patterns == other.patterns
    }
}

#[derive(Debug, Clone)]
struct IncludePatterns {
    /// Entries that are kept, with everything below them.
    wanted: Gitignore,
    /// Directories that may contain wanted entries. `None`: any directory.
    ways: Option<Gitignore>,
}

/// What a filter says about an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterVerdict {
    /// Left out, with everything below it.
    Out,
    /// A directory that is kept only if one of its members is.
    OnTheWay,
    /// Kept, with everything below it that is not excluded.
    In,
}

/// An invalid pattern.
#[derive(Debug, thiserror::Error)]
#[error("{list} pattern {pattern:?} {problem}")]
pub struct FilterError {
    /// Its list: `include` or `exclude`.
    pub list: &'static str,
    pattern: String,
    problem: String,
}

impl EntryFilter {
    /// A filter by patterns relative to the root of the tree. `exclude` wins over
    /// `include`. Within `exclude` the last matching pattern wins, and `!` undoes an
    /// earlier pattern, but not below an excluded directory. If `include` has
    /// patterns, only entries at or below a match are kept.
    ///
    /// # Errors
    /// [`FilterError`] names the first invalid pattern.
    pub fn new(include: &[String], exclude: &[String]) -> Result<Self, FilterError> {
        let patterns = [include.to_owned(), exclude.to_owned()];
        let exclude = match exclude {
            [] => None,
            patterns => Some(matcher("exclude", patterns)?),
        };
        if let Some(negated) = include.iter().find(|pattern| pattern.starts_with('!')) {
            return Err(FilterError {
                list: "include",
                pattern: negated.clone(),
                problem: "cannot start with !: put what is to be left out under exclude".to_owned(),
            });
        }
        let include = match include {
            [] => None,
            patterns => Some(IncludePatterns {
                wanted: matcher("include", patterns)?,
                ways: ways(patterns),
            }),
        };
        Ok(Self {
            patterns,
            exclude,
            include,
        })
    }

    /// A filter that keeps everything.
    #[must_use]
    pub fn everything() -> Self {
        Self {
            patterns: Default::default(),
            exclude: None,
            include: None,
        }
    }

    /// Judges an entry. `parent` is the verdict on its directory, or
    /// [`EntryFilter::of_root`].
    #[must_use]
    pub fn judge(
        &self,
        path: &TreePath,
        is_directory: bool,
        parent: FilterVerdict,
    ) -> FilterVerdict {
        if parent == FilterVerdict::Out {
            return FilterVerdict::Out;
        }
        if self.exclude.is_none() && (self.include.is_none() || parent == FilterVerdict::In) {
            return FilterVerdict::In;
        }
        let path = &path.under(Path::new(""));
        let matches = |list: &Gitignore| list.matched(path, is_directory).is_ignore();
        if self.exclude.as_ref().is_some_and(matches) {
            return FilterVerdict::Out;
        }
        match &self.include {
            Some(include) if parent != FilterVerdict::In => include.judge(path, is_directory),
            Some(_) | None => FilterVerdict::In,
        }
    }

    /// The verdict on the root.
    #[must_use]
    pub fn of_root(&self) -> FilterVerdict {
        match self.include {
            Some(_) => FilterVerdict::OnTheWay,
            None => FilterVerdict::In,
        }
    }
}

impl IncludePatterns {
    fn judge(&self, path: &Path, is_directory: bool) -> FilterVerdict {
        let may_lead = |ways: &Gitignore| matches!(ways.matched(path, true), Match::Ignore(_));
        if self.wanted.matched(path, is_directory).is_ignore() {
            FilterVerdict::In
        } else if is_directory && self.ways.as_ref().is_none_or(may_lead) {
            FilterVerdict::OnTheWay
        } else {
            FilterVerdict::Out
        }
    }
}

/// `list` names the patterns in errors.
fn matcher(list: &'static str, patterns: &[String]) -> Result<Gitignore, FilterError> {
    let mut builder = GitignoreBuilder::new("");
    for pattern in patterns {
        let refused = |problem: String| FilterError {
            list,
            pattern: pattern.clone(),
            problem,
        };
        let unreadable = |error: ignore::Error| refused(format!("cannot be read: {error}"));
        let mut alone = GitignoreBuilder::new("");
        alone.add_line(None, pattern).map_err(unreadable)?;
        let built = alone.build().map_err(unreadable)?;
        if built.is_empty() || pattern.trim_matches('/').is_empty() {
            return Err(refused(
                "matches nothing: it is blank, a slash alone or a comment (write \\# for a name \
                 with #)"
                    .to_owned(),
            ));
        }
        builder.add_line(None, pattern).map_err(unreadable)?;
    }
    let built = builder.build();
    built.map_err(|error| FilterError {
        list,
        pattern: patterns.join(", "),
        problem: format!("cannot be read: {error}"),
    })
}

/// The directories on the way to matches of `patterns`. So a filter for two directories
/// of a disk does not cost a walk of the whole disk. `None` if the patterns do not
/// show that.
fn ways(patterns: &[String]) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new("");
    for pattern in patterns {
        let path = pattern.trim_end().trim_end_matches('/');
        // Without an inner slash a pattern matches at any depth. Each of these
        // characters may hide a slash.
        if !path.contains('/') || path.contains(['\\', '[', '{']) {
            return None;
        }
        let mut names = path.trim_start_matches('/').split('/').peekable();
        let mut way = String::new();
        while let Some(name) = names.next() {
            let is_any_depth = name == "**";
            if name.contains("**") && !is_any_depth || name.ends_with(char::is_whitespace) {
                return None;
            }
            way.push('/');
            way.push_str(name);
            if names.peek().is_some() {
                builder.add_line(None, &way).ok()?;
            }
            if is_any_depth {
                break;
            }
        }
    }
    builder.build().ok()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    fn filter(include: &[&str], exclude: &[&str]) -> EntryFilter {
        let owned =
            |list: &[&str]| -> Vec<String> { list.iter().map(ToString::to_string).collect() };
        EntryFilter::new(&owned(include), &owned(exclude)).unwrap()
    }

    /// What becomes of a path with slashes, which is a directory if it ends in
    /// one, as a walk finds out: from the root down.
    fn verdict(filter: &EntryFilter, path: &str) -> FilterVerdict {
        let names: Vec<&str> = path.trim_end_matches('/').split('/').collect();
        let mut here = TreePath::root();
        let mut verdict = filter.of_root();
        for (i, name) in names.iter().enumerate() {
            here = here.join(OsStr::new(name)).unwrap();
            let is_directory = i + 1 < names.len() || path.ends_with('/');
            verdict = filter.judge(&here, is_directory, verdict);
        }
        verdict
    }

    fn check(filter: &EntryFilter, expected: &[(&str, FilterVerdict)]) {
        for (path, verdict_of) in expected {
            assert_eq!(verdict(filter, path), *verdict_of, "{path}");
        }
    }

    #[test]
    fn without_patterns_everything_is_kept() {
        let everything = EntryFilter::everything();
        check(
            &everything,
            &[("a", FilterVerdict::In), ("a/b/", FilterVerdict::In)],
        );
        check(&filter(&[], &[]), &[("a/b", FilterVerdict::In)]);
    }

    #[test]
    fn what_is_excluded_is_left_out_with_everything_below_it() {
        check(
            &filter(&[], &["*.o", "/cache/", "!keep.o", "logs/*.gz"]),
            &[
                ("a.o", FilterVerdict::Out),
                ("deep/er/a.o", FilterVerdict::Out),
                ("keep.o", FilterVerdict::In),
                ("cache/", FilterVerdict::Out),
                ("cache", FilterVerdict::In),
                ("cache/keep.o", FilterVerdict::Out),
                ("deep/cache/x", FilterVerdict::In),
                ("logs/1.gz", FilterVerdict::Out),
                ("deep/logs/1.gz", FilterVerdict::In),
            ],
        );
    }

    #[test]
    fn only_what_is_included_is_kept_and_the_directories_on_the_way() {
        check(
            &filter(&["/home/*/docs", "/etc/"], &["*.tmp"]),
            &[
                ("home/", FilterVerdict::OnTheWay),
                ("home", FilterVerdict::Out),
                ("home/me/", FilterVerdict::OnTheWay),
                ("home/me/docs/", FilterVerdict::In),
                ("home/me/docs/a/b", FilterVerdict::In),
                ("home/me/docs/a/b.tmp", FilterVerdict::Out),
                ("home/me/music/", FilterVerdict::Out),
                ("etc/passwd", FilterVerdict::In),
                ("usr/", FilterVerdict::Out),
                ("usr/etc/", FilterVerdict::Out),
            ],
        );
        check(
            &filter(&["*.rs", "/etc"], &["target/"]),
            &[
                ("usr/", FilterVerdict::OnTheWay),
                ("usr/src/a.rs", FilterVerdict::In),
                ("usr/src/a.c", FilterVerdict::Out),
                ("usr/target/a.rs", FilterVerdict::Out),
            ],
        );
        check(
            &filter(&["srv/**/data"], &[]),
            &[
                ("srv/", FilterVerdict::OnTheWay),
                ("srv/a/b/", FilterVerdict::OnTheWay),
                ("srv/a/b/data/x", FilterVerdict::In),
                ("srv/data", FilterVerdict::In),
                ("usr/", FilterVerdict::Out),
            ],
        );
        check(
            &filter(&["srv/**"], &[]),
            &[
                ("srv/", FilterVerdict::OnTheWay),
                ("srv/a/b", FilterVerdict::In),
                ("usr/", FilterVerdict::Out),
            ],
        );
    }

    #[test]
    fn names_are_bytes() {
        let odd = TreePath::from_bytes(b"a\0\xff.o").unwrap();
        assert_eq!(
            filter(&[], &["*.o"]).judge(&odd, false, FilterVerdict::In),
            FilterVerdict::Out
        );
        assert_eq!(
            filter(&[], &["*.c"]).judge(&odd, false, FilterVerdict::In),
            FilterVerdict::In
        );
    }

    #[test]
    fn a_pattern_that_cannot_be_meant_is_named() {
        let refused = |include: &[&str], exclude: &[&str]| {
            let owned =
                |list: &[&str]| -> Vec<String> { list.iter().map(ToString::to_string).collect() };
            let refused = EntryFilter::new(&owned(include), &owned(exclude));
            refused.unwrap_err().to_string()
        };
        let negated = refused(&["a", "!b"], &[]);
        let expected = "include pattern \"!b\" cannot start with !";
        assert!(negated.starts_with(expected), "{negated}");
        for pattern in ["", "  ", "# all", "/"] {
            let blank = refused(&[], &["a", pattern]);
            let expected = format!("exclude pattern {pattern:?} matches nothing");
            assert!(blank.starts_with(&expected), "{blank}");
        }
        let broken = refused(&[], &["a", "{b"]);
        let expected = "exclude pattern \"{b\" cannot be read";
        assert!(broken.starts_with(expected), "{broken}");
    }
}
