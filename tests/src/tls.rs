//! Certificates for a test's own TLS server.

use std::fs;
use std::path::{Path, PathBuf};

use crate::secret::write_secret;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

/// The name of an authority's certificate.
const AUTHORITY: &str = "authority.pem";

/// Files of a certificate authority and of one server certificate it signed.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The authority's certificate, PEM: what `--cacert` takes.
    pub authority: PathBuf,
    /// The server's certificate, PEM.
    pub certificate: PathBuf,
    /// The server's private key, PEM.
    pub key: PathBuf,
}

impl Identity {
    /// A new authority and a certificate for these names and addresses, valid
    /// until the last day of year `until`, written into `directory`.
    #[must_use]
    pub fn issue(directory: &Path, names: &[&str], until: i32) -> Self {
        let authority_key = KeyPair::generate().expect("a key");
        let mut authority = CertificateParams::new(Vec::new()).expect("no names");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        authority
            .distinguished_name
            .push(DnType::CommonName, "Test authority");
        let authority_certificate = authority.self_signed(&authority_key).expect("self-signed");

        let key = KeyPair::generate().expect("a key");
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        let mut server = CertificateParams::new(names).expect("valid names");
        server
            .distinguished_name
            .push(DnType::CommonName, "Test server");
        server.not_after = rcgen::date_time_ymd(until, 12, 31);
        let certificate = server
            .signed_by(&key, &Issuer::new(authority, authority_key))
            .expect("signed");

        let write = |name: &str, pem: String| {
            let path = directory.join(name);
            write_secret(&path, &pem);
            path
        };
        Self {
            authority: write(AUTHORITY, authority_certificate.pem()),
            certificate: write("server.pem", certificate.pem()),
            key: write("server.key", key.serialize_pem()),
        }
    }

    /// Where [`Self::issue`] has put the authority's certificate in this directory.
    #[must_use]
    pub fn authority_in(directory: &Path) -> PathBuf {
        directory.join(AUTHORITY)
    }

    /// A certificate for this machine that signed itself, and is its own
    /// authority; made as that of an authority, as `openssl req -x509` does it,
    /// or as that of a server.
    #[must_use]
    pub fn self_signed(directory: &Path, is_ca: bool) -> Self {
        let key = KeyPair::generate().expect("a key");
        let names = ["localhost", "127.0.0.1"].map(str::to_owned);
        let mut params = CertificateParams::new(names).expect("valid names");
        params
            .distinguished_name
            .push(DnType::CommonName, "Test itself");
        params.is_ca = if is_ca {
            IsCa::Ca(BasicConstraints::Unconstrained)
        } else {
            IsCa::ExplicitNoCa
        };
        let certificate = directory.join("self.pem");
        let signed = params.self_signed(&key).expect("self-signed");
        fs::write(&certificate, signed.pem()).expect("write a PEM file");
        let key_file = directory.join("self.key");
        write_secret(&key_file, &key.serialize_pem());
        Self {
            authority: certificate.clone(),
            certificate,
            key: key_file,
        }
    }
}
