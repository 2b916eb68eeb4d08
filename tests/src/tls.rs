//! Certificates for a test's own TLS server.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

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
            fs::write(&path, pem).expect("write a PEM file");
            path
        };
        Self {
            authority: write("authority.pem", authority_certificate.pem()),
            certificate: write("server.pem", certificate.pem()),
            key: write("server.key", key.serialize_pem()),
        }
    }
}
