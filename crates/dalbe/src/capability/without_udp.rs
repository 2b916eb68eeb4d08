//! The same of a build without QUIC.

pub(super) fn offload() -> Result<String, String> {
    Err("this build has no HTTP/3".to_owned())
}

pub(super) fn buffer() -> Result<String, String> {
    offload()
}
