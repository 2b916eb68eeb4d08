//! A sender that always has something to send, in its turns.

use std::io;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{sleep_until, timeout_at};

use super::stage::instant;
use super::tcp::ZEROS;
use super::turns::{Turn, Turns};
use crate::clock::Clock;

/// Sends through all turns, then breaks the connection off, so that what is
/// not sent yet is not sent after its time.
pub(super) async fn send(stream: TcpStream, turns: Turns, piece: usize, clock: Clock) {
    loop {
        match turns.at(clock.now()) {
            Turn::On(until) => {
                let sending = send_until(&stream, until, piece, clock);
                // An error is the receiver's, which is gone.
                if let Ok(Err(_)) = timeout_at(instant(clock, until), sending).await {
                    return;
                }
            }
            Turn::Off(until) => sleep_until(instant(clock, until)).await,
            Turn::Over => break,
        }
    }
    // Fails only for what is no connection any more.
    let _ = stream.set_zero_linger();
}

async fn send_until(
    stream: &TcpStream,
    until: Duration,
    piece: usize,
    clock: Clock,
) -> io::Result<()> {
    loop {
        stream.writable().await?;
        // The timer around this is up to 1 ms late.
        if clock.now() >= until {
            return Ok(());
        }
        match stream.try_write(&ZEROS[..piece]) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
    }
}
