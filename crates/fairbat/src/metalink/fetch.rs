//! Fetches a Metalink.

use url::Url;

use super::read::parse;
use super::{MAX_LENGTH, MetalinkFile};
use crate::error::{ErrorKind, TransferError};
use crate::http::Failure;
use crate::settings::HttpSettings;
use crate::transport::{HttpClient, ReceiveWindow, SourceUrl, Tap};

/// Largest Metalink that is fetched because a server names it, bytes. It has the hashes of some ten
/// thousand pieces.
const MAX_DESCRIBED: usize = 4 << 20;

/// Fetches a Metalink and parses it. A failure is not tried again.
///
/// # Errors
/// There is none, or it cannot be used.
pub async fn fetch(http: &HttpSettings, url: &Url) -> Result<Vec<MetalinkFile>, TransferError> {
    let client = HttpClient::new(http, 1, Tap::Receive(ReceiveWindow::default()))?;
    let at = SourceUrl::named(url.clone());
    let document = document(&client, &at, MAX_LENGTH).await;
    let document = document.map_err(|failure| failure.into_error("check the URL"))?;
    parse(&document).map_err(|error| {
        let message = format!("the server sent no Metalink that can be used: {error}");
        TransferError::new(ErrorKind::Refused, message)
    })
}

/// The Metalink that a server says describes a file.
pub(crate) async fn described(client: &HttpClient, at: &SourceUrl) -> Option<Vec<MetalinkFile>> {
    let document = document(client, at, MAX_DESCRIBED).await.ok()?;
    parse(&document)
        .inspect_err(|error| tracing::debug!(%error, "a Metalink of a server is not used"))
        .ok()
}

async fn document(client: &HttpClient, at: &SourceUrl, most: usize) -> Result<Vec<u8>, Failure> {
    let probe = client.whole(at, None).await?;
    let mut body = probe
        .body
        .ok_or_else(|| Failure::server("the answer has no body"))?;
    let mut document = Vec::new();
    while let Some(piece) = body.next().await? {
        document.extend_from_slice(&piece);
        if document.len() > most {
            // It is cut, and no XML.
            break;
        }
    }
    Ok(document)
}
