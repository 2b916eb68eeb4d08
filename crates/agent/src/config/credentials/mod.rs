//! Where the credentials of a store are, and what they are.
//!
//! Read when they are needed and not with the configuration, so that new ones
//! count without a restart. No error shows anything that a file says, not even a
//! key: in a file of another form it may be a secret.

mod error;

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

pub use self::error::CredentialsError;
use super::secret::Secret;

/// More than any credentials take, in bytes.
const MOST: u64 = 64 << 10;

/// What a store needs, and from where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// What to look for.
    pub wanted: Wanted,
    /// Where to look.
    pub origin: Origin,
}

/// What kind of credentials a store takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Access keys of S3.
    Keys,
    /// User and password, or a token.
    Login,
}

/// Where credentials are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A file of this name in `$CREDENTIALS_DIRECTORY`, which systemd fills.
    Service(String),
    /// The file at this absolute path, which nobody else may read.
    File(PathBuf),
    /// In environment variables.
    Environment,
}

/// What a store is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credentials {
    /// Nothing: the environment has none.
    Anonymous,
    /// For S3.
    Keys {
        /// Which key.
        access_key_id: String,
        /// The key.
        secret_access_key: Secret,
        /// Of temporary keys.
        session_token: Option<Secret>,
    },
    /// For Basic authentication.
    Password {
        /// User name.
        user: String,
        /// Password.
        password: Secret,
    },
    /// A bearer token.
    Token(Secret),
}

/// What was found, under the names of a file.
#[derive(Default)]
struct Found {
    access_key_id: Option<String>,
    secret_access_key: Option<String>,
    session_token: Option<String>,
    user: Option<String>,
    password: Option<String>,
    token: Option<String>,
}

impl Found {
    /// Where the value of this key goes.
    fn slot(&mut self, key: &str, wanted: Wanted) -> Option<&mut Option<String>> {
        Some(match (wanted, key) {
            (Wanted::Keys, "access_key_id") => &mut self.access_key_id,
            (Wanted::Keys, "secret_access_key") => &mut self.secret_access_key,
            (Wanted::Keys, "session_token") => &mut self.session_token,
            (Wanted::Login, "user") => &mut self.user,
            (Wanted::Login, "password") => &mut self.password,
            (Wanted::Login, "token") => &mut self.token,
            _ => return None,
        })
    }

    /// `Ok(None)` if there is nothing at all.
    fn credentials(self, wanted: Wanted) -> Result<Option<Credentials>, &'static str> {
        let secret = Secret::new;
        match wanted {
            Wanted::Keys => match (self.access_key_id, self.secret_access_key) {
                (Some(access_key_id), Some(key)) => Ok(Some(Credentials::Keys {
                    access_key_id,
                    secret_access_key: secret(key),
                    session_token: self.session_token.map(secret),
                })),
                (None, None) if self.session_token.is_none() => Ok(None),
                (None, _) => Err("the access key ID is missing"),
                (_, None) => Err("the secret access key is missing"),
            },
            Wanted::Login => match (self.user, self.password, self.token) {
                (Some(user), Some(password), None) => Ok(Some(Credentials::Password {
                    user,
                    password: secret(password),
                })),
                (None, None, Some(token)) => Ok(Some(Credentials::Token(secret(token)))),
                (None, None, None) => Ok(None),
                (_, _, Some(_)) => Err("a token and a user or password exclude each other"),
                (Some(_), None, None) => Err("the password is missing"),
                (None, Some(_), None) => Err("the user is missing"),
            },
        }
    }
}

/// Reads the credentials of the store of this name. `variable` reads an
/// environment variable.
///
/// # Errors
/// [`CredentialsError`]; nothing in the environment is no error.
pub fn read(
    store: &str,
    spec: &Spec,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Credentials, CredentialsError> {
    match &spec.origin {
        Origin::Service(name) => {
            let directory = variable("CREDENTIALS_DIRECTORY");
            let directory = directory.ok_or_else(|| CredentialsError::NoDirectory(name.clone()))?;
            let path = Path::new(&directory).join(name);
            let file = open(&path)?;
            from_file(&path, file, spec.wanted)
        }
        Origin::File(path) => {
            let file = open(path)?;
            let mode = metadata(path, &file)?.mode() & 0o7777;
            if mode & 0o077 != 0 {
                let path = path.clone();
                return Err(CredentialsError::Open { path, mode });
            }
            from_file(path, file, spec.wanted)
        }
        Origin::Environment => from_environment(store, spec.wanted, variable),
    }
}

fn open(path: &Path) -> Result<File, CredentialsError> {
    // A pipe must not keep the agent waiting.
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = file.map_err(|error| unreadable(path, error))?;
    if metadata(path, &file)?.is_file() {
        Ok(file)
    } else {
        Err(CredentialsError::NoFile(path.to_owned()))
    }
}

fn metadata(path: &Path, file: &File) -> Result<std::fs::Metadata, CredentialsError> {
    file.metadata().map_err(|error| unreadable(path, error))
}

fn unreadable(path: &Path, error: io::Error) -> CredentialsError {
    let path = path.to_owned();
    CredentialsError::Unreadable { path, error }
}

fn from_file(path: &Path, file: File, wanted: Wanted) -> Result<Credentials, CredentialsError> {
    let mut bytes = Vec::new();
    let read = file.take(MOST + 1).read_to_end(&mut bytes);
    read.map_err(|error| unreadable(path, error))?;
    if bytes.len() as u64 > MOST {
        return Err(CredentialsError::TooLarge(path.to_owned()));
    }
    let text = String::from_utf8(bytes);
    let text = text.map_err(|_| CredentialsError::NotUtf8(path.to_owned()))?;
    let mut found = Found::default();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        take(line, &mut found, wanted).map_err(|what| CredentialsError::Line {
            path: path.to_owned(),
            line: index + 1,
            what,
            wanted,
        })?;
    }
    let from = || path.display().to_string();
    match found.credentials(wanted) {
        Ok(Some(credentials)) => Ok(credentials),
        Ok(None) => Err(incomplete(from(), "there are no credentials in it", wanted)),
        Err(what) => Err(incomplete(from(), what, wanted)),
    }
}

fn incomplete(from: String, what: &'static str, wanted: Wanted) -> CredentialsError {
    CredentialsError::Incomplete { from, what, wanted }
}

fn take(line: &str, found: &mut Found, wanted: Wanted) -> Result<(), &'static str> {
    let (key, value) = line.split_once('=').ok_or("there is no = in it")?;
    let value = value.trim();
    let slot = found.slot(key.trim(), wanted).ok_or("its key is unknown")?;
    if value.is_empty() {
        return Err("its value is empty");
    }
    if slot.replace(value.to_owned()).is_some() {
        return Err("its key has a value already");
    }
    Ok(())
}

/// The variables that other tools use for S3, and some of our own.
fn from_environment(
    store: &str,
    wanted: Wanted,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Credentials, CredentialsError> {
    // An empty variable is as good as none.
    let read = |name: &str| match variable(name).filter(|value| !value.is_empty()) {
        None => Ok(None),
        Some(value) => match value.into_string() {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(CredentialsError::Variable(name.to_owned())),
        },
    };
    let own = |what: &str| read(&variable_of(store, what));
    let found = match wanted {
        Wanted::Keys => Found {
            access_key_id: read("AWS_ACCESS_KEY_ID")?,
            secret_access_key: read("AWS_SECRET_ACCESS_KEY")?,
            session_token: read("AWS_SESSION_TOKEN")?,
            ..Found::default()
        },
        Wanted::Login => Found {
            user: own("USER")?,
            password: own("PASSWORD")?,
            token: own("TOKEN")?,
            ..Found::default()
        },
    };
    let found = found.credentials(wanted);
    let found = found.map_err(|what| incomplete("the environment".to_owned(), what, wanted))?;
    Ok(found.unwrap_or(Credentials::Anonymous))
}

/// The variable of a store: `FAIRBAT_STORE_NAS_USER`.
fn variable_of(store: &str, what: &str) -> String {
    let store = store.to_ascii_uppercase().replace('-', "_");
    format!("FAIRBAT_STORE_{store}_{what}")
}

#[cfg(test)]
mod tests;
