//! One connection of a client to a [`super::FaultProxy`]: each request on its
//! way to the server, the answer on its way back, and what spoils them.

use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use socket2::SockRef;

use super::fault::{Exchange, Fault, Shared};
use super::relay::{Body, Broken, Head};
use crate::message::{End, Reply, Waiting, is_timeout, peek_request};

/// Longest time for which either side may do nothing.
const PATIENCE: Duration = Duration::from_secs(120);

/// What happens to the client's connection after an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    KeepAlive,
    Close,
    Reset,
    Hold,
}

/// The server's answer, whose body is still to come.
struct Answer {
    head: Head,
    status: u16,
    body: Body,
    from: BufReader<TcpStream>,
    /// It came before the server had taken all of the request.
    early: bool,
}

/// Carries the requests of one connection until either side ends it.
pub(super) fn serve(mut client: TcpStream, shared: &Shared) -> io::Result<()> {
    client.set_nodelay(true)?;
    client.set_write_timeout(Some(PATIENCE))?;
    while let Some(Waiting { request, length }) = peek_request(&client, || shared.stopped()) {
        client.set_read_timeout(Some(PATIENCE))?;
        let mut head = vec![0; length];
        client.read_exact(&mut head)?;
        let mut head = Head::read(&mut head.as_slice())?;
        if head.remove("expect") {
            client.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let fault = shared.fault_for(&request);
        let exchange = Exchange {
            method: request.method,
            target: request.target,
            headers: request.headers,
            body_bytes: 0,
            at: shared.started.elapsed(),
            status: None,
        };
        let after = match &fault {
            Some(Fault::Answer(reply)) => answer(&mut client, shared, &head, exchange, reply)?,
            fault => carry(&mut client, shared, &head, exchange, fault.as_ref())?,
        };
        match after {
            After::KeepAlive => {}
            After::Close => return close(&mut client),
            // Closing without lingering resets.
            After::Reset => return SockRef::from(&client).set_linger(Some(Duration::ZERO)),
            After::Hold => return hold(&client, shared),
        }
    }
    Ok(())
}

/// Answers in place of the server.
fn answer(
    client: &mut TcpStream,
    shared: &Shared,
    head: &Head,
    mut exchange: Exchange,
    reply: &Reply,
) -> io::Result<After> {
    let head_only = exchange.method == "HEAD";
    let count = &mut exchange.body_bytes;
    let taken = head
        .request_body()
        .pass(client, &mut io::sink(), u64::MAX, count);
    shared.record(exchange);
    if taken.is_err() {
        return Ok(After::Reset);
    }
    reply.send(client, head_only, &mut None::<()>)?;
    Ok(match reply.ending() {
        End::KeepAlive if head.keeps_alive() => After::KeepAlive,
        End::KeepAlive | End::Close(_) => After::Close,
        End::Reset(_) => After::Reset,
        End::Stall(_) => After::Hold,
    })
}

/// Asks the server and tells the client what it answers, spoiled by a fault.
fn carry(
    client: &mut TcpStream,
    shared: &Shared,
    head: &Head,
    mut exchange: Exchange,
    fault: Option<&Fault>,
) -> io::Result<After> {
    let answer = ask(client, shared, head, &mut exchange, fault);
    let Some(mut answer) = answer else {
        shared.record(exchange);
        return Ok(match fault {
            Some(Fault::StallRequest(_)) => After::Hold,
            _ => After::Reset,
        });
    };
    exchange.status = Some(answer.status);
    // Before the client can know.
    shared.record(exchange);
    let limit = match fault {
        Some(Fault::CutResponse(after) | Fault::StallResponse(after)) => *after,
        _ => u64::MAX,
    };
    if let Some(Fault::Header(name, value)) = fault {
        answer.head.replace(name, value);
    }
    answer.head.write(client)?;
    let passed = answer.body.pass(&mut answer.from, client, limit, &mut 0);
    let ends = answer.early
        || answer.body == Body::UntilClose
        || !answer.head.keeps_alive()
        || !head.keeps_alive();
    Ok(match passed {
        Err(_) => After::Reset,
        Ok(()) if matches!(fault, Some(Fault::CutResponse(_))) => After::Reset,
        Ok(()) if matches!(fault, Some(Fault::StallResponse(_))) => After::Hold,
        Ok(()) if ends => After::Close,
        Ok(()) => After::KeepAlive,
    })
}

/// Brings a request to the server. `None`: there is no answer, or none that
/// the client may know of.
fn ask(
    client: &mut TcpStream,
    shared: &Shared,
    head: &Head,
    exchange: &mut Exchange,
    fault: Option<&Fault>,
) -> Option<Answer> {
    match fault {
        Some(Fault::Delay(time)) => std::thread::sleep(*time),
        Some(Fault::First(action)) => action.act(),
        _ => {}
    }
    let mut server = TcpStream::connect(shared.server).ok()?;
    server.set_nodelay(true).ok()?;
    server.set_read_timeout(Some(PATIENCE)).ok()?;
    server.set_write_timeout(Some(PATIENCE)).ok()?;
    head.write(&mut server).ok()?;
    let limit = match fault {
        Some(Fault::CutRequest(after) | Fault::StallRequest(after)) => *after,
        _ => u64::MAX,
    };
    let count = &mut exchange.body_bytes;
    let early = match head.request_body().pass(client, &mut server, limit, count) {
        Ok(()) => false,
        Err(Broken::Source) => return None,
        // It may have said why it wants no more.
        Err(Broken::Sink) => true,
    };
    if matches!(fault, Some(Fault::CutRequest(_) | Fault::StallRequest(_))) {
        return None;
    }
    let mut answer = receive(server, &exchange.method, early)?;
    if matches!(fault, Some(Fault::LoseResponse)) {
        // To its end: then the server is done.
        let body = answer.body;
        let _ = body.pass(&mut answer.from, &mut io::sink(), u64::MAX, &mut 0);
        return None;
    }
    Some(answer)
}

/// The head of the final answer.
fn receive(server: TcpStream, method: &str, early: bool) -> Option<Answer> {
    let mut from = BufReader::new(server);
    loop {
        let head = Head::read(&mut from).ok()?;
        let status = head.status().ok()?;
        if status >= 200 {
            let body = head.response_body(method);
            return Some(Answer {
                head,
                status,
                body,
                from,
                early,
            });
        }
    }
}

/// Closes a connection after an answer. What the client is still sending is
/// taken first, for a close with unread data would be a reset.
fn close(client: &mut TcpStream) -> io::Result<()> {
    client.shutdown(Shutdown::Write)?;
    io::copy(client, &mut io::sink())?;
    Ok(())
}

/// Keeps a connection open and silent until the client closes it.
fn hold(client: &TcpStream, shared: &Shared) -> io::Result<()> {
    client.set_read_timeout(Some(Duration::from_millis(50)))?;
    let begin = Instant::now();
    while !shared.stopped() && begin.elapsed() < PATIENCE {
        match client.peek(&mut [0]) {
            Ok(0) => return Ok(()),
            Ok(_) => std::thread::sleep(Duration::from_millis(5)),
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
