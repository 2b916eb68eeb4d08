//! Access to the server: the bearer token that requests show (RFC 6750), and the
//! certificate that the server shows.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::error::{ErrorKind, TransferError};

/// The files for HTTPS.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// PEM file with the server's certificate, followed by those that lead to its
    /// authority.
    pub certificate: PathBuf,
    /// PEM file with the private key.
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
    /// Reads a token from a file. White space around it is ignored.
    ///
    /// # Errors
    /// The file cannot be read, other users may read it, or it does not hold one word of
    /// the characters that RFC 6750, section 2.1, allows.
    pub fn read(path: &Path) -> Result<Self, TransferError> {
        let new = "make one: (umask 077; openssl rand -hex 32 > FILE)";
        let cannot_read = |error: io::Error| {
            let unusable = unusable("token", path, &error);
            match error.kind() {
                io::ErrorKind::NotFound => unusable.with_hint(new),
                _ => unusable,
            }
        };
        let mut file = File::open(path).map_err(cannot_read)?;
        let metadata = file.metadata().map_err(cannot_read)?;
        let mode = metadata.mode() & 0o7777;
        // Pipes have no other readers. systemd may let the service's user read a
        // credential by an ACL, which shows as the group's right.
        if metadata.is_file() && mode & 0o077 != 0 && !is_credential(path) {
            let error = format!("other users have access to it (mode {mode:04o})");
            return Err(unusable("token", path, &error).with_hint(format!(
                "run chmod 600 {}, and make a new token if you do not trust these users",
                path.display()
            )));
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(cannot_read)?;
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

    fn of(token: &[u8]) -> Self {
        Self(Sha256::digest(token).into())
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
        scheme.eq_ignore_ascii_case(b"Bearer ")
            && bool::from(Self::of(shown.trim_ascii()).0.ct_eq(&self.0))
    }
}

/// Whether systemd has put the file there for this service (systemd.exec(5)).
fn is_credential(path: &Path) -> bool {
    let directory = std::env::var_os("CREDENTIALS_DIRECTORY");
    directory.is_some_and(|directory| !directory.is_empty() && path.starts_with(directory))
}

/// How TLS connections are made with these files.
pub(crate) fn tls(files: &TlsFiles) -> Result<Arc<ServerConfig>, TransferError> {
    let chain = certificates(&files.certificate)?;
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

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TransferError> {
    let unusable = |error: &dyn std::fmt::Display| unusable("certificate", path, error);
    let text = std::fs::read(path).map_err(|error| unusable(&error))?;
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<_, _>>()
        .map_err(|error| unusable(&error))?;
    if chain.is_empty() {
        return Err(unusable(&"there is no PEM certificate in it"));
    }
    Ok(chain)
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TransferError> {
    let unusable = |error: &dyn std::fmt::Display| unusable("key", path, error);
    let text = std::fs::read(path).map_err(|error| unusable(&error))?;
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
