//! One scheduler for all transfers that cross a bottleneck in one direction. A process
//! has one lane per direction.
//!
//! A transfer enters as a [`Member`], says what it has to move, and requests a
//! [`Permit`] before each chunk. Permits go to the earliest deadline first. FAIRBAT's m
//! limits how many there are, and DA-LBE's w how hard their connections press, which
//! [`Lane::flow_target`] tells the levers.
//!
//! - `core`: members, requests, demand and forecast, pure;
//! - `controller`: w and m from what the lane measures (`load`);
//! - `stream`: the same for transfers that keep arriving;
//! - `admission`: the paper's law for m, with its gain in `gain`, what counts in n in
//!   [`backlog`], and its period and fractions in `timing`;
//! - `hosts`: how many connections each host tolerates;
//! - `forecast`: when it is clear that a deadline will be missed;
//! - `handle`: the lane as transfers see it; `permit`: what they ask it for; `sample`: what it publishes;
//! - `outer`: lanes within lanes, as those of processes in that of their machine; `guests` are those
//!   inside, and [`wire`] has what the two tell each other.
//!
//! The lane knows nothing of requests, files or sockets.

mod admission;
pub mod backlog;
mod changed;
pub(crate) mod controller;
pub(crate) mod core;
pub(crate) mod forecast;
mod gain;
pub(crate) mod guests;
pub(crate) mod handle;
mod hosts;
mod load;
mod member_forecast;
mod outer;
mod permit;
pub(crate) mod places;
mod sample;
pub(crate) mod settings;
mod stream;
mod timing;
pub mod wire;

pub use self::admission::{
    Admission, AdmissionSample, AdmissionSettings, InvalidSettings, LawChanges,
};
pub use self::backlog::{Backlog, Extent};
pub(crate) use self::core::{LateMember, Rank};
pub(crate) use self::forecast::EvenPace;
pub use self::gain::Gain;
pub use self::handle::{Lane, Member};
pub use self::member_forecast::MemberForecast;
pub use self::outer::{Guest, LateGuests, OuterLane};
pub use self::permit::{Permit, PermitRequest};
pub use self::sample::LaneSample;
pub use self::settings::{LaneSettings, Service};
pub use self::stream::StreamSample;
pub use self::timing::{Fraction, Period, T_CHUNKS};

#[cfg(test)]
mod tests;
