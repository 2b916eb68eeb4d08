//! DA-LBE (Hayes et al. 2017, NEAT D3.2 Appendix B), equation by equation.

mod limiter;
mod mbc;
mod measurement;
mod phi;
mod pid;
mod price;

pub use self::limiter::{IncreaseLimiter, LimitedValue, MAX_PHI_INCREASE, MAX_WEIGHT_INCREASE};
pub use self::mbc::{Mbc, MbcSample, MbcSettings};
pub use self::measurement::RateMeasurement;
pub(crate) use self::measurement::{first_weight, least_weight};
pub use self::phi::{CongestionSignal, Phi, PhiSample, PhiSettings};
pub use self::pid::{Pid, PidSample, PidSettings};
pub use self::price::{PriceModel, cdg_scale, cdg_share};
