//! The web server that has the files.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::time::Duration;

use fairbat_tests::nginx::{Config, Nginx};

use super::serve::Serve;
use super::site::{FILE, Site};
use super::watch::Watch;
use super::{Contender, ContenderError};
use crate::record::BackgroundRecord;

/// Name of the file that says what there is to fetch, when it is more than one.
const LIST: &str = "list";

/// A web server that has the files.
pub(super) struct Origin {
    server: Server,
    /// Where it has them; ends with a slash.
    base: String,
}

/// Which one; ends when it is dropped.
enum Server {
    Nginx(Nginx),
    Serve { watch: Watch, _serve: Serve },
}

impl Origin {
    /// Starts the server that this contender fetches from.
    pub(super) fn start(site: &Site, contender: Contender) -> Result<Self, ContenderError> {
        let origin = match contender {
            Contender::FairbatServed => Self::serve(site),
            _ => Self::nginx(site, contender),
        };
        origin.map_err(ContenderError::cannot("start the web server"))
    }

    fn nginx(site: &Site, contender: Contender) -> io::Result<Self> {
        let directives = if contender.opens_for_each_job() {
            // The one that asks how long it is, and the one that asks for it.
            "keepalive_requests 2;".to_owned()
        } else {
            String::new()
        };
        let config = Config {
            directives,
            address: site.server_address().into(),
            limit_rate: site.background.server_kb_s.map(|rate| (rate * 1e3) as u64),
            ..Config::default()
        };
        let nginx = site.server.run(move || Nginx::start(&config)).join();
        let nginx =
            nginx.map_err(|_| io::Error::other("nginx did not start; see standard error"))?;
        for served in &site.served {
            symlink(site.origin.join(&served.name), nginx.path(&served.name))?;
        }
        Ok(Self {
            base: nginx.url(""),
            server: Server::Nginx(nginx),
        })
    }

    /// Has it serve another file of that directory, too.
    pub(super) fn add(&self, site: &Site, name: &str) -> io::Result<()> {
        match &self.server {
            Server::Nginx(nginx) => symlink(site.origin.join(name), nginx.path(name)),
            Server::Serve { .. } => Err(io::Error::other("only nginx is given other files")),
        }
    }

    fn serve(site: &Site) -> io::Result<Self> {
        let start = Duration::from_secs_f64(site.background.start_s);
        let serve = Serve::start(&site.server, &site.work, "fairbat-serve", &site.origin)?;
        Ok(Self {
            base: serve.url().to_owned(),
            server: Server::Serve {
                watch: serve.watch(start.saturating_sub(site.clock.now()))?,
                _serve: serve,
            },
        })
    }

    /// Ends the server when this download is over, and notes in its record what
    /// the server was to do and whether it did.
    pub(super) fn finish(self, record: &mut BackgroundRecord) {
        match self.server {
            Server::Nginx(_) => {}
            Server::Serve { watch, .. } => watch.finish(record),
        }
    }

    /// Where the file is, when it is the only one.
    pub(super) fn url(&self) -> String {
        self.url_of(FILE)
    }

    pub(super) fn url_of(&self, name: &str) -> String {
        format!("{}{name}", self.base)
    }

    /// The words that tell a download tool what there is to fetch: a URL, or
    /// where `fairbat` finds a list of them, which is written now.
    pub(super) fn source(
        &self,
        site: &Site,
        contender: Contender,
    ) -> Result<Vec<String>, ContenderError> {
        if site.background.transfer.is_empty() {
            return Ok(vec![self.url()]);
        }
        let lines = site
            .served
            .iter()
            .map(|served| served.line(&self.url_of(&served.name), contender.has_deadline()));
        let path = site.work.join(LIST);
        fs::write(&path, lines.collect::<String>()).map_err(ContenderError::cannot(
            "write the list of what there is to fetch",
        ))?;
        Ok(vec!["-i".to_owned(), path.display().to_string()])
    }
}
