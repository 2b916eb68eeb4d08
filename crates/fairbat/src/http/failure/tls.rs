//! Why there is no secure connection, and who can do what about it. Pure.

use rustls::{CertificateError, Error};

/// Whose word a server's certificate is taken on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Authorities {
    /// Those that the system trusts.
    System,
    /// Those that the user named, and no others.
    Named,
}

/// What the certificate verifier says of a certificate that was made as that
/// of an authority. The type is one of a library that rustls does not show.
const CA_AS_SERVER: &str = "CaUsedAsEndEntity";

/// What is wrong, and what to do.
pub(super) fn explain(error: &Error, authorities: Authorities) -> (String, &'static str) {
    let reason = format!("no secure connection: {error}");
    let Error::InvalidCertificate(why) = error else {
        return (
            reason,
            "server and client have no way in common to secure a connection; only the server's \
             owner can change that",
        );
    };
    if is_of_an_authority(why) {
        return (
            format!(
                "no secure connection: the server's certificate is that of an authority \
                 ({CA_AS_SERVER})"
            ),
            "a certificate made as a CA cannot be a server's own; make one with `-addext \
             basicConstraints=critical,CA:FALSE`",
        );
    }
    let hint = match (why, authorities) {
        (
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            _,
        ) => {
            "ask for the server by a name that its certificate has, or get it a certificate with \
             this one (as a subjectAltName)"
        }
        (
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. },
            _,
        ) => "the server needs a new certificate, unless the clock of this machine is wrong",
        (CertificateError::UnknownIssuer | CertificateError::BadSignature, Authorities::System) => {
            "self-signed, or signed by a private certificate authority? then name the file of that \
             certificate, or authority, with --cacert"
        }
        (CertificateError::UnknownIssuer | CertificateError::BadSignature, Authorities::Named) => {
            "no authority in the file that was given has signed it; one that is self-signed has to \
             be in there itself"
        }
        (_, Authorities::System) => {
            "if the server uses a private certificate authority, name its file with --cacert"
        }
        (_, Authorities::Named) => "the server needs another certificate",
    };
    (reason, hint)
}

fn is_of_an_authority(why: &CertificateError) -> bool {
    matches!(why, CertificateError::Other(other) if other.to_string() == CA_AS_SERVER)
}
