//! The law that tests and the lab give to streams of jobs. Whoever includes this file imports
//! the types of its settings.

use std::time::Duration;

use super::{AdmissionSettings, Gain};

/// For a stream: jobs that arrive at random, the paper's case.
/// T is `T_CHUNKS` mean chunk times (`Period`); `period` is its value before any chunk has
/// ended. What follows is per mean chunk time.
///
/// One connection more serves B = k / (m + k) chunks more beside k
/// long-lived flows: 0.2 to 0.7. Arrivals and ends of chunks are noise of
/// variance 2 m. So kappa and gamma are a matter of speed, kappa * B,
/// against noise, whose variance of m is (kappa / B) * m. The numbers are
/// from simulation (`lab tuning`: 1 to 5 long-lived flows, web loads of 0.2
/// and 0.45, background loads of 0.25 to 0.45, chunks of 0.3 and 3 MB on
/// 10 to 1000 Mbit/s).
///
/// - tau = 20 chunks: at limits of 2 to 20 connections the queue is empty
///   at most 1.5 % of the time. With 10 it is up to 29 %, and an empty
///   queue biases m upwards; with 30 a cold start takes up
///   to 20 chunk times instead of 17, as there is more to be filled.
/// - kappa = 1 at first: one connection for each chunk that the queue has
///   grown by. From a cold start m is within 20 % of its limit after 5 to
///   17 chunk times in the mean over many runs; with 0.5 after up to 21,
///   and beyond 2 / B m would alternate.
/// - gamma = 0.02 at first: damping ratio kappa/2 * sqrt(B / gamma) of 1.6
///   to 2.9. More pulls m down for longer while the queue is still to be
///   filled; with less, once settled, the queue takes too long to come
///   back to tau and is empty up to 18 % of the time.
/// - Both settle, since the first values for good would make the web up to
///   18 % slower than a constant m does: half of kappa is left after 10
///   chunk times, and 0.22 with gamma = 0.001 in the end, where it is
///   5 % at most at limits of 2 to 20 connections, and 10 % elsewhere. With
///   0.0003 a step in load takes up to 22 chunk times.
/// - 30 chunks more than tau, thrice the queue's usual deviation, are a
///   step in load; so are 3 chunk times of an empty queue. A step up is
///   followed within 14 chunk times, one down in 17 to 24, with a fifth of
///   the long-lived flows left in 83. Without this a cold start can take
///   32, as the gain is spent before the limit is reached.
/// - m_min = 1: with plain TCP a smaller limit would keep the queue at tau where less
///   than one connection is enough, and no web flow would gain. Where a lever holds
///   flows, m_min should be their smallest weight, 0.02: then one connection yields for
///   the rest of the time. The paper names no m_min.
///
/// A single run varies by chance: the chunks of its first 40 to 200 chunk times do not
/// tell the limit to 20 %, whatever the law.
pub(crate) fn stream_law() -> AdmissionSettings {
    AdmissionSettings {
        tau: 20.0,
        gain: Gain::Settling {
            initial: 0.02,
            floor: 0.001,
            half_after: 10.0,
            far: 30.0,
            empty_after: 3,
        },
        kappa: 1.0,
        period: Duration::from_secs(10),
        m_min: 1.0,
        m_max: 4,
    }
}
