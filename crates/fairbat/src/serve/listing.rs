//! The names in a directory as a JSON array, for programs that keep a tree in
//! step: what of them is served, in the order of their bytes, page by page.
//!
//! Nothing is kept between two pages: each reads the names anew and begins
//! behind the last one of the page before, so what comes or goes meanwhile
//! shifts nothing. A page that is shorter than its limit is the last one.
//!
//! An entry is `{"name","type","size","mtime","etag"}`. A name that is no UTF-8
//! stands there with each of its bytes percent-encoded that is not a letter, a
//! digit or one of `-._~`, and with `"percent_encoded": true`; all others are
//! as they are.

mod names;
mod page;

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, VARY};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use hyper::body::{Body, Frame};
use rustix::fs::OFlags;
use tokio::task::JoinHandle;

use self::names::Names;
use self::page::Page;
use super::Site;
use super::answer::{aside, refused, with, without_content};
use super::files::{NotServed, directory_in};
use super::flow::{Flow, Sending};
use super::pace::Manner;
use super::payload::Payload;
use crate::file_version::wall_clock;
use crate::http::priority::RequestPriority;

/// Names that are looked at at once, so that no thread is kept for long.
const AT_ONCE: usize = 256;

/// Whether a request asks for a listing, by the very media type: `*/*` would be
/// every client.
pub(super) fn is_wanted(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(ACCEPT).iter();
    let ranges = lines.filter_map(|line| line.to_str().ok());
    ranges.flat_map(|line| line.split(',')).any(|range| {
        let mut words = range.split(';').map(str::trim);
        let is_json = words
            .next()
            .is_some_and(|media| media.eq_ignore_ascii_case("application/json"));
        let is_refused = |word: &str| {
            let weight = word.strip_prefix("q=").or_else(|| word.strip_prefix("Q="));
            weight.is_some_and(|weight| weight.parse() == Ok(0.0))
        };
        is_json && !words.any(is_refused)
    })
}

/// Answers with the listing of a directory.
pub(super) async fn answer(site: &Arc<Site>, flow: &Flow, request: &Parts) -> Response<Payload> {
    let Some(name) = directory_in(request.uri.path()) else {
        return without_content(StatusCode::NOT_FOUND, []);
    };
    let Some(page) = Page::of(request.uri.query().unwrap_or_default()) else {
        let text = "after is a name, percent-encoded, and limit a number above 0";
        return with(
            StatusCode::BAD_REQUEST,
            HeaderMap::new(),
            Payload::line(text),
        );
    };
    let begun = {
        let (site, name) = (Arc::clone(site), name.clone());
        aside(move || Listing::begin(site, name, page)).await
    };
    let listing = match begun {
        Ok(listing) => listing,
        Err(reason) => return refused(site, &name, &reason),
    };
    let headers = HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (VARY, HeaderValue::from_static("accept")),
    ]);
    if request.method == Method::HEAD {
        return with(StatusCode::OK, headers, Payload::empty());
    }
    let manner = Manner::of(
        &RequestPriority::from_headers(&request.headers),
        0,
        site.background,
    );
    let body = ListingBody {
        state: State::Waiting(Some(Box::new(listing))),
        _sending: flow.begin(manner),
    };
    let mut response = with(StatusCode::OK, headers, Payload::Listing(body));
    response.extensions_mut().insert(manner);
    response
}

/// A listing that is being written.
#[derive(Debug)]
struct Listing {
    site: Arc<Site>,
    /// Of the directory, below the one that is served.
    name: PathBuf,
    directory: OwnedFd,
    names: Names,
    /// What may still be told.
    page: Page,
    is_begun: bool,
    is_over: bool,
}

impl Listing {
    fn begin(site: Arc<Site>, name: PathBuf, page: Page) -> Result<Self, NotServed> {
        let directory = site
            .root
            .beneath(&name, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let names = Names::read(&directory, &page.after, page.left)?;
        Ok(Self {
            site,
            name,
            directory,
            names,
            page,
            is_begun: false,
            is_over: false,
        })
    }

    /// Some more of the text.
    fn piece(&mut self) -> io::Result<Bytes> {
        let mut text = Vec::new();
        if !self.is_begun {
            text.push(b'[');
        }
        let now = wall_clock();
        for _ in 0..AT_ONCE {
            let Some(name) = self.next_name()? else {
                text.extend(b"]\n");
                self.is_over = true;
                break;
            };
            let found = names::look(&self.site.root, &self.name, &self.directory, &name, now)?;
            if let Some(entry) = found {
                if self.is_begun {
                    text.push(b',');
                }
                self.is_begun = true;
                text.push(b'\n');
                serde_json::to_writer(&mut text, &entry)?;
                self.page.left -= 1;
            }
            self.page.after = name.into_vec();
        }
        Ok(text.into())
    }

    fn next_name(&mut self) -> io::Result<Option<Box<[u8]>>> {
        if self.page.left == 0 {
            return Ok(None);
        }
        if self.names.is_exhausted() {
            // What was passed over is made up for.
            self.names = Names::read(&self.directory, &self.page.after, self.page.left)?;
        }
        Ok(self.names.next())
    }
}

/// The text of a listing, written as it is wanted.
#[derive(Debug)]
pub(super) struct ListingBody {
    state: State,
    /// Ends with the body, however that ends.
    _sending: Sending,
}

#[derive(Debug)]
enum State {
    /// `None` when all of it is written.
    Waiting(Option<Box<Listing>>),
    Writing(JoinHandle<(Box<Listing>, io::Result<Bytes>)>),
}

impl Body for ListingBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        if let State::Waiting(listing) = &mut this.state {
            let Some(mut listing) = listing.take() else {
                return Poll::Ready(None);
            };
            this.state = State::Writing(tokio::task::spawn_blocking(move || {
                let piece = listing.piece();
                (listing, piece)
            }));
        }
        let State::Writing(writing) = &mut this.state else {
            return Poll::Ready(None);
        };
        let written = ready!(Pin::new(writing).poll(context)).map_err(io::Error::other);
        let (listing, piece) = match written {
            Ok((listing, piece)) => (Some(listing), piece),
            Err(error) => (None, Err(error)),
        };
        if let (Some(listing), Err(error)) = (&listing, &piece) {
            // The client sees only that it is short.
            let trouble = format_args!("cannot be listed, a response is broken off: {error}");
            listing.site.warn_of(&listing.name, trouble);
        }
        let rest = listing.filter(|listing| piece.is_ok() && !listing.is_over);
        this.state = State::Waiting(rest);
        Poll::Ready(Some(piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.state, State::Waiting(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_names_the_type_gets_a_listing() {
        for (accept, expected) in [
            ("application/json", true),
            ("text/html, Application/JSON;q=0.5", true),
            ("application/json;q=0", false),
            ("application/json; q=0.0, */*", false),
            ("*/*", false),
            ("application/*", false),
            ("application/jsonx", false),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]);
            assert_eq!(is_wanted(&headers), expected, "{accept}");
        }
        assert!(!is_wanted(&HeaderMap::new()));
    }
}
