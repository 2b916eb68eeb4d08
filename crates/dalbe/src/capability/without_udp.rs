//! The same of a build without QUIC.

use super::TrialFailure;

pub(super) fn offload() -> Result<String, TrialFailure> {
    Err(TrialFailure("this build has no HTTP/3".to_owned()))
}

pub(super) fn buffer() -> Result<String, TrialFailure> {
    offload()
}
