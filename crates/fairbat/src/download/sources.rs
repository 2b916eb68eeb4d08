//! Where a transfer may come from: the URL that the user named, and mirrors of it.
//!
//! One source at a time: when it is given up, the next one begins with the first byte. ETags and
//! lengths prove nothing between servers, so what one server has sent is never joined with what
//! another one sends. No I/O.

use url::Url;

use super::part::Incoming;
use super::part::name::{FileName, name_for};
use crate::checksum::sha256_hex;
use crate::error::ErrorKind;
use crate::http::priority::DeadlineHint;
use crate::http::without_credentials;
use crate::settings::{Target, TransferRequest};
use crate::transport::RemoteFile;

/// The sources of a transfer, and which of them is asked.
#[derive(Debug)]
pub(crate) struct Sources {
    /// The first is the URL of the transfer.
    urls: Vec<Url>,
    present: usize,
    /// What the file is called, as far as it is known.
    name: Option<FileName>,
}

impl Sources {
    pub(crate) fn of(request: &TransferRequest) -> Self {
        let mut urls = vec![request.url.clone()];
        for mirror in &request.mirrors {
            if !urls.contains(mirror) {
                urls.push(mirror.clone());
            }
        }
        Self {
            urls,
            present: 0,
            name: None,
        }
    }

    /// The one that is asked.
    pub(crate) fn present(&self) -> &Url {
        &self.urls[self.present]
    }

    /// Whether there is another one, which has not been asked.
    pub(crate) fn has_next(&self) -> bool {
        self.present + 1 < self.urls.len()
    }

    /// A source has been found to have the file. It has this name from now on.
    pub(crate) fn set_name(&mut self, name: FileName) {
        self.name = Some(name);
    }

    /// What the next probe is to find out.
    pub(crate) fn inquiry(
        &self,
        target: Target,
        as_stream: bool,
        hint: Option<DeadlineHint>,
    ) -> Inquiry {
        // A mirror may call the file anything.
        let of_first = || name_for(None, &self.urls[0]);
        let name = (self.present > 0).then(|| self.name.clone().unwrap_or_else(of_first));
        Inquiry {
            url: self.present().clone(),
            sources: self.urls.clone(),
            name,
            target,
            as_stream,
            hint,
        }
    }

    /// The file is there already, so no other source is asked.
    pub(crate) fn keep_present(&mut self) {
        self.urls.truncate(self.present + 1);
    }

    /// Gives the present source up, because of an error of this kind. Returns whether there is
    /// another one, which may do better.
    pub(crate) fn give_up(&mut self, kind: ErrorKind) -> bool {
        let is_of_source = match kind {
            ErrorKind::Refused
            | ErrorKind::Network
            | ErrorKind::Server
            | ErrorKind::Integrity
            | ErrorKind::TooLarge => true,
            ErrorKind::Disk | ErrorKind::MaxTime | ErrorKind::Interrupted | ErrorKind::Other => {
                false
            }
        };
        let has_next = is_of_source && self.has_next();
        self.present += usize::from(has_next);
        has_next
    }
}

/// What a probe asks for.
#[derive(Debug)]
pub(crate) struct Inquiry {
    pub(crate) url: Url,
    /// All sources of the file, this one among them.
    pub(crate) sources: Vec<Url>,
    /// The name of the file, if this source is not to give it.
    pub(crate) name: Option<FileName>,
    pub(crate) target: Target,
    /// Whether the file is fetched in one request, whatever the server says of ranges.
    pub(crate) as_stream: bool,
    /// The deadline, for a server that answers with the whole file.
    pub(crate) hint: Option<DeadlineHint>,
}

impl Inquiry {
    /// What the source says of the file that matters for the disk.
    pub(crate) fn incoming(&self, source: &RemoteFile) -> Incoming {
        let mut shown = without_credentials(&source.named);
        shown.set_query(None);
        let resource = |url: &Url| sha256_hex(without_credentials(url).as_str().as_bytes());
        let own_name = || name_for(source.suggested_name.as_deref(), &source.url);
        Incoming {
            url: shown.into(),
            resource: resource(&source.named),
            others: self.sources.iter().map(resource).collect(),
            total: source.total,
            validator: source.validator.clone(),
            version: source.version.clone(),
            name: self.name.clone().unwrap_or_else(own_name),
            start_over: self.as_stream,
        }
    }
}
