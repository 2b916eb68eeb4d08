//! The body of a request, whole, as long as it is short and comes in time.

use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::refusal::{MOST, Refusal};

/// Takes all of it, within `idle`.
///
/// # Errors
/// It is too long, does not come, or breaks off.
pub(super) async fn whole<B>(body: B, idle: Duration) -> Result<Bytes, Refusal>
where
    B: Body + Unpin,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if body.size_hint().lower() > MOST as u64 {
        return Err(Refusal::too_large());
    }
    let collected = Limited::new(body, MOST).collect();
    match tokio::time::timeout(idle, collected).await {
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Refusal::too_large()),
        Ok(Err(_)) => Err(Refusal::malformed("the body breaks off")),
        Err(_) => Err(Refusal::malformed("the body does not come")),
    }
}
