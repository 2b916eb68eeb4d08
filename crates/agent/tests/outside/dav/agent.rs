//! An agent of a test's own: a store with a lane and a carrier, and what pushes to
//! it.

use std::path::Path;
use std::sync::Arc;

use fairbat::lane::{Lane, LaneSettings, Service};
use fairbat::settings::HttpSettings;
use fairbat::transport::{LaneClient, LeverPolicy};
use fairbat_agent::filter::EntryFilter;
use fairbat_agent::state::StateDatabase;
use fairbat_agent::store::{self, Store};
use fairbat_agent::sync::{
    Delete, Detect, LaneStore, PushContext, PushSettings, RunProgress, RunReport, RunSettings,
    Verify, push,
};
use tempfile::TempDir;
use tokio::sync::watch;

use super::servers::StoreAccess;

const CONNECTIONS: u32 = 4;

pub(crate) struct Agent {
    pub(crate) store: Arc<dyn Store>,
    lane: Lane,
    state: StateDatabase,
    _directory: TempDir,
}

impl Agent {
    pub(crate) fn new((store, credentials): &StoreAccess) -> Self {
        let wanted = LeverPolicy::Sender(Default::default());
        let lane = Lane::start(LaneSettings {
            is_held: wanted.best().holds(),
            ..LaneSettings::new(CONNECTIONS)
        });
        let lane = lane.unwrap();
        let http = HttpSettings::default();
        let carrier =
            LaneClient::start(&http, &lane, wanted, CONNECTIONS, Service::Scavenge).unwrap();
        let directory = tempfile::tempdir().unwrap();
        Self {
            store: store::open(store, credentials, carrier).unwrap(),
            lane,
            state: StateDatabase::open(&directory.path().join("state")).unwrap(),
            _directory: directory,
        }
    }

    /// Everything goes below `home`.
    pub(crate) async fn push(&self, source: &Path) -> RunReport {
        let settings = PushSettings {
            run: RunSettings {
                prefix: "home".to_owned(),
                key_file: None,
                filter: EntryFilter::everything(),
                detect: Detect::Metadata,
                delete: Delete::Never,
                service: Service::Scavenge,
                weight: 0.02,
                rate_limits: Vec::new(),
                connections: CONNECTIONS,
                seed: 1,
            },
            source: source.to_owned(),
            address: "store".to_owned(),
            one_file_system: false,
            verify: Verify::Sent,
            identity: 1,
            publish_interval: fairbat_agent::sync::PUBLISH_INTERVAL,
        };
        let context = PushContext {
            state: self.state.clone(),
            writer: self.state.writer(),
            store: LaneStore {
                store: Arc::clone(&self.store),
                host: "store".to_owned(),
                lane: self.lane.clone(),
            },
        };
        let (_run, stop) = watch::channel(false);
        push(context, "home", settings, RunProgress::default(), stop).await
    }
}
