//! What judges runs and reports of them: is the emulated link as good as it claims, what do
//! many runs beside each other say, and does it meet what is required.

pub mod calibrate;
pub mod matrix;
pub mod multipath;
pub mod numerical;
pub mod programs;
pub mod report;
mod requirement;
pub mod results;
pub mod sender_cost;
pub mod tuning;
mod verdict;
