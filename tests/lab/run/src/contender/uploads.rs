//! Programs that upload what has no end, `fairbat put` among them, alone or held back by
//! `fairbat run`.

use std::path::PathBuf;

use fairbat_tests::bin::fairbat_binary;
use fairbat_tests::nginx::{Config, Nginx};

use crate::contender::error::{ContenderError, require as require_program};
use crate::contender::kind::{Restraint, Uploader};
use crate::contender::process::Over;
use crate::contender::restrained::{self, fixed_rate, shell, told, written_below};
use crate::contender::served::{BUCKET, FILE};
use crate::contender::servers::{ACCESS_KEY, SECRET_KEY, Store, bytes};
use crate::contender::site::Site;
use crate::contender::tools::words;
use crate::samples::BackgroundRecord;

/// The server that takes uploads; ends when it is dropped.
pub(crate) enum Taker {
    /// By PUT.
    Web(Nginx),
    /// As objects of S3.
    Objects(Store),
}

/// The program that is run.
pub(crate) fn program(uploader: Uploader) -> &'static str {
    match uploader {
        Uploader::Fairbat => "fairbat",
        Uploader::Curl => "curl",
        Uploader::Restic => "restic",
    }
}

/// Looks for the programs.
///
/// # Errors
/// One is not installed.
pub(crate) fn require(uploader: Uploader) -> Result<(), ContenderError> {
    match uploader {
        Uploader::Fairbat => require_program("nginx", "nginx"),
        Uploader::Curl => {
            require_program("nginx", "nginx")?;
            require_program("curl", "curl")
        }
        Uploader::Restic => require_program("restic", "restic"),
    }
}

impl Taker {
    /// Starts the server at the host that the data goes to.
    ///
    /// # Errors
    /// It does not start.
    pub(crate) fn start(site: &Site, uploader: Uploader) -> Result<Self, ContenderError> {
        match uploader {
            Uploader::Fairbat | Uploader::Curl => {
                let config = Config {
                    address: site.client_address(),
                    upload_limit: Some(0),
                    ..Config::default()
                };
                let started = site.client.run(move || Nginx::start(&config)).join();
                let failed = |_| std::io::Error::other("nginx did not start; see standard error");
                started
                    .map(Self::Web)
                    .map_err(failed)
                    .map_err(ContenderError::cannot("start the web server"))
            }
            Uploader::Restic => Store::start(site)
                .map(Self::Objects)
                .map_err(ContenderError::cannot("start the store")),
        }
    }

    /// Where it keeps what has come.
    fn directory(&self, site: &Site) -> PathBuf {
        match self {
            // What comes is there until it is whole.
            Self::Web(nginx) => nginx.path("../temp"),
            Self::Objects(_) => site.download.join(BUCKET),
        }
    }
}

/// Runs it until the run is over.
///
/// # Errors
/// It cannot be started.
pub(crate) fn run(
    site: &Site,
    taker: &Taker,
    uploader: Uploader,
    restraint: Restraint,
    over: &Over,
) -> Result<BackgroundRecord, String> {
    let program = upload(site, taker, uploader, restraint);
    let directory = taker.directory(site);
    restrained::run(
        site,
        &site.server,
        program,
        restraint,
        over,
        |program| match uploader {
            Uploader::Fairbat => told(&program.stdout()),
            Uploader::Curl => written_below(&directory).unwrap_or(0),
            Uploader::Restic => bytes(&directory),
        },
    )
}

/// The command.
fn upload(site: &Site, taker: &Taker, uploader: Uploader, restraint: Restraint) -> Vec<String> {
    let file = site.origin.join(FILE).display().to_string();
    match (taker, uploader) {
        (Taker::Web(nginx), Uploader::Fairbat) => {
            let fairbat = fairbat_binary().display().to_string();
            words(&[&fairbat, "put", "--json", &file, &nginx.url("to")])
        }
        (Taker::Web(nginx), _) => words(&["curl", "-sS", "-f", "-T", &file, &nginx.url("to")]),
        (Taker::Objects(store), _) => {
            let keys = format!("AWS_ACCESS_KEY_ID={ACCESS_KEY} AWS_SECRET_ACCESS_KEY={SECRET_KEY}");
            let repository = format!("s3:{}/{BUCKET}", store.endpoint());
            let limit = match restraint {
                Restraint::Limit => format!("--limit-upload {}", fixed_rate(site)),
                _ => String::new(),
            };
            // What is the same twice is stored once.
            shell(&format!(
                "export {keys} RESTIC_PASSWORD=lab RESTIC_REPOSITORY={repository}; \
                 restic -q --no-cache init && \
                 restic -q --no-cache backup {limit} --stdin < /dev/urandom"
            ))
        }
    }
}
