//! Where the credentials of a store are, and what they are.
//!
//! Read when they are needed and not with the configuration, so that new ones
//! count without a restart. No error shows anything that a file says, not even a
//! key: in a file of another form it may be a secret.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

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

/// Why credentials cannot be had. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// There is no directory of credentials.
    #[error(
        "credential {0:?}: $CREDENTIALS_DIRECTORY is not set; systemd sets it for a service with \
         LoadCredential={0}:FILE. Elsewhere write the absolute path of a file"
    )]
    NoDirectory(String),
    /// The file cannot be read.
    #[error("{}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A directory, a pipe, a device.
    #[error("{}: not a regular file", .0.display())]
    NoFile(PathBuf),
    /// Others may read the file.
    #[error("{}: others may use it (mode {mode:04o}); run chmod 600 {0}, and take new credentials \
        if others are not to be trusted", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// More than credentials take.
    #[error("{}: larger than 64 KiB, so these are no credentials", .0.display())]
    TooLarge(PathBuf),
    /// Bytes that are no text.
    #[error("{}: not UTF-8", .0.display())]
    NotUtf8(PathBuf),
    /// A line of another form.
    #[error("{}:{line}: {what}; write lines of the form KEY = VALUE with {}",
        path.display(), keys(*wanted))]
    Line {
        /// The file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// What is wrong with it.
        what: &'static str,
        /// What should be in the file.
        wanted: Wanted,
    },
    /// A combination that a store does not take.
    #[error("{from}: {what}; {}", keys(*wanted))]
    Incomplete {
        /// The file, or the environment.
        from: String,
        /// What is wrong.
        what: &'static str,
        /// What should be there.
        wanted: Wanted,
    },
    /// A variable that is no text.
    #[error("${0} is not UTF-8")]
    Variable(String),
}

fn keys(wanted: Wanted) -> &'static str {
    match wanted {
        Wanted::Keys => "access_key_id and secret_access_key, and session_token if there is one",
        Wanted::Login => "user and password, or token alone",
    }
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
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const FILE_LOGIN: &str = "# of the nas\n\nuser = alice \n password=p=q #r\n";

    fn no_variables(_: &str) -> Option<OsString> {
        None
    }

    /// A file with this content and mode, and what is read from it.
    fn from(content: &[u8], mode: u32, wanted: Wanted) -> Result<Credentials, CredentialsError> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let origin = Origin::File(path);
        read("nas", &Spec { wanted, origin }, no_variables)
    }

    fn password(user: &str, password: &str) -> Credentials {
        Credentials::Password {
            user: user.to_owned(),
            password: Secret::new(password.to_owned()),
        }
    }

    #[test]
    fn files_have_lines_of_keys_and_values() {
        let found = from(FILE_LOGIN.as_bytes(), 0o600, Wanted::Login).unwrap();
        assert_eq!(found, password("alice", "p=q #r"));
        let found = from(b"token = t\n", 0o400, Wanted::Login).unwrap();
        assert_eq!(found, Credentials::Token(Secret::new("t".to_owned())));
        let content = b"access_key_id = i\r\nsecret_access_key = k\r\nsession_token = t";
        let found = from(content, 0o600, Wanted::Keys).unwrap();
        let expected = Credentials::Keys {
            access_key_id: "i".to_owned(),
            secret_access_key: Secret::new("k".to_owned()),
            session_token: Some(Secret::new("t".to_owned())),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn nothing_secret_is_shown() {
        let found = from(FILE_LOGIN.as_bytes(), 0o600, Wanted::Login).unwrap();
        let shown = format!("{found:?}");
        assert!(shown.contains("alice") && shown.contains("***") && !shown.contains("p=q"));
        for content in [
            "machine nas login alice password hunter2",
            "aHVudGVyMg==hunter2",
            "password = hunter2",
            "user = hunter2",
            "user = alice\nuser = hunter2",
            "token = hunter2\npassword = hunter2",
            "user =\npassword = hunter2",
            "access_key_id = hunter2",
            "hunter2 = alice",
        ] {
            let error = from(content.as_bytes(), 0o600, Wanted::Login).unwrap_err();
            assert!(!error.to_string().contains("hunter2"), "{error}");
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
            assert!(error.to_string().contains("user and password"), "{error}");
        }
    }

    #[test]
    fn errors_name_the_line() {
        let error = from(b"user = a\n\npasswort = b", 0o600, Wanted::Login).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("/file:3: its key is unknown"), "{message}");
        let error = from(b"# nothing", 0o600, Wanted::Keys).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("no credentials") && message.contains("access_key_id"));
        assert!(matches!(
            from(b"user = \xff", 0o600, Wanted::Login),
            Err(CredentialsError::NotUtf8(_))
        ));
        let large = vec![b'#'; 65 << 10];
        assert!(matches!(
            from(&large, 0o600, Wanted::Login),
            Err(CredentialsError::TooLarge(_))
        ));
    }

    #[test]
    fn a_file_that_others_may_use_is_refused_with_what_to_do() {
        for mode in [0o604, 0o640, 0o620, 0o601] {
            let error = from(FILE_LOGIN.as_bytes(), mode, Wanted::Login).unwrap_err();
            let message = error.to_string();
            assert!(message.contains("chmod 600 /"), "{message}");
            assert!(message.contains(&format!("{mode:04o}")), "{message}");
        }
    }

    #[test]
    fn what_is_no_file_is_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        for path in [pipe, directory.path().to_owned()] {
            let spec = Spec {
                wanted: Wanted::Login,
                origin: Origin::File(path),
            };
            let result = read("nas", &spec, no_variables);
            assert!(matches!(result, Err(CredentialsError::NoFile(_))));
        }
    }

    #[test]
    fn a_name_is_looked_up_among_those_of_the_service() {
        let spec = Spec {
            wanted: Wanted::Login,
            origin: Origin::Service("nas".to_owned()),
        };
        let error = read("x", &spec, no_variables).unwrap_err().to_string();
        assert!(error.contains("LoadCredential=nas:"), "{error}");
        let directory = tempfile::tempdir().unwrap();
        let variable = |name: &str| {
            let is = name == "CREDENTIALS_DIRECTORY";
            is.then(|| directory.path().as_os_str().to_owned())
        };
        let error = read("x", &spec, variable).unwrap_err();
        assert!(matches!(error, CredentialsError::Unreadable { .. }));
        let path = directory.path().join("nas");
        std::fs::write(&path, FILE_LOGIN).unwrap();
        // As systemd makes them: an access list for the user shows as a group's.
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o440)).unwrap();
        assert_eq!(
            read("x", &spec, variable).unwrap(),
            password("alice", "p=q #r")
        );
    }

    #[test]
    fn without_a_file_the_environment_counts() {
        let read = |wanted, variables: &[(&str, &str)]| {
            let origin = Origin::Environment;
            read("my-nas", &Spec { wanted, origin }, |name| {
                let found = variables.iter().find(|(variable, _)| *variable == name);
                found.map(|(_, value)| (*value).into())
            })
        };
        let none = read(Wanted::Login, &[]).unwrap();
        assert_eq!(none, Credentials::Anonymous);
        let user = ("FAIRBAT_STORE_MY_NAS_USER", "alice");
        let login = [user, ("FAIRBAT_STORE_MY_NAS_PASSWORD", "p")];
        assert_eq!(read(Wanted::Login, &login).unwrap(), password("alice", "p"));
        assert_eq!(read(Wanted::Keys, &login).unwrap(), Credentials::Anonymous);
        assert!(read(Wanted::Login, &[user]).is_err());
        let keys = [("AWS_ACCESS_KEY_ID", "i"), ("AWS_SECRET_ACCESS_KEY", "k")];
        assert!(matches!(
            read(Wanted::Keys, &keys).unwrap(),
            Credentials::Keys {
                session_token: None,
                ..
            }
        ));
        assert!(read(Wanted::Keys, &keys[..1]).is_err());
    }
}
