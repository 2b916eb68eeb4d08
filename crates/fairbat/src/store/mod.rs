//! Where transferred bytes are kept: names, part files and their journals.

pub mod name;
