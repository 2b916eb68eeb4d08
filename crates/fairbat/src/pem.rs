//! The certificates in a PEM file.

use std::error::Error;
use std::path::Path;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

/// The certificates in a file, in their order; one at least.
///
/// # Errors
/// The file cannot be read, or is no PEM file with a certificate.
pub(crate) fn certificates(
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, Box<dyn Error + Send + Sync>> {
    let text = std::fs::read(path)?;
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&text).collect::<Result<_, _>>()?;
    if certificates.is_empty() {
        return Err("there is no PEM certificate in it".into());
    }
    Ok(certificates)
}
