//! The agent from outside: its configuration, stores, API, metrics and page. It is one program,
//! for each that is linked with the whole agent takes some seconds to make.

mod api;
mod calendar;
mod check;
mod dav;
mod metrics;
mod page;
mod scene;
#[allow(dead_code, reason = "tests of the command use the rest")]
mod scripted;
mod web;
