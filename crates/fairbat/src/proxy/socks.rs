//! SOCKS5 (RFC 1928), with user name and password (RFC 1929): the token is the password.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::access::Refused;
use super::site::{PATIENCE, ProxySite};
use super::upstream::{UpstreamError, relay};

/// The version of the protocol, and so the first byte of a connection.
pub(super) const VERSION: u8 = 5;

/// Methods of authentication (RFC 1928, section 3).
mod method {
    pub(super) const NONE: u8 = 0;
    pub(super) const PASSWORD: u8 = 2;
    pub(super) const UNACCEPTABLE: u8 = 0xff;
}

/// The version of the negotiation of a password (RFC 1929, section 2).
const PASSWORD_VERSION: u8 = 1;

/// The command to connect (RFC 1928, section 4).
const CONNECT: u8 = 1;

/// Replies (RFC 1928, section 6).
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
enum Reply {
    Succeeded = 0,
    NotAllowed = 2,
    HostUnreachable = 4,
    ConnectionRefused = 5,
    CommandNotSupported = 7,
    AddressNotSupported = 8,
}

/// Serves a client that speaks it.
///
/// # Errors
/// It does not keep to the protocol, or its connection breaks.
pub(super) async fn serve(
    mut stream: TcpStream,
    client: IpAddr,
    site: &ProxySite,
) -> Result<(), String> {
    let asked = timeout(PATIENCE, negotiate(&mut stream, client, site)).await;
    let asked = asked.map_err(|_| "it is silent".to_owned())?;
    let Some((host, port)) = asked? else {
        return Ok(());
    };
    match site.upstream.dial(&host, port, client).await {
        Ok(mut server) => {
            reply(&mut stream, Reply::Succeeded).await?;
            relay(&mut stream, &mut server).await;
            Ok(())
        }
        Err(error) => {
            tracing::info!(%client, %error, "not connected");
            site.refusals.not_connected(&error);
            let said = match error {
                UpstreamError::Private(_) => Reply::NotAllowed,
                UpstreamError::Refused(..) => Reply::ConnectionRefused,
                UpstreamError::Unknown(..) | UpstreamError::Silent(_) => Reply::HostUnreachable,
            };
            reply(&mut stream, said).await
        }
    }
}

/// Finds out where the client wants to go; `None` if it has been refused.
async fn negotiate(
    stream: &mut TcpStream,
    client: IpAddr,
    site: &ProxySite,
) -> Result<Option<(String, u16)>, String> {
    let [_, count] = read(stream).await?;
    let methods = read_bytes(stream, count).await?;
    let wanted = match site.access.has_token() {
        true => method::PASSWORD,
        false => method::NONE,
    };
    let is_known = site.access.knows(client);
    if !is_known || !methods.contains(&wanted) {
        let why = if is_known {
            Refused::Token
        } else {
            Refused::Network
        };
        site.refusals.refused(why);
        write(stream, &[VERSION, method::UNACCEPTABLE]).await?;
        return Ok(None);
    }
    write(stream, &[VERSION, wanted]).await?;
    if wanted == method::PASSWORD {
        let [_, user] = read(stream).await?;
        read_bytes(stream, user).await?;
        let [length] = read(stream).await?;
        let password = read_bytes(stream, length).await?;
        let is_right = site.access.accepts(Some(&password));
        write(stream, &[PASSWORD_VERSION, u8::from(!is_right)]).await?;
        if !is_right {
            site.refusals.refused(Refused::Token);
            return Ok(None);
        }
    }
    let [version, command, _, kind] = read(stream).await?;
    if version != VERSION {
        return Err("it has changed its version".to_owned());
    }
    let host = match kind {
        1 => Ipv4Addr::from(read::<4>(stream).await?).to_string(),
        3 => {
            let [length] = read(stream).await?;
            let name = read_bytes(stream, length).await?;
            String::from_utf8(name).map_err(|_| "it names no host".to_owned())?
        }
        4 => Ipv6Addr::from(read::<16>(stream).await?).to_string(),
        _ => {
            reply(stream, Reply::AddressNotSupported).await?;
            return Ok(None);
        }
    };
    let port = u16::from_be_bytes(read(stream).await?);
    if command != CONNECT {
        reply(stream, Reply::CommandNotSupported).await?;
        return Ok(None);
    }
    Ok(Some((host, port)))
}

async fn read<const N: usize>(stream: &mut TcpStream) -> Result<[u8; N], String> {
    let mut bytes = [0; N];
    stream
        .read_exact(&mut bytes)
        .await
        .map_err(|error| error.to_string())?;
    Ok(bytes)
}

async fn read_bytes(stream: &mut TcpStream, count: u8) -> Result<Vec<u8>, String> {
    let mut bytes = vec![0; count.into()];
    stream
        .read_exact(&mut bytes)
        .await
        .map_err(|error| error.to_string())?;
    Ok(bytes)
}

async fn write(stream: &mut TcpStream, bytes: &[u8]) -> Result<(), String> {
    stream
        .write_all(bytes)
        .await
        .map_err(|error| error.to_string())
}

/// The address in a reply is of no use to anybody: all zeros.
async fn reply(stream: &mut TcpStream, reply: Reply) -> Result<(), String> {
    write(stream, &[VERSION, reply as u8, 0, 1, 0, 0, 0, 0, 0, 0]).await
}
