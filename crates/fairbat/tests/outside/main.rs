//! The library from outside, on real sockets and file systems. It is one program, for each
//! that is linked with the whole library takes some seconds to make.

mod arrivals;
mod files;
mod serve;
mod shared_lane;
mod store;
