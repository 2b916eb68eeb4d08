//! A client and a server of bare QUIC, as quinn's own examples are: quinn as it comes, a request of
//! one line, one stream, no HTTP. What HTTP/3 costs is compared with it.

use std::error::Error;
use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Connection, Endpoint, ServerConfig, VarInt};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::runtime::{Builder, Runtime};

use fairbat_tests::tls::Identity;

/// What makes `bench` the client.
pub const CLIENT: &str = "bare-quic";

/// The name in the certificate.
const HOST: &str = "localhost";

/// Longest request, bytes.
const MAX_REQUEST: usize = 4096;

fn runtime() -> std::io::Result<Runtime> {
    Builder::new_multi_thread().enable_all().build()
}

/// Serves the files of a directory until this process ends.
pub(super) fn serve(site: &Path, identity: &Identity) -> SocketAddr {
    let chain = CertificateDer::pem_file_iter(&identity.certificate).and_then(Iterator::collect);
    let chain: Vec<_> = chain.expect("the certificate");
    let key = PrivateKeyDer::from_pem_file(&identity.key).expect("its key");
    let config = ServerConfig::with_single_cert(chain, key).expect("a usable certificate");
    let runtime = runtime().expect("a runtime");
    let address = (Ipv4Addr::LOCALHOST, 0).into();
    let bound = runtime.block_on(async { Endpoint::server(config, address) });
    let endpoint = bound.expect("a socket");
    let bound = endpoint.local_addr().expect("its address");
    let site = site.to_owned();
    thread::spawn(move || {
        runtime.block_on(async {
            while let Some(incoming) = endpoint.accept().await {
                let site = site.clone();
                tokio::spawn(async move {
                    if let Ok(connection) = incoming.await {
                        answer(&connection, &site).await;
                    }
                });
            }
        });
    });
    bound
}

/// Answers requests until the client closes the connection.
async fn answer(connection: &Connection, site: &Path) {
    while let Ok((mut sending, mut receiving)) = connection.accept_bi().await {
        let request = receiving.read_to_end(MAX_REQUEST).await;
        let name = String::from_utf8(request.expect("a request")).expect("a name");
        let file = fs::read(site.join(name)).expect("a file that is served");
        sending.write_all(&file).await.expect("a client that reads");
        sending.finish().expect("an open stream");
    }
}

/// What the client needs to know.
#[derive(Debug)]
pub struct Client {
    /// Of the server.
    pub address: SocketAddr,
    /// The authority of its certificate, PEM.
    pub authority: PathBuf,
    /// The file it shall send.
    pub name: String,
    /// Where the file is written to.
    pub output: PathBuf,
}

impl Client {
    /// Of an address, an authority, a name and an output, as on a command line.
    ///
    /// # Errors
    /// Another number of words, or no address.
    pub fn parse(words: &[String]) -> Result<Self, Box<dyn Error>> {
        let [address, authority, name, output] = words else {
            return Err("ADDRESS AUTHORITY NAME OUTPUT are needed".into());
        };
        Ok(Self {
            address: address.parse()?,
            authority: authority.into(),
            name: name.clone(),
            output: output.into(),
        })
    }

    /// Fetches the file.
    ///
    /// # Errors
    /// Whatever goes wrong.
    pub fn fetch(&self) -> Result<(), Box<dyn Error>> {
        runtime()?.block_on(self.receive())
    }

    async fn receive(&self) -> Result<(), Box<dyn Error>> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(&self.authority)?)?;
        let tls = rustls::ClientConfig::builder_with_provider(Arc::new(
            rustls::crypto::ring::default_provider(),
        ))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
        let mut endpoint = Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into())?;
        let tls = QuicClientConfig::try_from(tls)?;
        endpoint.set_default_client_config(ClientConfig::new(Arc::new(tls)));
        let connection = endpoint.connect(self.address, HOST)?.await?;
        let (mut sending, mut receiving) = connection.open_bi().await?;
        sending.write_all(self.name.as_bytes()).await?;
        sending.finish()?;
        let mut output = fs::File::create(&self.output)?;
        while let Some(chunk) = receiving.read_chunk(usize::MAX, true).await? {
            output.write_all(&chunk.bytes)?;
        }
        connection.close(VarInt::from_u32(0), b"");
        endpoint.wait_idle().await;
        Ok(())
    }
}
