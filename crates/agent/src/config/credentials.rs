//! The credentials of a store: where they are and how to read them.
//!
//! They are read when a store is used, so new ones work without a restart. No error shows
//! any text of a file, not even a key: in a file of another format, it may be a secret.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// Largest file of credentials, bytes. Real ones are far smaller.
const MAX_FILE_SIZE: u64 = 64 << 10;

/// The credentials that a store needs, and their origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// The kind of credentials.
    pub wanted: Wanted,
    /// Their origin.
    pub origin: Origin,
}

/// The kind of credentials that a store accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// S3 access keys.
    Keys,
    /// A user name and password, or a token.
    Login,
}

/// Where the credentials of a store are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The file of this name in `$CREDENTIALS_DIRECTORY`, from systemd.
    Service(String),
    /// The file at this absolute path. Other users must not have access to it.
    File(PathBuf),
    /// Environment variables.
    Environment,
}

/// Credentials for requests to a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreCredentials {
    /// None: the environment has no credentials.
    Anonymous,
    /// S3 access keys.
    Keys {
        /// The ID of the key.
        access_key_id: String,
        /// The key itself.
        secret_access_key: SecretText,
        /// The token of temporary keys.
        session_token: Option<SecretText>,
    },
    /// For Basic authentication.
    Password {
        /// User name.
        user: String,
        /// Password.
        password: SecretText,
    },
    /// A bearer token.
    Token(SecretText),
}

impl Wanted {
    /// The keys of a file with such credentials.
    fn keys(self) -> [&'static str; 3] {
        match self {
            Self::Keys => ["access_key_id", "secret_access_key", "session_token"],
            Self::Login => ["user", "password", "token"],
        }
    }

    /// The keys that go together, for people.
    fn values(self) -> &'static str {
        match self {
            Self::Keys => "access_key_id and secret_access_key, and session_token if there is one",
            Self::Login => "user and password, or token alone",
        }
    }

    /// The credentials from the values of these keys; `Ok(None)` without any value.
    fn credentials(self, mut found: Values) -> Result<Option<StoreCredentials>, &'static str> {
        let values = self.keys().map(|key| found.remove(key));
        match (self, values) {
            (_, [None, None, None]) => Ok(None),
            (Self::Keys, [Some(access_key_id), Some(key), token]) => {
                Ok(Some(StoreCredentials::Keys {
                    access_key_id,
                    secret_access_key: SecretText::new(key),
                    session_token: token.map(SecretText::new),
                }))
            }
            (Self::Keys, [None, ..]) => Err("the access key ID is missing"),
            (Self::Keys, [_, None, _]) => Err("the secret access key is missing"),
            (Self::Login, [Some(user), Some(password), None]) => {
                Ok(Some(StoreCredentials::Password {
                    user,
                    password: SecretText::new(password),
                }))
            }
            (Self::Login, [None, None, Some(token)]) => {
                Ok(Some(StoreCredentials::Token(SecretText::new(token))))
            }
            (Self::Login, [.., Some(_)]) => Err("a token excludes a user and a password"),
            (Self::Login, [Some(_), None, None]) => Err("the password is missing"),
            (Self::Login, [None, Some(_), None]) => Err("the user is missing"),
        }
    }
}

/// The values found so far, by key.
type Values = BTreeMap<&'static str, String>;

/// Reads the credentials of the store with this name. `variable` reads an environment
/// variable.
///
/// # Errors
/// [`CredentialsError`]. An environment without credentials is no error.
pub fn read(
    store: &str,
    spec: &Spec,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<StoreCredentials, CredentialsError> {
    match &spec.origin {
        Origin::Service(name) => {
            let directory = variable("CREDENTIALS_DIRECTORY");
            let directory = directory.ok_or_else(|| {
                CredentialsError(format!(
                    "credential {name:?}: $CREDENTIALS_DIRECTORY is not set; systemd sets it for \
                     a service with LoadCredential={name}:FILE. Outside of a service, write the \
                     absolute path of a file"
                ))
            })?;
            let path = Path::new(&directory).join(name);
            let file = open(&path)?;
            from_file(&path, file, spec.wanted)
        }
        Origin::File(path) => from_file(path, open_private(path)?, spec.wanted),
        Origin::Environment => from_environment(store, spec.wanted, variable),
    }
}

/// Reads the text of a file to which other users have no access.
///
/// # Errors
/// [`CredentialsError`].
pub fn read_private(path: &Path) -> Result<SecretText, CredentialsError> {
    let file = open_private(path)?;
    text_of(path, file).map(SecretText)
}

fn open_private(path: &Path) -> Result<File, CredentialsError> {
    let file = open(path)?;
    let mode = metadata(path, &file)?.mode() & 0o7777;
    if mode & 0o077 != 0 {
        let what = format!(
            "other users have access (mode {mode:04o}); run chmod 600 {}, and replace \
             the credentials if you do not trust these users",
            path.display()
        );
        return Err(CredentialsError::file(path, what));
    }
    Ok(file)
}

fn open(path: &Path) -> Result<File, CredentialsError> {
    // Opening a pipe must not block the agent.
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = file.map_err(|error| CredentialsError::file(path, error))?;
    if metadata(path, &file)?.is_file() {
        Ok(file)
    } else {
        Err(CredentialsError::file(path, "not a regular file"))
    }
}

fn metadata(path: &Path, file: &File) -> Result<std::fs::Metadata, CredentialsError> {
    let metadata = file.metadata();
    metadata.map_err(|error| CredentialsError::file(path, error))
}

fn text_of(path: &Path, file: File) -> Result<String, CredentialsError> {
    let mut bytes = Vec::new();
    let read = file.take(MAX_FILE_SIZE + 1).read_to_end(&mut bytes);
    read.map_err(|error| CredentialsError::file(path, error))?;
    if bytes.len() as u64 > MAX_FILE_SIZE {
        let what = "too large for credentials, which have at most 64 KiB";
        return Err(CredentialsError::file(path, what));
    }
    let text = String::from_utf8(bytes);
    text.map_err(|_| CredentialsError::file(path, "not UTF-8"))
}

fn from_file(
    path: &Path,
    file: File,
    wanted: Wanted,
) -> Result<StoreCredentials, CredentialsError> {
    let text = text_of(path, file)?;
    let mut found = Values::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        take(line, &mut found, wanted).map_err(|what| {
            CredentialsError(format!(
                "{}:{}: {what}; write lines of the form KEY = VALUE with {}",
                path.display(),
                index + 1,
                wanted.values()
            ))
        })?;
    }
    let found = wanted.credentials(found);
    found
        .and_then(|found| found.ok_or("it has no credentials"))
        .map_err(|what| {
            CredentialsError::file(path, format!("{what}; expected {}", wanted.values()))
        })
}

fn take(line: &str, found: &mut Values, wanted: Wanted) -> Result<(), &'static str> {
    let (key, value) = line.split_once('=').ok_or("it has no =")?;
    let (key, value) = (key.trim(), value.trim());
    let known = wanted.keys().into_iter().find(|known| *known == key);
    let key = known.ok_or("its key is unknown")?;
    if value.is_empty() {
        return Err("its value is empty");
    }
    match found.insert(key, value.to_owned()) {
        Some(_) => Err("its key already has a value"),
        None => Ok(()),
    }
}

fn from_environment(
    store: &str,
    wanted: Wanted,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<StoreCredentials, CredentialsError> {
    let mut found = Values::new();
    for key in wanted.keys() {
        let name = variable_of(store, wanted, key);
        // An empty variable counts as unset.
        if let Some(value) = variable(&name).filter(|value| !value.is_empty()) {
            let value = value.into_string();
            let value = value.map_err(|_| CredentialsError(format!("${name} is not UTF-8")))?;
            found.insert(key, value);
        }
    }
    let found = wanted.credentials(found);
    let found = found.map_err(|what| {
        CredentialsError(format!(
            "the environment: {what}; expected {}",
            wanted.values()
        ))
    })?;
    Ok(found.unwrap_or(StoreCredentials::Anonymous))
}

/// The variable for a key: the usual one of S3 tools, such as `AWS_ACCESS_KEY_ID`, or one
/// with the name of the store, such as `FAIRBAT_STORE_NAS_USER`.
fn variable_of(store: &str, wanted: Wanted, key: &str) -> String {
    let key = key.to_ascii_uppercase();
    match wanted {
        Wanted::Keys => format!("AWS_{key}"),
        Wanted::Login => {
            let store = store.to_ascii_uppercase().replace('-', "_");
            format!("FAIRBAT_STORE_{store}_{key}")
        }
    }
}

/// A password, key or token. It has no `Display` and no serialisation, and `Debug` hides
/// it. Its memory is not protected.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(String);

impl SecretText {
    /// Hides this text.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The text itself, for the code that sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Why credentials cannot be read, with advice.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CredentialsError(String);

impl CredentialsError {
    /// What is wrong with a file.
    fn file(path: &Path, what: impl fmt::Display) -> Self {
        Self(format!("{}: {what}", path.display()))
    }
}

#[cfg(test)]
mod tests;
