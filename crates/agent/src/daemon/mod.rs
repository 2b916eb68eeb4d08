//! The daemon: runs jobs at their times, through one lane for each direction, and
//! tells how they stand.

pub mod handle;
