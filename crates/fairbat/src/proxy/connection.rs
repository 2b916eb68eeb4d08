//! One connection of a client: its first byte tells the protocol.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::time::timeout;

use super::site::{PATIENCE, ProxySite};
use super::{http, socks};

/// Serves one client until its connection ends.
pub(super) async fn serve(stream: TcpStream, client: SocketAddr, site: Arc<ProxySite>) {
    let mut first = [0];
    let Ok(Ok(1)) = timeout(PATIENCE, stream.peek(&mut first)).await else {
        return;
    };
    // Small pieces wait at the server already, if at all.
    let _ = stream.set_nodelay(true);
    let client = client.ip();
    let served = match first[0] {
        socks::VERSION => socks::serve(stream, client, &site).await,
        _ => http::serve(stream, client, site).await,
    };
    if let Err(error) = served {
        tracing::debug!(%client, error, "a client's connection broke");
    }
}
