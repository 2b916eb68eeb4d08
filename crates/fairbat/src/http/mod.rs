//! HTTP/1.1: requests, redirects, what answers mean. Knows nothing of files,
//! queue or admission.

mod client;
mod coding;
pub mod content_disposition;
pub mod content_range;
pub mod digest;
mod early;
pub mod entity_tag;
mod failure;
pub mod netrc;
pub mod priority;
pub mod retry_after;
mod source;
mod tap;
mod upload;
pub mod validator;

pub(crate) use client::MAX_REDIRECTS;
pub use client::{HttpClient, retry_after_of, without_credentials};
pub(crate) use early::unread_answer;
pub use failure::{Failure, Transient};
pub use source::{Body, Probe, Source};
pub use tap::ReceiveWindow;
pub(crate) use tap::{Opened, SendTap, socket_of};
pub(crate) use upload::{Answer, Put};
