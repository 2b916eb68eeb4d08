//! An agent as the daemon sets it up: a lane, a carrier, a store and a state.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fairbat::lane::{Lane, LaneSettings, Service};
use fairbat::settings::HttpSettings;
use fairbat::transport::{LaneClient, LeverPolicy};
use fairbat_agent::config;
use fairbat_agent::config::credentials::StoreCredentials;
use fairbat_agent::filter::EntryFilter;
use fairbat_agent::state::StateDatabase;
use fairbat_agent::store::{self, Store};
use fairbat_agent::sync::{
    Delete, Detect, LaneStore, PullSettings, PushContext, PushSettings, RunProgress, RunReport,
    RunSettings, Verify, collect, pull, push,
};
use tokio::sync::watch;

/// Connections of a lane.
pub(crate) const CONNECTIONS: u32 = 4;

/// A store, and the credentials for it.
pub(crate) type StoreAccess = (config::StoreConfig, StoreCredentials);

/// A directory as a store.
pub(crate) fn local_store(directory: &Path) -> StoreAccess {
    let local = config::Local {
        path: directory.to_owned(),
        file_mode: config::DEFAULT_FILE_MODE,
    };
    (
        config::StoreConfig::Local(local),
        StoreCredentials::Anonymous,
    )
}

/// See the module.
pub(crate) struct Agent {
    pub(crate) store: Arc<dyn Store>,
    state: StateDatabase,
    push_lane: Lane,
    pull_lane: Lane,
    pull_store: Arc<dyn Store>,
}

fn lane(wanted: LeverPolicy, silence: Duration) -> (Lane, LaneClient) {
    let lane = Lane::start(LaneSettings {
        is_held: wanted.best().holds(),
        ..LaneSettings::new(CONNECTIONS)
    });
    let lane = lane.expect("a lane");
    let http = HttpSettings {
        stall_timeout: Some(silence),
        ..HttpSettings::default()
    };
    let carrier =
        LaneClient::start(&http, &lane, wanted, CONNECTIONS, Service::Scavenge).expect("a carrier");
    (lane, carrier)
}

/// What a push and a pull do unless a test says otherwise.
fn run_settings() -> RunSettings {
    RunSettings {
        prefix: "home".to_owned(),
        key_file: None,
        filter: EntryFilter::everything(),
        detect: Detect::Metadata,
        delete: Delete::Never,
        weight: 0.02,
        service: Service::Scavenge,
        rate_limits: Vec::new(),
        connections: CONNECTIONS,
        seed: 1,
    }
}

impl Agent {
    /// An agent that remembers what it did in `state`, a file.
    pub(crate) fn new(settings: &StoreAccess, state: &Path) -> Self {
        Self::waiting(settings, state, Duration::from_secs(60))
    }

    /// One that waits so long for a server that is silent.
    pub(crate) fn waiting(settings: &StoreAccess, state: &Path, silence: Duration) -> Self {
        let (push_lane, push_carrier) = lane(LeverPolicy::Sender(Default::default()), silence);
        let (pull_lane, pull_carrier) = lane(LeverPolicy::Receiver(Default::default()), silence);
        let (store, credentials) = settings;
        let open = |carrier| store::open(store, credentials, carrier).expect("a store");
        Self {
            store: open(push_carrier),
            pull_store: open(pull_carrier),
            state: StateDatabase::open(state).expect("a state"),
            push_lane,
            pull_lane,
        }
    }

    pub(crate) async fn push(&self, source: &Path, delete: Delete) -> RunReport {
        self.push_with(source, |settings| settings.run.delete = delete)
            .await
    }

    pub(crate) async fn push_with(
        &self,
        source: &Path,
        change: impl FnOnce(&mut PushSettings),
    ) -> RunReport {
        self.push_on(&RunProgress::default(), source, change).await
    }

    /// A push that keeps its book in `ledger`.
    pub(crate) async fn push_on(
        &self,
        ledger: &RunProgress,
        source: &Path,
        change: impl FnOnce(&mut PushSettings),
    ) -> RunReport {
        let mut settings = PushSettings {
            run: run_settings(),
            source: source.to_owned(),
            address: "store".to_owned(),
            one_file_system: false,
            verify: Verify::Sent,
            identity: 1,
            publish_interval: fairbat_agent::sync::PUBLISH_INTERVAL,
        };
        change(&mut settings);
        let context = PushContext {
            state: self.state.clone(),
            writer: self.state.writer(),
            store: LaneStore {
                store: Arc::clone(&self.store),
                host: "store".to_owned(),
                lane: self.push_lane.clone(),
            },
        };
        let (_run, stop) = watch::channel(false);
        push(context, "home", settings, ledger.clone(), stop).await
    }

    /// Gives up what nobody goes on with below this place; returns how many
    /// uploads.
    pub(crate) async fn collect(&self, prefix: &str) -> u64 {
        let writer = self.state.writer();
        let collected = collect(&self.state, &writer, "home", &*self.store, prefix);
        collected.await.expect("the store answers")
    }

    pub(crate) async fn pull(&self, to: &Path, delete: Delete) -> RunReport {
        self.pull_with(to, |settings| settings.run.delete = delete)
            .await
    }

    pub(crate) async fn pull_with(
        &self,
        to: &Path,
        change: impl FnOnce(&mut PullSettings),
    ) -> RunReport {
        let (_run, stop) = watch::channel(false);
        self.pull_until(to, change, stop).await
    }

    pub(crate) async fn pull_until(
        &self,
        to: &Path,
        change: impl FnOnce(&mut PullSettings),
        stop: watch::Receiver<bool>,
    ) -> RunReport {
        let mut settings = PullSettings {
            run: run_settings(),
            to: to.to_owned(),
            // All that was pushed comes back.
            setuid: true,
            was_filled: false,
            pusher: None,
            pauses: Vec::new(),
        };
        change(&mut settings);
        let origin = LaneStore {
            store: Arc::clone(&self.pull_store),
            host: "store".to_owned(),
            lane: self.pull_lane.clone(),
        };
        pull(origin, settings, RunProgress::default(), stop).await
    }
}
