//! A UDP socket that counts what arrives, when this process reads it.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};

use super::Seen;

/// The socket of one connection.
#[derive(Debug)]
pub struct CountingSocket {
    inner: Arc<dyn AsyncUdpSocket>,
    seen: Seen,
}

impl CountingSocket {
    /// The same socket; what arrives is told to `seen`.
    #[must_use]
    pub fn new(inner: Arc<dyn AsyncUdpSocket>, seen: Seen) -> Self {
        Self { inner, seen }
    }
}

impl AsyncUdpSocket for CountingSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Arc::clone(&self.inner).create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.inner.try_send(transmit)
    }

    fn poll_recv(
        &self,
        context: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let received = ready!(self.inner.poll_recv(context, bufs, meta));
        for meta in &meta[..*received.as_ref().unwrap_or(&0)] {
            // The kernel may have put several datagrams of one size together.
            let (mut left, stride) = (meta.len, meta.stride.max(1));
            while left > 0 {
                self.seen.datagram(left.min(stride) as u64);
                left = left.saturating_sub(stride);
            }
        }
        Poll::Ready(received)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.inner.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}
