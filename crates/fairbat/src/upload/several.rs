//! An upload over several paths: the parts that they send, and the requests about the upload as a
//! whole. `serve::write::parts` has the protocol.
//!
//! All paths take parts from one queue. A path takes a part of such a length that all paths end
//! at the same time.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{select_all, select_ok, try_join_all};
use http::{Method, StatusCode};
use url::Url;

use super::parts::Parts;
use super::path::UploadPath;
use super::send::Upload;
use super::source::UploadFile;
use crate::arrival::{WayState, next_piece};
use crate::http::Failure;
use crate::http::range::ContentRange;
use crate::lane::Permit;
use crate::transport::{Put, PutAnswer};

/// Length of the first part over a path, bytes: it tells soon how fast the path is.
const FIRST_PART: u64 = 256 * 1024;

/// While a path is left alone, because others are sooner, it is looked at as often as this.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// How long an upload takes at most to tell the server that it is given up.
const FAREWELL: Duration = Duration::from_secs(2);

impl Upload {
    /// Asks the server over all paths at once. The first answer counts, and the path that it came
    /// over.
    pub(super) async fn ask_first(&self, url: &Url) -> Result<(&UploadPath, PutAnswer), Failure> {
        let those = |are: &dyn Fn(&UploadPath) -> bool| -> Vec<&UploadPath> {
            self.paths.iter().filter(|path| are(path)).collect()
        };
        // One that is gone may be back.
        let asked = [
            those(&UploadPath::is_used),
            those(&|path| path.metered.is_none()),
            those(&|_| true),
        ];
        let asked = asked.into_iter().find(|paths| !paths.is_empty());
        let asked = asked.unwrap_or_default();
        let asked = asked.into_iter().map(|path| {
            let answer = self.ask(path, Method::HEAD, self.about(url));
            let with_path = move |answer: PutAnswer| (path, answer);
            answer.map(move |answer| answer.map(with_path)).boxed()
        });
        Ok(select_ok(asked).await?.0)
    }

    /// Sends the file in parts; the answer to the last request, or to the one that was refused.
    pub(super) async fn send_parts(
        &self,
        first: &UploadPath,
        url: &Url,
        source: &Arc<UploadFile>,
    ) -> Result<PutAnswer, Failure> {
        let total = source.version().size;
        let beginning = beginning(url);
        let begin = Put {
            range: Some(ContentRange::Unsatisfied { total }),
            create_only: self.request.create_only,
            ..self.about(&beginning)
        };
        let answer = self.ask(first, Method::POST, begin).await?;
        if answer.status != StatusCode::CREATED {
            return match answer.status.is_success() {
                true => Err(Failure::server(format!(
                    "the server answered {} and begins no upload in parts",
                    answer.status
                ))),
                false => Ok(answer),
            };
        }
        if answer.location.is_none() {
            let reason = "the server begins an upload in parts, but does not say where they go";
            return Err(Failure::server(reason));
        }
        let place = answer.next(url)?;
        {
            let mut state = self.state();
            state.begun = Some(place.clone());
            state.parts = Parts::default();
            state.parts.waiting.insert(0..total);
        }
        for path in &self.paths {
            path.state().share = 1.0 / self.paths.len() as f64;
        }
        self.send_over_all(&place, source).await?;
        // The server may not publish parts of a file that has changed since it was opened.
        source.check().map_err(Failure::Fatal)?;
        let answer = self.complete(&place).await?;
        self.state().begun = None;
        Ok(answer)
    }

    /// Asks the server to make the file of its parts. Any path will do, also a metered one that is
    /// not needed for parts.
    async fn complete(&self, place: &Url) -> Result<PutAnswer, Failure> {
        // The server has all of it, and writes it to the disk. It may be asked again meanwhile.
        let mut patience = self.settings.http.stall_timeout;
        loop {
            let up = self.paths.iter().map(|path| path.up().boxed());
            select_all(up).await;
            let up = self.paths.iter().filter(|path| path.is_up());
            let path = up.min_by_key(|path| (path.state().backoff.failures(), !path.is_used()));
            let path = path.unwrap_or(&self.paths[0]);
            let asked = self.ask_within(patience, path, Method::POST, self.about(place));
            match asked
                .await
                .and_then(|answer| self.part_answer(answer, place))
            {
                Ok(answer) => return Ok(answer),
                Err(Failure::Transient(failure)) => {
                    patience = patience.map(|limit| limit.saturating_mul(2));
                    self.back_off_path(path, Failure::Transient(failure))
                        .await?;
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Tells the server that an upload is given up, if it has begun one. The server finds out by
    /// itself later.
    pub(super) async fn give_up(&self) {
        let begun = self.state().begun.take();
        let Some(mut place) = begun else {
            return;
        };
        // A server that knows nothing of parts refuses POST. DELETE would remove the file there.
        place.query_pairs_mut().append_key_only("give-up");
        let told = self.paths.iter().map(|path| {
            let told = self.ask(path, Method::POST, self.about(&place));
            told.boxed()
        });
        let told = tokio::time::timeout(FAREWELL, select_ok(told)).await;
        if !matches!(told, Ok(Ok(_))) {
            tracing::debug!("the server does not know yet that the upload is given up");
        }
    }

    /// A request without a body.
    pub(super) async fn ask(
        &self,
        path: &UploadPath,
        method: Method,
        put: Put<'_>,
    ) -> Result<PutAnswer, Failure> {
        self.ask_within(self.settings.http.stall_timeout, path, method, put)
            .await
    }

    async fn ask_within(
        &self,
        limit: Option<Duration>,
        path: &UploadPath,
        method: Method,
        put: Put<'_>,
    ) -> Result<PutAnswer, Failure> {
        let client = path.state().asking.clone();
        let asked = client.ask(method, &put);
        match limit {
            Some(limit) => tokio::time::timeout(limit, asked)
                .await
                .unwrap_or_else(|_| Err(Failure::network("the server fell silent"))),
            None => asked.await,
        }
    }

    /// A request about this URL.
    pub(super) fn about<'a>(&'a self, url: &'a Url) -> Put<'a> {
        Put {
            named: &self.request.url,
            url,
            range: None,
            create_only: false,
        }
    }

    /// An answer about an upload in parts that the server has begun.
    pub(super) fn part_answer(&self, answer: PutAnswer, place: &Url) -> Result<PutAnswer, Failure> {
        match answer.status {
            StatusCode::NOT_FOUND | StatusCode::CONFLICT => Err(Failure::Changed(
                "the server does not know this upload any more; it starts over".to_owned(),
            )),
            status if status.is_success() => Ok(answer),
            _ => Err(self.refused(&answer, place)),
        }
    }

    /// Sends all parts of the file to `place`, over all paths.
    ///
    /// # Errors
    /// The server refuses a part or does not know the upload any more, the file cannot be read, or
    /// all paths have failed as often as they may.
    pub(super) async fn send_over_all(
        &self,
        place: &Url,
        source: &Arc<UploadFile>,
    ) -> Result<(), Failure> {
        let paths = self.paths.iter();
        let sent = try_join_all(paths.map(|path| self.send_over(path, place, source))).await;
        sent.map(drop)
    }

    /// Sends parts over this path until none is left.
    async fn send_over(
        &self,
        path: &UploadPath,
        place: &Url,
        source: &Arc<UploadFile>,
    ) -> Result<(), Failure> {
        while let Some((permit, part)) = self.next_part(path).await {
            let sent = self.send_part(path, place, source, part.clone()).await;
            drop(permit);
            path.settle(sent.is_ok());
            self.state().parts.settle(part, sent.is_ok());
            self.parts_changed.notify_waiters();
            match sent {
                Ok(()) => {
                    let mut state = path.state();
                    state.backoff.progress();
                    state.is_exhausted = false;
                }
                Err(Failure::Transient(failure)) if path.is_up() => tokio::select! {
                    over = self.back_off_path(path, Failure::Transient(failure)) => over?,
                    () = self.all_sent() => {}
                },
                // It is used again when it is back.
                Err(Failure::Transient(_)) => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    async fn send_part(
        &self,
        path: &UploadPath,
        place: &Url,
        source: &Arc<UploadFile>,
        part: Range<u64>,
    ) -> Result<(), Failure> {
        let put = Put {
            range: Some(ContentRange::Bytes {
                first: part.start,
                last: part.end - 1,
                total: Some(source.version().size),
            }),
            ..self.about(place)
        };
        let answer = tokio::select! {
            biased;
            answer = path.send(&put, source, part) => answer?,
            failure = path.gone() => return Err(failure),
        };
        self.part_answer(answer, place).map(drop)
    }

    /// Waits for a part that this path is to send, and for its connection; `None` when all have
    /// come.
    async fn next_part(&self, path: &UploadPath) -> Option<(Permit, Range<u64>)> {
        loop {
            let changed = self.parts_changed.notified();
            if self.state().parts.is_complete() {
                return None;
            }
            if self.plan_part(path).is_some() {
                let permit = tokio::select! {
                    permit = self.admitted(path) => permit,
                    () = self.all_sent() => return None,
                };
                // Others may have taken it by now.
                let length = self.plan_part(path);
                if let Some(part) = length.and_then(|length| self.state().parts.take(length)) {
                    return Some((permit, part));
                }
            }
            tokio::select! {
                () = changed => {}
                () = path.used(), if !path.is_used() => {}
                () = tokio::time::sleep(LOOK_AGAIN), if path.is_used() => {}
            }
        }
    }

    /// Resolves when all parts have come.
    async fn all_sent(&self) {
        loop {
            let changed = self.parts_changed.notified();
            if self.state().parts.is_complete() {
                return;
            }
            changed.await;
        }
    }

    /// Length of the part that this path is to send now, if any.
    fn plan_part(&self, path: &UploadPath) -> Option<u64> {
        if !path.is_used() {
            return None;
        }
        let is_ready = |other: &&UploadPath| other.is_used() && other.state().is_ready();
        let others = self
            .paths
            .iter()
            .filter(|other| !std::ptr::eq(*other, path));
        let others: Vec<WayState> = others.filter(is_ready).map(UploadPath::arrival).collect();
        let (waiting, is_due) = {
            let state = self.state();
            (state.parts.waiting.total(), state.deadline.is_some())
        };
        if waiting == 0 {
            return None;
        }
        let most = path
            .state()
            .longest_part()
            .unwrap_or(FIRST_PART)
            .min(waiting);
        // A path may come back, or be needed although it is metered. Then it has to find something
        // to send.
        let may_come = |path: &UploadPath| match path.metered {
            Some(_) => is_due && path.is_up(),
            None => !path.is_up(),
        };
        let most = match self.paths.iter().any(may_come) {
            true => most.min(FIRST_PART.max(waiting / 2)).min(waiting),
            false => most,
        };
        let length = next_piece(&path.arrival(), &others, waiting as f64, most as f64)?;
        Some((length as u64).clamp(1, most))
    }
}

/// Where an upload in parts begins.
fn beginning(url: &Url) -> Url {
    let mut url = url.clone();
    url.query_pairs_mut().append_key_only("parts");
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_begins_where_the_file_will_be() {
        for (url, expected) in [
            ("http://h/d/f", "http://h/d/f?parts"),
            ("http://h/f?k=v", "http://h/f?k=v&parts"),
        ] {
            assert_eq!(beginning(&Url::parse(url).unwrap()).as_str(), expected);
        }
    }
}
