//! Finding and reading scenario files, and making the quick variant.

use std::path::{Path, PathBuf};

use super::Scenario;

/// A scenario with its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Named {
    /// Name of its file without `.toml`.
    pub name: String,
    /// What it says.
    pub scenario: Scenario,
}

/// Why there is no scenario.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file that cannot be read.
    #[error("read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
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
    #[error("there is no scenario {name:?}; `lab list` shows those there are")]
    Unknown {
        /// What was asked for.
        name: String,
    },
}

/// All scenarios of a directory, by name.
///
/// # Errors
/// When the directory or one of its files cannot be used.
pub fn all(directory: &Path) -> Result<Vec<Named>, LoadError> {
    let read = |source| LoadError::Read {
        path: directory.to_owned(),
        source,
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(read)? {
        let path = entry.map_err(read)?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            found.push(file(&path)?);
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// The scenario of this name in a directory, or in the file of this path.
///
/// # Errors
/// When there is none, or it cannot be used.
pub fn find(directory: &Path, name: &str) -> Result<Named, LoadError> {
    let given = Path::new(name);
    if given
        .extension()
        .is_some_and(|extension| extension == "toml")
    {
        return file(given);
    }
    let path = directory.join(format!("{name}.toml"));
    if name.contains('/') || !path.exists() {
        return Err(LoadError::Unknown {
            name: name.to_owned(),
        });
    }
    file(&path)
}

fn file(path: &Path) -> Result<Named, LoadError> {
    let text = std::fs::read_to_string(path).map_err(|source| LoadError::Read {
        path: path.to_owned(),
        source,
    })?;
    let invalid = |message| LoadError::Invalid {
        path: path.to_owned(),
        message,
    };
    let scenario: Scenario = toml::from_str(&text).map_err(|error| invalid(error.to_string()))?;
    scenario.check().map_err(invalid)?;
    Ok(Named {
        name: path
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
            .unwrap_or_default(),
        scenario,
    })
}
