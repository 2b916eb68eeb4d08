//! The small TOML files that say what is to be run: one thing each, called
//! what its file is called. Knows nothing of what they say.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

/// What a file may hold.
pub trait Content: DeserializeOwned {
    /// What it is called in a sentence.
    const KIND: &'static str;

    /// Whether it can be used.
    ///
    /// # Errors
    /// What cannot be, and where.
    fn check(&self) -> Result<(), String>;
}

/// Why there is nothing.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// What cannot be read.
    #[error("read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file that says something that cannot be.
    #[error("{}: {message}", path.display())]
    Invalid {
        /// Which.
        path: PathBuf,
        /// What.
        message: String,
    },
    /// No file of this name.
    #[error("there is no {kind} {name:?}; `lab list` shows those there are")]
    Unknown {
        /// What was looked for.
        kind: &'static str,
        /// The name that was given.
        name: String,
    },
}

/// All of a directory, by name.
///
/// # Errors
/// When the directory or one of its files cannot be used.
pub fn all<T: Content>(directory: &Path) -> Result<BTreeMap<String, T>, FileError> {
    let read = |source| FileError::Read {
        path: directory.to_owned(),
        source,
    };
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).map_err(read)? {
        let path = entry.map_err(read)?.path();
        if is_toml(&path) {
            let (name, content) = file(&path)?;
            found.insert(name, content);
        }
    }
    Ok(found)
}

/// The one of this name in a directory, or in the file of this path if it ends
/// in `.toml`; with its name.
///
/// # Errors
/// When there is none, or it cannot be used.
pub fn find<T: Content>(directory: &Path, name: &str) -> Result<(String, T), FileError> {
    if is_toml(Path::new(name)) {
        return file(Path::new(name));
    }
    Ok((name.to_owned(), by_name(directory, name)?))
}

/// The one of this name in a directory.
///
/// # Errors
/// When there is none, or it cannot be used.
pub fn by_name<T: Content>(directory: &Path, name: &str) -> Result<T, FileError> {
    let path = directory.join(format!("{name}.toml"));
    if name.contains('/') || !path.exists() {
        return Err(FileError::Unknown {
            kind: T::KIND,
            name: name.to_owned(),
        });
    }
    Ok(file(&path)?.1)
}

fn is_toml(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "toml")
}

fn file<T: Content>(path: &Path) -> Result<(String, T), FileError> {
    let text = std::fs::read_to_string(path).map_err(|source| FileError::Read {
        path: path.to_owned(),
        source,
    })?;
    let invalid = |message| FileError::Invalid {
        path: path.to_owned(),
        message,
    };
    let content: T = toml::from_str(&text).map_err(|error| invalid(error.to_string()))?;
    content.check().map_err(invalid)?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    // Directories are named after it.
    if stem.starts_with('.') {
        return Err(invalid("its name must not begin with a dot".to_owned()));
    }
    Ok((stem.into_owned(), content))
}

/// The scenarios that come with the lab.
#[must_use]
pub fn scenarios() -> PathBuf {
    own("scenarios")
}

/// The matrices that come with the lab.
#[must_use]
pub fn matrices() -> PathBuf {
    own("matrices")
}

/// The plans for several paths that come with the lab.
#[must_use]
pub fn multipath() -> PathBuf {
    own("multipath")
}

/// The figures that are committed.
#[must_use]
pub fn results() -> PathBuf {
    own("results")
}

fn own(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(name)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Note {
        pages: u32,
    }

    impl Content for Note {
        const KIND: &'static str = "note";

        fn check(&self) -> Result<(), String> {
            match self.pages {
                0 => Err("pages must be 1 or more".to_owned()),
                _ => Ok(()),
            }
        }
    }

    fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(directory.path().join(name), text).unwrap();
        }
        directory
    }

    fn message(text: &str) -> String {
        let directory = directory(&[("one.toml", text)]);
        by_name::<Note>(directory.path(), "one")
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn they_are_found_by_name_and_by_path() {
        let directory = directory(&[
            ("one.toml", "pages = 1"),
            ("two.toml", "pages = 2"),
            ("README.md", "no such thing"),
        ]);
        let here = directory.path();
        let all: BTreeMap<String, Note> = all(here).unwrap();
        let expected = [("one", 1), ("two", 2)].map(|(name, pages)| (name.into(), Note { pages }));
        assert_eq!(all, BTreeMap::from(expected));
        let two = ("two".to_owned(), Note { pages: 2 });
        assert_eq!(find::<Note>(here, "two").unwrap(), two);
        let path = here.join("two.toml");
        let nowhere = Path::new("/nowhere");
        assert_eq!(find::<Note>(nowhere, path.to_str().unwrap()).unwrap(), two);
    }

    #[test]
    fn an_error_names_the_file_and_what_is_wrong_in_it() {
        for (text, wrong) in [
            ("pages = 1\npagse = 2", "pagse"),
            ("pages = 0", "pages must be"),
            ("pages = ", "line 1"),
            ("", "pages"),
        ] {
            let message = message(text);
            assert!(message.contains("/one.toml: "), "{message}");
            assert!(message.contains(wrong), "{message}");
        }
    }

    #[test]
    fn what_is_not_there_is_said() {
        let directory = directory(&[("..toml", "pages = 1")]);
        let here = directory.path();
        for name in ["one", "../one", "one.toml/"] {
            let error = find::<Note>(here, name).unwrap_err().to_string();
            assert!(
                error.contains("no note") || error.contains("read"),
                "{error}"
            );
        }
        let hidden = here.join("..toml");
        let error = find::<Note>(here, hidden.to_str().unwrap()).unwrap_err();
        assert!(error.to_string().contains("dot"), "{error}");
    }
}
