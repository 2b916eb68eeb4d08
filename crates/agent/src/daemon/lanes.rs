//! The two lanes of the agent, what they carry, and the stores at their ends.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dalbe::receive_window::ReceiverPolicy;
use dalbe::sender::SenderPolicy;
use fairbat::lane::{Lane, LaneSettings};
use fairbat::settings::HttpSettings;
use fairbat::transport::{LaneClient, Lever, RateLimit, Wanted};

use crate::config::credentials::{self, Credentials};
use crate::config::{self, Agent, Config};
use crate::status::Direction;
use crate::store::{
    DavSettings, Dialect, Login, S3Settings, Store, StoreError, StoreErrorKind, StoreSettings,
};

/// How long a connection may take to open.
const CONNECT: Duration = Duration::from_secs(30);

/// How long a server may stay silent.
const SILENCE: Duration = Duration::from_secs(60);

/// How servers are spoken to, which are to be trusted by these authorities.
pub(super) fn patient(cacert: Option<PathBuf>) -> HttpSettings {
    HttpSettings {
        cacert,
        connect_timeout: Some(CONNECT),
        stall_timeout: Some(SILENCE),
        ..HttpSettings::default()
    }
}

/// One direction.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) direction: Direction,
    pub(super) lane: Lane,
    pub(super) lever: Lever,
    pub(super) ceiling: Option<Arc<RateLimit>>,
    wanted: Wanted,
    connections: u32,
}

impl Way {
    pub(super) fn open(direction: Direction, agent: &Agent) -> Result<Self, String> {
        let wanted = match direction {
            Direction::Push => Wanted::Sender(SenderPolicy::default()),
            Direction::Pull => Wanted::Receiver(ReceiverPolicy::default()),
        };
        let lever = wanted.best();
        let lane = Lane::start(LaneSettings {
            most_connections: agent.connections,
            weight: agent.min_weight,
            limit_rate: agent.limit_rate,
            is_held: lever.holds(),
        });
        Ok(Self {
            direction,
            lane: lane.map_err(|error| error.to_string())?,
            lever,
            ceiling: agent.limit_rate.map(RateLimit::new).map(Arc::new),
            wanted,
            connections: agent.connections,
        })
    }

    /// A store by its name, with the credentials that it has now.
    pub(super) fn store(
        &self,
        config: &Config,
        name: &str,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<(Store, String), StoreError> {
        let refused = |message: String| StoreError::new(StoreErrorKind::Refused, message);
        let store = config
            .stores
            .get(name)
            .ok_or_else(|| refused(format!("there is no store {name}")))?;
        let known = store
            .credentials()
            .map(|spec| credentials::read(name, spec, variable));
        let known = known
            .transpose()
            .map_err(|error| StoreError::new(StoreErrorKind::Credentials, error.to_string()))?;
        let (settings, cacert, host) = settings(store, known)?;
        let http = patient(cacert);
        let carrier = LaneClient::start(&http, &self.lane, self.wanted, self.connections)
            .map_err(|error| refused(error.message).with_hint(error.hint))?;
        let store = Store::open(&settings, &carrier, &self.lane)?;
        Ok((store, host))
    }
}

/// What a store is reached by, whom it trusts, and which host it is.
fn settings(
    store: &config::Store,
    known: Option<Credentials>,
) -> Result<(StoreSettings, Option<PathBuf>, String), StoreError> {
    match store {
        config::Store::S3(s3) => {
            let Some(Credentials::Keys {
                access_key_id,
                secret_access_key,
                session_token,
            }) = known
            else {
                return Err(StoreError::new(
                    StoreErrorKind::Credentials,
                    "an S3 store needs an access key",
                )
                .with_hint("name a file under credentials, or set AWS_ACCESS_KEY_ID"));
            };
            let host = match &s3.endpoint {
                Some(endpoint) => authority(endpoint),
                None => format!("s3.{}.amazonaws.com", s3.region),
            };
            let settings = S3Settings {
                endpoint: s3.endpoint.clone(),
                region: s3.region.clone(),
                bucket: s3.bucket.clone(),
                prefix: s3.prefix.clone(),
                path_style: s3.path_style,
                access_key_id,
                secret_access_key: secret_access_key.expose().to_owned(),
                session_token: session_token.map(|token| token.expose().to_owned()),
            };
            Ok((
                StoreSettings::S3(Box::new(settings)),
                s3.cacert.clone(),
                host,
            ))
        }
        config::Store::Local(path) => Ok((
            StoreSettings::Local(path.clone()),
            None,
            path.display().to_string(),
        )),
        config::Store::Webdav(http) => Ok(behind_url(http, known, Dialect::Webdav)),
        config::Store::Fairbat(http) => Ok(behind_url(http, known, Dialect::Fairbat)),
    }
}

fn behind_url(
    http: &config::Http,
    known: Option<Credentials>,
    dialect: Dialect,
) -> (StoreSettings, Option<PathBuf>, String) {
    let login = match known {
        Some(Credentials::Password { user, password }) => Login::Password {
            user,
            password: password.expose().to_owned(),
        },
        Some(Credentials::Token(token)) => Login::Token(token.expose().to_owned()),
        Some(Credentials::Anonymous | Credentials::Keys { .. }) | None => Login::Anonymous,
    };
    let settings = DavSettings {
        url: http.url.clone(),
        login,
        dialect,
    };
    (
        StoreSettings::Dav(Box::new(settings)),
        http.cacert.clone(),
        authority(&http.url),
    )
}

pub(super) fn authority(url: &url::Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port_or_known_default() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}
