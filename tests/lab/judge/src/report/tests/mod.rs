//! Matrices and runs whose figures are known, for tests.

pub(crate) mod deadlines;
pub(crate) mod fairbat;
pub(crate) mod synthetic;
