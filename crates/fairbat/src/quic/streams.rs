//! HTTP/3's view of a QUIC connection: the streams of quinn behind the traits of h3, each with a
//! priority.
//!
//! A stream that is dropped before its end is reset. quinn would finish it, and half an upload
//! would look whole.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use dalbe::quic::QuicReceiver;
use h3::error::Code;
use h3::quic::{
    self, ConnectionErrorIncoming as ConnectionError, StreamErrorIncoming as StreamError, StreamId,
    WriteBuf,
};
use quinn::{ReadError, VarInt, WriteError};

use super::frames::{Frames, WrongFrame};

/// Streams that were opened, or will be.
type Opening<T> = Pin<Box<dyn Future<Output = Result<T, quinn::ConnectionError>> + Send + Sync>>;

type Both = (quinn::SendStream, quinn::RecvStream);

/// Most that is read at once, bytes: the largest datagram that quinn takes. What waits long is put
/// together, and would count as a packet of megabytes.
const MAX_PIECE: usize = 1472;

/// Pieces of a stream that may wait for an earlier one: with packets of 1200 bytes, those of a
/// second at half a gigabit.
const MAX_AHEAD: usize = 65_536;

/// The order in which streams send, by their number: higher ones first, 0 if it is not known.
#[derive(Debug, Clone, Default)]
pub(crate) struct Priorities(Arc<Mutex<HashMap<StreamId, i32>>>);

impl Priorities {
    /// Sets the priority of a stream for what it sends from now on.
    pub(crate) fn set(&self, stream: StreamId, priority: i32) {
        self.known().insert(stream, priority);
    }

    fn of(&self, stream: StreamId) -> i32 {
        self.known().get(&stream).copied().unwrap_or_default()
    }

    fn forget(&self, stream: StreamId) {
        self.known().remove(&stream);
    }

    fn known(&self) -> MutexGuard<'_, HashMap<StreamId, i32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A QUIC connection as h3 wants it.
pub(crate) struct Streams {
    connection: quinn::Connection,
    priorities: Priorities,
    /// What hears of what comes, where a receive window is held.
    receiver: Option<QuicReceiver>,
    opening: Option<Opening<Both>>,
    opening_send: Option<Opening<quinn::SendStream>>,
    accepting: Option<Opening<Both>>,
    accepting_receive: Option<Opening<quinn::RecvStream>>,
}

impl Streams {
    /// The `receiver` hears of what comes.
    pub(crate) fn new(
        connection: quinn::Connection,
        priorities: Priorities,
        receiver: Option<QuicReceiver>,
    ) -> Self {
        Self {
            connection,
            priorities,
            receiver,
            opening: None,
            opening_send: None,
            accepting: None,
            accepting_receive: None,
        }
    }

    fn both(&self, (send, receive): Both) -> Stream {
        Stream {
            sending: Sending::new(send, self.priorities.clone()),
            receiving: Receiving::new(receive, self.receiver.clone(), true),
        }
    }
}

/// Another view of the same connection, which waits for nothing yet.
impl Clone for Streams {
    fn clone(&self) -> Self {
        Self::new(
            self.connection.clone(),
            self.priorities.clone(),
            self.receiver.clone(),
        )
    }
}

/// Polls what `slot` waits for, which `begin` begins if nothing does.
fn poll_opening<T>(
    slot: &mut Option<Opening<T>>,
    context: &mut Context<'_>,
    begin: impl FnOnce() -> Opening<T>,
) -> Poll<Result<T, quinn::ConnectionError>> {
    let opened = ready!(slot.get_or_insert_with(begin).as_mut().poll(context));
    *slot = None;
    Poll::Ready(opened)
}

impl quic::OpenStreams<Bytes> for Streams {
    type BidiStream = Stream;
    type SendStream = Sending;

    fn poll_open_bidi(&mut self, context: &mut Context<'_>) -> Poll<Result<Stream, StreamError>> {
        let connection = &self.connection;
        let begin = || -> Opening<_> {
            let connection = connection.clone();
            Box::pin(async move { connection.open_bi().await })
        };
        let opened = ready!(poll_opening(&mut self.opening, context, begin));
        Poll::Ready(opened.map(|both| self.both(both)).map_err(broken))
    }

    fn poll_open_send(&mut self, context: &mut Context<'_>) -> Poll<Result<Sending, StreamError>> {
        let connection = &self.connection;
        let begin = || -> Opening<_> {
            let connection = connection.clone();
            Box::pin(async move { connection.open_uni().await })
        };
        let opened = ready!(poll_opening(&mut self.opening_send, context, begin));
        let priorities = self.priorities.clone();
        let opened = opened.map(|stream| Sending::new(stream, priorities));
        Poll::Ready(opened.map_err(broken))
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.connection.close(number(code.value()), reason);
    }
}

impl quic::Connection<Bytes> for Streams {
    type RecvStream = Receiving;
    type OpenStreams = Self;

    fn poll_accept_recv(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Receiving, ConnectionError>> {
        let connection = &self.connection;
        let begin = || -> Opening<_> {
            let connection = connection.clone();
            Box::pin(async move { connection.accept_uni().await })
        };
        let accepted = ready!(poll_opening(&mut self.accepting_receive, context, begin));
        let accepted = accepted.map(|stream| Receiving::new(stream, self.receiver.clone(), false));
        Poll::Ready(accepted.map_err(lost))
    }

    fn poll_accept_bidi(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Stream, ConnectionError>> {
        let connection = &self.connection;
        let begin = || -> Opening<_> {
            let connection = connection.clone();
            Box::pin(async move { connection.accept_bi().await })
        };
        let accepted = ready!(poll_opening(&mut self.accepting, context, begin));
        Poll::Ready(accepted.map(|both| self.both(both)).map_err(lost))
    }

    fn opener(&self) -> Self {
        self.clone()
    }
}

/// Both directions of a stream.
pub(crate) struct Stream {
    sending: Sending,
    receiving: Receiving,
}

impl quic::BidiStream<Bytes> for Stream {
    type SendStream = Sending;
    type RecvStream = Receiving;

    fn split(self) -> (Sending, Receiving) {
        (self.sending, self.receiving)
    }
}

impl quic::SendStream<Bytes> for Stream {
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        self.sending.poll_ready(context)
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamError> {
        self.sending.send_data(data)
    }

    fn poll_finish(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        self.sending.poll_finish(context)
    }

    fn reset(&mut self, code: u64) {
        self.sending.reset(code);
    }

    fn send_id(&self) -> StreamId {
        self.sending.send_id()
    }
}

impl quic::RecvStream for Stream {
    type Buf = Bytes;

    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamError>> {
        self.receiving.poll_data(context)
    }

    fn stop_sending(&mut self, code: u64) {
        self.receiving.stop_sending(code);
    }

    fn recv_id(&self) -> StreamId {
        self.receiving.recv_id()
    }
}

/// What is sent over a stream.
pub(crate) struct Sending {
    stream: quinn::SendStream,
    priorities: Priorities,
    priority: i32,
    /// What does not fit into the connection's buffer yet.
    waiting: Option<WriteBuf<Bytes>>,
    has_ended: bool,
}

impl Sending {
    fn new(stream: quinn::SendStream, priorities: Priorities) -> Self {
        Self {
            stream,
            priorities,
            priority: 0,
            waiting: None,
            has_ended: false,
        }
    }
}

impl quic::SendStream<Bytes> for Sending {
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        while let Some(data) = self
            .waiting
            .as_mut()
            .filter(|data| Buf::has_remaining(*data))
        {
            let written = Pin::new(&mut self.stream).poll_write(context, data.chunk());
            match ready!(written) {
                Ok(bytes) => data.advance(bytes),
                Err(error) => {
                    self.has_ended = true;
                    return Poll::Ready(Err(not_written(error)));
                }
            }
        }
        self.waiting = None;
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamError> {
        let wanted = self.priorities.of(self.send_id());
        if wanted != self.priority {
            // It fails only after the end.
            let _ = self.stream.set_priority(wanted);
            self.priority = wanted;
        }
        self.waiting = Some(data.into());
        Ok(())
    }

    fn poll_finish(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        self.has_ended = true;
        // The other end has stopped it: what it says tells more.
        let _ = self.stream.finish();
        Poll::Ready(Ok(()))
    }

    fn reset(&mut self, code: u64) {
        self.has_ended = true;
        let _ = self.stream.reset(number(code));
    }

    fn send_id(&self) -> StreamId {
        id(self.stream.id())
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.priorities.forget(id(self.stream.id()));
        if !self.has_ended {
            let code = Code::H3_REQUEST_CANCELLED.value();
            let _ = self.stream.reset(number(code));
        }
    }
}

/// What comes over a stream.
pub(crate) struct Receiving {
    stream: quinn::RecvStream,
    receiver: Option<QuicReceiver>,
    /// Of other streams, only a few bytes are ever left unread.
    is_message: bool,
    /// Up to here it was handed on.
    next: u64,
    /// What has come beyond a hole, by where it begins. It is taken from the connection at once,
    /// so that the sender's credit does not wait for what was lost. Where no window is held, it
    /// stays there.
    ahead: BTreeMap<u64, Bytes>,
    frames: Frames,
    has_ended: bool,
}

impl Receiving {
    fn new(stream: quinn::RecvStream, receiver: Option<QuicReceiver>, is_message: bool) -> Self {
        Self {
            stream,
            receiver,
            is_message,
            next: 0,
            ahead: BTreeMap::new(),
            frames: match is_message {
                true => Frames::of_message(),
                false => Frames::of_other(),
            },
            has_ended: false,
        }
    }

    /// Nobody reads the rest.
    fn stop(&mut self, code: u64) {
        self.has_ended = true;
        let _ = self.stream.stop(number(code));
        self.lose();
    }

    fn lose(&self) {
        if let Some(receiver) = self.receiver.as_ref().filter(|_| self.is_message) {
            receiver.lose();
        }
    }

    /// Takes no more of a stream whose frames are wrong.
    fn refuse(&mut self, wrong: WrongFrame) -> StreamError {
        if !self.has_ended {
            self.stop(Code::H3_EXCESSIVE_LOAD.value());
        }
        StreamError::Unknown(Box::new(wrong))
    }

    /// The next bytes, if they are there.
    fn take(&mut self) -> Option<Bytes> {
        let first = self.ahead.first_entry();
        let piece = first.filter(|first| *first.key() == self.next)?.remove();
        self.next += piece.len() as u64;
        Some(piece)
    }
}

impl quic::RecvStream for Receiving {
    type Buf = Bytes;

    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamError>> {
        loop {
            if let Some(piece) = self.take() {
                return Poll::Ready(match self.frames.take(&piece) {
                    Ok(()) => Ok(Some(piece)),
                    Err(wrong) => Err(self.refuse(wrong)),
                });
            }
            if self.has_ended {
                return Poll::Ready(Ok(None));
            }
            // The stream remembers who waits.
            let is_ordered = self.receiver.is_none();
            let read = pin!(self.stream.read_chunk(MAX_PIECE, is_ordered)).poll(context);
            match ready!(read) {
                Ok(Some(chunk)) => {
                    if let Some(receiver) = &self.receiver {
                        receiver.read(chunk.bytes.len(), chunk.offset == self.next);
                    }
                    self.ahead.insert(chunk.offset, chunk.bytes);
                }
                Ok(None) => {
                    self.has_ended = true;
                    if let Err(wrong) = self.frames.end() {
                        return Poll::Ready(Err(self.refuse(wrong)));
                    }
                }
                Err(error) => {
                    self.has_ended = true;
                    self.lose();
                    return Poll::Ready(Err(not_read(error)));
                }
            }
            if self.ahead.len() > MAX_AHEAD {
                self.stop(Code::H3_EXCESSIVE_LOAD.value());
                let error = io::Error::other("too many pieces out of order");
                return Poll::Ready(Err(StreamError::Unknown(Box::new(error))));
            }
        }
    }

    fn stop_sending(&mut self, code: u64) {
        self.stop(code);
    }

    fn recv_id(&self) -> StreamId {
        id(self.stream.id())
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        if !self.has_ended {
            // A server has answered, and wants no more of the request (RFC 9114, section 4.1).
            let code = match self.receiver {
                Some(_) => Code::H3_REQUEST_CANCELLED,
                None => Code::H3_NO_ERROR,
            };
            self.stop(code.value());
        }
    }
}

fn id(id: quinn::StreamId) -> StreamId {
    VarInt::from(id)
        .into_inner()
        .try_into()
        .expect("it is a number of a stream")
}

/// A code of HTTP/3 as QUIC has it.
pub(crate) fn code(code: Code) -> VarInt {
    number(code.value())
}

/// Codes of HTTP/3 are far below the largest.
fn number(code: u64) -> VarInt {
    VarInt::from_u64(code).unwrap_or(VarInt::MAX)
}

fn lost(error: quinn::ConnectionError) -> ConnectionError {
    match error {
        quinn::ConnectionError::ApplicationClosed(closed) => ConnectionError::ApplicationClose {
            error_code: closed.error_code.into(),
        },
        quinn::ConnectionError::TimedOut => ConnectionError::Timeout,
        other => ConnectionError::Undefined(Arc::new(other)),
    }
}

fn broken(error: quinn::ConnectionError) -> StreamError {
    StreamError::ConnectionErrorIncoming {
        connection_error: lost(error),
    }
}

fn not_read(error: ReadError) -> StreamError {
    match error {
        ReadError::Reset(code) => StreamError::StreamTerminated {
            error_code: code.into_inner(),
        },
        ReadError::ConnectionLost(error) => broken(error),
        other => StreamError::Unknown(Box::new(other)),
    }
}

fn not_written(error: WriteError) -> StreamError {
    match error {
        WriteError::Stopped(code) => StreamError::StreamTerminated {
            error_code: code.into_inner(),
        },
        WriteError::ConnectionLost(error) => broken(error),
        other => StreamError::Unknown(Box::new(other)),
    }
}
