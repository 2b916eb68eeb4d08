//! What FAIRBAT says to HTTP servers and how it reads their answers.

pub mod content_disposition;
pub mod content_range;
pub mod digest;
pub mod entity_tag;
pub mod netrc;
pub mod retry_after;
pub mod validator;
