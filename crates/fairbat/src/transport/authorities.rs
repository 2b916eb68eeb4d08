//! The authorities that the certificates of servers are checked against: those that the user named,
//! or those of the system. The system's are read when a server first shows a certificate: reading
//! them takes as long as a small file, and over plain HTTP nobody needs them.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{self, CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme};
use rustls_platform_verifier::Verifier;

use crate::error::{ErrorKind, TransferError};
use crate::http::NoAuthorities;
use crate::pem;

/// How connections are secured: against the authorities in the PEM file `named`, or those of the
/// system. Clones share the authorities.
///
/// # Errors
/// The file cannot be read, or has no certificate that can be used.
pub(super) fn tls(named: Option<&Path>) -> Result<ClientConfig, TransferError> {
    let provider = Arc::new(crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("ring has the default versions of TLS");
    let config = match named {
        Some(path) => config.with_root_certificates(read(path)?),
        None => config
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(SystemAuthorities {
                provider,
                verifier: Mutex::default(),
            })),
    };
    let mut config = config.with_no_client_auth();
    // One request on a connection at a time is one flow.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn read(path: &Path) -> Result<RootCertStore, TransferError> {
    let failed = |error: &dyn std::fmt::Display| {
        let path = path.display();
        let message = format!("cannot use the certificates in {path}: {error}");
        TransferError::new(ErrorKind::Other, message)
    };
    let mut store = RootCertStore::empty();
    for certificate in pem::certificates(path).map_err(|error| failed(&error))? {
        store.add(certificate).map_err(|error| failed(&error))?;
    }
    Ok(store)
}

/// Checks certificates against the authorities of the system.
#[derive(Debug)]
struct SystemAuthorities {
    provider: Arc<CryptoProvider>,
    /// Empty until a server has shown a certificate.
    verifier: Mutex<Option<Arc<Verifier>>>,
}

impl SystemAuthorities {
    /// Reads the authorities, unless they have been read. Connections that begin at once wait for
    /// the first one to do it.
    fn verifier(&self) -> Result<Arc<Verifier>, rustls::Error> {
        let mut known = self.verifier.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(verifier) = &*known {
            return Ok(Arc::clone(verifier));
        }
        let read = Verifier::new(Arc::clone(&self.provider))
            .map_err(|error| rustls::Error::Other(OtherError(Arc::new(NoAuthorities(error)))))?;
        Ok(Arc::clone(known.insert(Arc::new(read))))
    }

    fn algorithms(&self) -> &WebPkiSupportedAlgorithms {
        &self.provider.signature_verification_algorithms
    }
}

impl ServerCertVerifier for SystemAuthorities {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verifier = self.verifier()?;
        verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        crypto::verify_tls12_signature(message, certificate, signed, self.algorithms())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        crypto::verify_tls13_signature(message, certificate, signed, self.algorithms())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms().supported_schemes()
    }
}
