//! `--follow`: reads URLs as their lines come, and hands them to the run.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use fairbat::lane::AdmissionSettings;
use fairbat::settings::{KnownFile, Target, TransferRequest};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use url::Url;

use crate::settings::urls;

/// Downloads whose URLs come during the run.
#[derive(Debug)]
pub(crate) struct Following {
    /// Where the URLs come from; `-` is standard input.
    pub(crate) input: PathBuf,
    /// Those that are known from the start.
    pub(crate) first: Vec<Url>,
    /// Where the files go.
    pub(crate) target: Target,
    /// The law that admits them.
    pub(crate) law: AdmissionSettings,
}

/// Reads URLs in a thread of its own, since a read may wait for ever.
#[derive(Debug)]
pub(crate) struct UrlReader {
    requests: UnboundedSender<TransferRequest>,
    target: Target,
    skipped: Skipped,
}

/// Whether something of the input was left out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Skipped(Arc<AtomicBool>);

impl Skipped {
    pub(crate) fn has_any(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn report(&self, what: &str) {
        self.0.store(true, Ordering::Relaxed);
        tracing::error!("{what}");
    }
}

impl UrlReader {
    /// A reader and where its requests come out; `first` are the first of them.
    pub(crate) fn new(
        first: Vec<Url>,
        target: Target,
    ) -> (Self, UnboundedReceiver<TransferRequest>) {
        let (requests, arriving) = unbounded_channel();
        let reader = Self {
            requests,
            target,
            skipped: Skipped::default(),
        };
        for url in first {
            reader.send(url);
        }
        (reader, arriving)
    }

    pub(crate) fn skipped(&self) -> Skipped {
        self.skipped.clone()
    }

    /// Reads until the input ends, in the background.
    pub(crate) fn read(self, input: PathBuf) {
        thread::spawn(move || {
            let name = urls::name(&input);
            let read = if input == Path::new("-") {
                self.read_lines(&name, &mut io::stdin().lock())
            } else {
                // A named pipe opens when somebody writes to it.
                let file = File::open(&input).map(BufReader::new);
                file.and_then(|mut file| self.read_lines(&name, &mut file))
            };
            if let Err(error) = read {
                self.skipped
                    .report(&format!("--input-file: cannot read {name}: {error}"));
            }
        });
    }

    fn read_lines(&self, name: &str, input: &mut dyn BufRead) -> io::Result<()> {
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            if input.read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let url = match str::from_utf8(&line) {
                Ok(line) => urls::followed(line),
                Err(_) => Err("not valid text".to_owned()),
            };
            match url {
                Ok(Some(url)) => self.send(url),
                Ok(None) => {}
                Err(error) => self
                    .skipped
                    .report(&format!("{name}, line {number}: {error}; it is skipped")),
            }
        }
        Ok(())
    }

    fn send(&self, url: Url) {
        // After a signal nobody listens any more, and the process ends.
        let _ = self.requests.send(TransferRequest {
            url,
            mirrors: Vec::new(),
            target: self.target.clone(),
            deadline: None,
            checksum: None,
            known: KnownFile::default(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_requests_and_others_are_skipped() {
        let read = |text: &str| {
            let first = vec!["http://h/first".parse().unwrap()];
            let (reader, mut arriving) = UrlReader::new(first, Target::Directory("d".into()));
            let skipped = reader.skipped();
            reader.read_lines("input", &mut text.as_bytes()).unwrap();
            drop(reader);
            let mut urls = Vec::new();
            while let Ok(request) = arriving.try_recv() {
                assert_eq!(request.target, Target::Directory("d".into()));
                urls.push(request.url.path().to_owned());
            }
            (urls, skipped.has_any())
        };
        let found = read("# comment\n\nhttp://h/a\n  http://h/b  \nhttp://h/c");
        assert_eq!(found.0, ["/first", "/a", "/b", "/c"]);
        assert!(!found.1);
        let found = read("ftp://h/a\nhttp://h/b deadline=4h\nhttp://h/c\n");
        assert_eq!(found.0, ["/first", "/c"]);
        assert!(found.1);
        let (reader, mut arriving) = UrlReader::new(Vec::new(), Target::Directory("d".into()));
        let mut lines: &[u8] = b"http://h/\xff\xfe\nhttp://h/b\n";
        reader.read_lines("input", &mut lines).unwrap();
        assert!(reader.skipped().has_any());
        assert_eq!(arriving.try_recv().unwrap().url.path(), "/b", "it goes on");
    }
}
