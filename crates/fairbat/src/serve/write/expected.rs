//! What a request expects to be where it changes something (RFC 9110, section 13).
//!
//! The conditions are evaluated once, before a body is taken. Then what was seen
//! must be there still when the change is made, which the server does one at a
//! time: of two requests that expect the same version one is refused.

use std::path::Path;
use std::sync::Arc;

use http::HeaderMap;

use super::super::Site;
use super::super::answer::aside;
use super::super::conditions::{Validators, is_conditional, permits_change};
use super::super::files::{Found, NotServed};
use super::place::Arrival;
use super::refusal::Refusal;
use crate::file_version::{FileVersion, Look, Looks, TICK, wall_clock};
use crate::http::validator::EntityTag;

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    Anything,
    /// No file, at least.
    Nothing,
    Version(FileVersion),
}

impl Expected {
    /// What the conditions of a request come to for what is there now.
    ///
    /// # Errors
    /// They do not hold, or what is there cannot be told.
    pub(super) async fn by(
        site: &Arc<Site>,
        name: &Path,
        headers: &HeaderMap,
    ) -> Result<Self, Refusal> {
        if !is_conditional(headers) {
            return Ok(Self::Anything);
        }
        let seen = version(site, name).await?;
        let validators = seen.map(validators);
        if !permits_change(headers, validators.as_ref()) {
            return Err(Refusal::Failed);
        }
        Ok(seen.map_or(Self::Nothing, Self::Version))
    }

    /// Fails unless that is what is there. Blocking.
    pub(super) fn check(&self, site: &Site, name: &Path) -> Result<(), Refusal> {
        let expected = match self {
            // For a file that arrives the kernel sees to that, see `arrival`.
            Self::Anything | Self::Nothing => return Ok(()),
            Self::Version(version) => version,
        };
        match site.root.file(name) {
            Ok(found) if found.version == *expected => Ok(()),
            Ok(_) | Err(NotServed::Absent) => Err(Refusal::Failed),
            Err(reason) => Err(reason.into()),
        }
    }

    /// How a file comes where that is expected.
    pub(super) fn arrival(self) -> Arrival {
        match self {
            Self::Nothing => Arrival::Create,
            Self::Anything | Self::Version(_) => Arrival::Replace,
        }
    }
}

/// The version of the file of this name, once every later change shows; `None` if
/// there is none.
async fn version(site: &Arc<Site>, name: &Path) -> Result<Option<FileVersion>, Refusal> {
    let (shared, owned) = (Arc::clone(site), name.to_owned());
    let mut found = match aside(move || shared.root.file(&owned)).await {
        Ok(found) => found,
        Err(NotServed::Absent) => return Ok(None),
        Err(reason) => return Err(reason.into()),
    };
    let mut looks = Looks::default();
    loop {
        match looks.look(found.version, wall_clock()) {
            Look::Counts => return Ok(Some(found.version)),
            Look::Again => tokio::time::sleep(TICK).await,
            Look::Restless => return Err(Refusal::Busy),
        }
        found = aside(move || Found::again(found)).await?;
    }
}

/// As an upload tells them: those that are served some seconds later.
fn validators(version: FileVersion) -> Validators {
    Validators {
        tag: EntityTag::from_value(&version.entity_tag()),
        modified: version.last_modified(wall_clock()),
        is_dated: version.is_dated(),
    }
}
