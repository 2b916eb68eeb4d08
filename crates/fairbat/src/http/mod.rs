//! HTTP without I/O: header fields, validators, credentials, and what a failed
//! request means. Knows nothing of sockets, files or the lane.
//!
//! | file | what |
//! |---|---|
//! | [`fields`] | reading a field once, as a date or as a structured field; `Retry-After`; entity tags |
//! | `alternative` | where a server answers in HTTP/3 (`Alt-Svc`) |
//! | [`range`] | `Range` and `Content-Range` |
//! | [`validator`] | which version of a file a response belongs to |
//! | [`digest`] | `Repr-Digest`, `Digest`, `Content-Digest`, `Want-Repr-Digest` |
//! | [`content_disposition`] | the file name that a server suggests |
//! | [`priority`] | `Priority`, `Fairbat-Deadline` and `Fairbat` |
//! | `urgency` | the order of requests that share a connection |
//! | [`netrc`] | credentials in netrc files |
//! | [`credentials`] | credentials in URLs, the hosts that may see credentials, and advice when they are refused |
//! | [`link`] | other URLs of a file (RFC 6249) |
//! | [`host`] | the hosts that a request may name |
//! | `failure` | what a failed request means, and what to do about it |

#[cfg(feature = "http3")]
pub(crate) mod alternative;
pub mod content_disposition;
pub mod credentials;
pub mod digest;
mod failure;
pub mod fields;
pub mod host;
pub mod link;
pub mod netrc;
pub mod priority;
pub mod range;
#[cfg(feature = "http3")]
pub(crate) mod urgency;
pub mod validator;

pub use credentials::without_credentials;
pub(crate) use credentials::{CredentialSource, Identification, is_downgrade};
pub use failure::{Failure, Transient};
pub(crate) use failure::{NoAuthorities, Remarks, TrustAnchors};
pub use fields::retry_after_of;
