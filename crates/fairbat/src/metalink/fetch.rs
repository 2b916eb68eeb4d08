//! Fetches a Metalink.

use url::Url;

use super::read::parse;
use super::{MAX_LENGTH, MetalinkFile};
use crate::error::{ErrorKind, TransferError};
use crate::http::Failure;
use crate::settings::HttpSettings;
use crate::transport::{HttpClient, ReceiveWindow, SourceUrl, Tap};

/// Fetches a Metalink and parses it. A failure is not tried again.
///
/// # Errors
/// There is none, or it cannot be used.
pub async fn fetch(http: &HttpSettings, url: &Url) -> Result<Vec<MetalinkFile>, TransferError> {
    let client = HttpClient::new(http, 1, Tap::Receive(ReceiveWindow::default()))?;
    let at = SourceUrl::named(url.clone());
    let document = document(&client, &at).await;
    let document = document.map_err(|failure| failure.into_error("check the URL"))?;
    parse(&document).map_err(|error| {
        let message = format!("the server sent no Metalink that can be used: {error}");
        TransferError::new(ErrorKind::Refused, message)
    })
}

/// The Metalink that a server says describes a file.
pub(crate) async fn described(client: &HttpClient, at: &SourceUrl) -> Option<Vec<MetalinkFile>> {
    let document = document(client, at).await.ok()?;
    parse(&document)
        .inspect_err(|error| tracing::debug!(%error, "a Metalink of a server is not used"))
        .ok()
}

async fn document(client: &HttpClient, at: &SourceUrl) -> Result<Vec<u8>, Failure> {
    let probe = client.whole(at, None).await?;
    let mut body = probe
        .body
        .ok_or_else(|| Failure::server("the answer has no body"))?;
    let mut document = Vec::new();
    while let Some(piece) = body.next().await? {
        document.extend_from_slice(&piece);
        if document.len() > MAX_LENGTH {
            break;
        }
    }
    Ok(document)
}
