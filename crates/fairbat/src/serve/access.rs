//! Access to the server: the bearer token that requests show (RFC 6750), and the
//! certificate that the server shows.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use rustix::process::{Uid, geteuid};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::{self, PemObject};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::error::{ErrorKind, TransferError};
use crate::pem::certificates;

/// Largest secret that is read, bytes. Real ones are far smaller.
const MAX_SECRET: u64 = 64 * 1024;

/// The files for HTTPS.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// PEM file with the server's certificate, followed by those that lead to its
    /// authority.
    pub certificate: PathBuf,
    /// PEM file with the private key. The rights of [`Token::read`] hold for it.
    pub key: PathBuf,
}

/// The token that every request has to show. Kept as a digest, so that every
/// comparison takes the same time.
#[derive(Clone)]
pub struct Token([u8; 32]);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(***)")
    }
}

impl Token {
    /// Reads a token from a file. White space around it is ignored. The file has to
    /// belong to the user of this process or to root, and other users may have no access.
    /// A group may read a file of root's.
    ///
    /// # Errors
    /// The file cannot be read, others have access, or it does not hold one word of the
    /// characters that RFC 6750, section 2.1, allows.
    pub fn read(path: &Path) -> Result<Self, TransferError> {
        let new = "make one: (umask 077; openssl rand -hex 32 > FILE)";
        let text = Secret::TOKEN
            .read(path)
            .map_err(|error| match path.exists() {
                true => error,
                false => error.with_hint(new),
            })?;
        let token = text.trim_ascii();
        let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(byte);
        if token.is_empty() || !token.iter().all(is_allowed) {
            let error = unusable(
                "token",
                path,
                &"it is not one word of A-Z a-z 0-9 - . _ ~ + / =",
            );
            return Err(error.with_hint(new));
        }
        Ok(Self::of(token))
    }

    pub(crate) fn of(token: &[u8]) -> Self {
        Self(Sha256::digest(token).into())
    }

    /// Whether this is the token.
    pub(crate) fn is(&self, shown: &[u8]) -> bool {
        Self::of(shown).0.ct_eq(&self.0).into()
    }

    /// Whether a request shows the token.
    pub(crate) fn is_shown(&self, headers: &HeaderMap) -> bool {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return false;
        };
        let Some((scheme, shown)) = value.as_bytes().split_at_checked(7) else {
            return false;
        };
        scheme.eq_ignore_ascii_case(b"Bearer ") && self.is(shown.trim_ascii())
    }
}

/// A file that only the server may read.
struct Secret {
    what: &'static str,
    flag: &'static str,
}

impl Secret {
    const TOKEN: Self = Self {
        what: "token",
        flag: "--token-file",
    };
    const KEY: Self = Self {
        what: "key",
        flag: "--tls-key",
    };

    /// Reads it, after a check of who else may.
    fn read(&self, path: &Path) -> Result<Vec<u8>, TransferError> {
        let Self { what, flag } = self;
        let unusable = |error: &dyn std::fmt::Display| unusable(what, path, error);
        let file = File::open(path).map_err(|error| unusable(&error))?;
        let metadata = file.metadata().map_err(|error| unusable(&error))?;
        let (mode, owner) = (metadata.mode() & 0o7777, Uid::from_raw(metadata.uid()));
        // Pipes have no other readers. systemd may let the service's user read a
        // credential by an ACL, which shows as the group's right.
        if metadata.is_file() && !is_credential(path) && !is_private(mode, owner, geteuid()) {
            let error = format!("other users have access to it (mode {mode:04o}, owner {owner})");
            let (file, user) = (path.display(), geteuid());
            let chown = (!owner.is_root() && owner != user).then(|| format!("chown {user} {file}"));
            let chmod = (mode & 0o077 != 0).then(|| format!("chmod 600 {file}"));
            let commands: Vec<_> = chown.into_iter().chain(chmod).collect();
            return Err(unusable(&error).with_hint(format!(
                "run {} (it has to belong to root, or to the user of this process), and make a new \
                 {what} if you do not trust these users; if you cannot change the file, as in a \
                 container, use a pipe (cat {file} | fairbat ... {flag} /dev/stdin), or \
                 LoadCredential= of systemd",
                commands.join(" && ")
            )));
        }
        let mut bytes = Vec::new();
        let read = file.take(MAX_SECRET + 1).read_to_end(&mut bytes);
        read.map_err(|error| unusable(&error))?;
        if bytes.len() as u64 > MAX_SECRET {
            return Err(unusable(&format!("no {what} is larger than 64 KiB")));
        }
        Ok(bytes)
    }
}

/// Whether a file of this mode and owner is readable only by `user`, by root, and by a
/// group that root chose.
fn is_private(mode: u32, owner: Uid, user: Uid) -> bool {
    match owner.is_root() {
        true => mode & 0o027 == 0,
        false => owner == user && mode & 0o077 == 0,
    }
}

/// Whether systemd has put the file there for this service (systemd.exec(5)).
fn is_credential(path: &Path) -> bool {
    let directory = std::env::var_os("CREDENTIALS_DIRECTORY");
    directory.is_some_and(|directory| !directory.is_empty() && path.starts_with(directory))
}

/// How TLS connections are made with these files.
pub(crate) fn tls(files: &TlsFiles) -> Result<Arc<ServerConfig>, TransferError> {
    let chain = certificates(&files.certificate)
        .map_err(|error| unusable("certificate", &files.certificate, &error))?;
    let key = private_key(&files.key)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(chain, key));
    let mut config = config.map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => {
            let certificate = files.certificate.display();
            let other = format!("it is not the key of the first certificate in {certificate}");
            unusable("key", &files.key, &other)
                .with_hint("the server's own certificate comes first in its file")
        }
        // rustls cannot read the key.
        rustls::Error::General(error) => unusable("key", &files.key, &error),
        error => unusable("certificate", &files.certificate, &error),
    })?;
    // One request on a connection at a time is one flow.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TransferError> {
    let unusable = |error: &dyn std::fmt::Display| unusable("key", path, error);
    let text = Secret::KEY.read(path)?;
    // The forms of PKCS #8 (RFC 7468, section 11) and of older openssl.
    let is_encrypted = text.split(|&byte| byte == b'\n').any(|line| {
        line.starts_with(b"-----BEGIN ENCRYPTED") || line.starts_with(b"Proc-Type: 4,ENCRYPTED")
    });
    if is_encrypted {
        return Err(unusable(&"it is encrypted")
            .with_hint("write it without a passphrase: openssl pkey -in FILE -out OTHER"));
    }
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        pem::Error::NoItemsFound => unusable(&"there is no PEM private key in it"),
        error => unusable(&error),
    })
}

fn unusable(what: &str, path: &Path, error: &dyn std::fmt::Display) -> TransferError {
    let message = format!("cannot use the {what} file {}: {error}", path.display());
    TransferError::new(ErrorKind::Other, message)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use http::HeaderValue;

    use super::*;

    fn write(path: &Path, text: &str) {
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
    }

    #[test]
    fn only_the_token_itself_is_accepted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        write(&path, "s3cret~/+=\n");
        let token = Token::read(&path).unwrap();
        for (value, expected) in [
            ("Bearer s3cret~/+=", true),
            ("bearer  s3cret~/+= ", true),
            ("Bearer s3cret~/+", false),
            ("Bearer s3cret~/+==", false),
            ("Bearer ", false),
            ("Bearer", false),
            ("Basic s3cret~/+=", false),
            ("s3cret~/+=", false),
        ] {
            let value_of = HeaderValue::from_static(value);
            let headers = HeaderMap::from_iter([(AUTHORIZATION, value_of)]);
            assert_eq!(token.is_shown(&headers), expected, "{value}");
        }
        assert!(!token.is_shown(&HeaderMap::new()));
        assert_eq!(format!("{token:?}"), "Token(***)");
    }

    #[test]
    fn only_root_may_let_a_group_read_a_secret() {
        let (root, user, other) = (0, 1000, 1001);
        for (mode, owner, expected) in [
            (0o600, user, true),
            (0o400, root, true),
            (0o640, root, true),
            (0o440, root, true),
            (0o640, user, false),
            (0o660, root, false),
            (0o444, root, false),
            (0o604, user, false),
            (0o600, other, false),
        ] {
            let is_private = is_private(mode, Uid::from_raw(owner), Uid::from_raw(user));
            assert_eq!(is_private, expected, "{mode:o} {owner}");
        }
    }

    #[test]
    fn a_secret_has_an_end() {
        let error = Token::read(Path::new("/dev/zero")).unwrap_err();
        assert!(error.message.contains("64 KiB"), "{error:?}");
    }

    #[test]
    fn an_empty_or_odd_token_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        for text in ["", "\n", "two words", "two\nlines", "\u{e4}"] {
            write(&path, text);
            assert!(Token::read(&path).is_err(), "{text:?}");
        }
        let missing = Token::read(&directory.path().join("none")).unwrap_err();
        assert!(missing.message.contains("none"));
    }
}
