//! A sender of the lab's own: one TCP connection from the first host to the
//! last, on which there is always something to send, held back by a congestion
//! control of ours or by the rate of its packets, with a weight that the
//! scenario says or a deadline makes. The receiver drops what comes.
//!
//! It is what the laws of senders are measured with, without files, requests
//! or a program around them. Sockets are made in the network namespaces of
//! their hosts; threads need not be there.

mod flow;
mod hold;
mod price;
mod weigh;

use std::io;
use std::time::Duration;

use dalbe::sender::DeliveredBytes;
use dalbe::socket::TcpSocket;

use self::flow::Arrived;
pub(super) use self::flow::Ends;
use self::hold::Hold;
use self::weigh::{Seen, Weigher};
use super::Sending;
use super::download::failed;
use super::over::Over;
use super::site::Site;
use crate::record::{BackgroundRecord, ControlSample, SenderSample};

/// From sample to sample.
const SAMPLE: Duration = Duration::from_secs(1);

/// Sends until everything is there or the run is over.
pub(super) fn run(site: &Site, sending: Sending, ends: Ends, over: &Over) -> BackgroundRecord {
    let hold = match Hold::of(sending, site.background.g_ms) {
        Ok(hold) => hold,
        Err(why) => return failed(why),
    };
    if !site.is_time(over) {
        return BackgroundRecord::default();
    }
    drive(site, sending, hold, ends, over).unwrap_or_else(|error| failed(format!("send: {error}")))
}

fn drive(
    site: &Site,
    sending: Sending,
    mut hold: Hold,
    ends: Ends,
    over: &Over,
) -> io::Result<BackgroundRecord> {
    let Some((outgoing, incoming)) = ends.join(site, over)? else {
        return Ok(BackgroundRecord::default());
    };
    let socket = TcpSocket::from_fd(outgoing.descriptor()?);
    // After connecting: the route would overwrite it.
    hold.take(&socket)?;
    let outgoing = outgoing.send(site.end());
    let mut driver = Driver {
        weigher: Weigher::new(
            &site.background,
            site.end(),
            sending.law(),
            site.clock.now(),
        ),
        arrived: DeliveredBytes::default(),
        socket,
        hold,
        sampled: (site.clock.now(), 0),
        record: BackgroundRecord::default(),
    };
    let mut result = Ok(());
    over.comes_before(|| {
        result = driver.step(site.clock.now());
        result.is_err() || incoming.is_over() || outgoing.is_broken()
    });
    // In this order: nobody sends to an end that is gone.
    let sent = outgoing.stop();
    let arrived = incoming.stop()?;
    Ok(driver.finish(site, arrived, result.and(sent.map(drop))))
}

/// What acts on the connection while it lives.
struct Driver {
    weigher: Weigher,
    arrived: DeliveredBytes,
    socket: TcpSocket,
    hold: Hold,
    /// When the last sample was taken, and what was acknowledged then.
    sampled: (Duration, u64),
    record: BackgroundRecord,
}

impl Driver {
    /// Looks at the connection, and does what there is to do now.
    fn step(&mut self, now: Duration) -> io::Result<()> {
        let info = self.socket.info()?;
        let acked = info.bytes_acked.unwrap_or(0);
        let state = self.hold.state(&self.socket)?;
        let seen = Seen {
            now,
            acked,
            carried: self.arrived.since_last(&info),
            rtt: info.rtt.unwrap_or_default(),
            least_rtt: info.min_rtt.unwrap_or_default(),
            segment: f64::from(info.snd_mss),
            state,
        };
        self.weigher.look(&seen);
        let order = self.weigher.order(now);
        self.hold
            .hold(now, &self.socket, order, self.weigher.phi())?;
        if now >= self.sampled.0 + SAMPLE {
            self.sample(&seen, order.w, info.snd_cwnd);
        }
        Ok(())
    }

    fn sample(&mut self, seen: &Seen, w: f64, cwnd: u32) {
        let (since, before) = std::mem::replace(&mut self.sampled, (seen.now, seen.acked));
        let t = seen.now.as_secs_f64();
        let rate = (seen.acked - before) as f64 / (seen.now - since).as_secs_f64();
        self.record.control.push(ControlSample {
            t,
            n: 0.0,
            m: 1.0,
            active: 1,
            w,
            zeta: self.weigher.zeta(),
            rate,
        });
        let state = seen.state.unwrap_or_default();
        self.record.sender.push(SenderSample {
            t,
            w,
            phi: self.weigher.phi(),
            rate,
            cwnd,
            rtt_ms: seen.rtt.as_secs_f64() * 1e3,
            base_rtt_ms: seen.base_rtt() * 1e3,
            losses: state.losses,
            delays: state.delays,
            phantoms: state.phantoms,
            backoffs: state.backoffs,
            is_yielding: seen.state.map(|state| state.is_yielding),
        });
    }

    /// Says what became of the connection, which has ended.
    fn finish(self, site: &Site, arrived: Arrived, result: io::Result<()>) -> BackgroundRecord {
        let is_whole = site.end() == Some(arrived.bytes);
        let error = result.err().filter(|_| !is_whole);
        BackgroundRecord {
            bytes: Some(arrived.bytes),
            received: arrived.received,
            done: arrived.ended.filter(|_| is_whole),
            failure: error.map(|error| format!("send: {error}")),
            ..self.record
        }
    }
}
