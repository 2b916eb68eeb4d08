//! Placeholder.
pub(crate) fn run(_json: bool) -> std::io::Result<()> {
    Ok(())
}
