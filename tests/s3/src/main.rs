//! An S3 server of a test's own: `s3_server ROOT WHERE ACCESS_KEY SECRET_KEY`.
//!
//! Serves s3s-fs to whoever signs with these keys: a bucket is a directory in
//! ROOT, an object a file in it. WHERE is a port of 127.0.0.1, or ADDRESS:PORT;
//! port 0 is any free one, and the URL is the line on standard output. Serves
//! until it is killed.

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s_fs::FileSystem;
use tokio::net::TcpListener;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let [root, place, access_key, secret_key] = args.as_slice() else {
        return Err("usage: s3_server ROOT WHERE ACCESS_KEY SECRET_KEY".into());
    };
    let root = FileSystem::new(root).map_err(|error| format!("{}: {error:?}", root.display()))?;
    let mut service = S3ServiceBuilder::new(root);
    service.set_auth(SimpleAuth::from_single(
        text(access_key)?,
        text(secret_key)?,
    ));
    serve(address(text(place)?)?, &service.build())?;
    Ok(())
}

/// Where WHERE is.
fn address(place: &str) -> Result<SocketAddr, Box<dyn std::error::Error>> {
    match place.parse::<u16>() {
        Ok(port) => Ok((Ipv4Addr::LOCALHOST, port).into()),
        Err(_) => Ok(place.parse()?),
    }
}

fn text(arg: &OsString) -> Result<&str, &'static str> {
    arg.to_str().ok_or("an argument is no UTF-8")
}

#[tokio::main]
async fn serve(address: SocketAddr, service: &S3Service) -> io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    println!("http://{}", listener.local_addr()?);
    io::stdout().flush()?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .serve_connection(TokioIo::new(stream), service.clone());
        // A client may hang up whenever it likes.
        tokio::spawn(async { drop(connection.await) });
    }
}
