//! What is right is understood.

use std::time::Duration;

use fairbat::lane::Service;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::*;
use crate::calendar::Calendar;
use crate::config::credentials::{Origin, Spec, Wanted};
use crate::filter::EntryFilter;

fn calendar(text: &str) -> Calendar {
    Calendar::parse(text).unwrap()
}

fn local(path: &str, file_mode: u32) -> StoreConfig {
    let path = path.into();
    StoreConfig::Local(Local { path, file_mode })
}

#[test]
fn an_empty_file_is_all_defaults() {
    let config = config("");
    let expected = AgentConfig {
        state: "/var/lib/fairbat".into(),
        socket: "/run/fairbat/agent.sock".into(),
        listen: Some("127.0.0.1:9797".parse().unwrap()),
        share_lanes: true,
        hold_status: "/run/fairbat/hold/status.json".into(),
        connections: 4,
        min_weight: 0.02,
        max_weight: 1,
        sender: SenderPolicy::Vegas,
        controller: ControllerPolicy::Share,
        stream: AdmissionSettings::stream(),
        limit_rate: None,
        restore_group: None,
        restore_owners: false,
        write_paths: Vec::new(),
    };
    assert_eq!(config.agent, expected);
    assert!(config.stores.is_empty() && config.jobs.is_empty());
}

#[test]
fn a_fleet_has_a_server_a_site_and_defaults() {
    assert_eq!(config("").fleet, None);
    let fleet = |lines: &str| {
        let text = format!(
            "[fleet]\nurl = \"nats://nats.example.org:4222\"\nsite = \"berlin-1_a\"\n{lines}"
        );
        config(&text).fleet.unwrap()
    };
    let expected = FleetConfig {
        url: "nats://nats.example.org:4222".parse().unwrap(),
        site: "berlin-1_a".to_owned(),
        host: "alpha_example_org".to_owned(),
        credentials: None,
        cacert: None,
        coordinate: true,
        connections: 8,
    };
    assert_eq!(fleet("host = \"Alpha.example.org\""), expected);
    let full = fleet(
        "host = \"b\"\ncredentials = \"/etc/fairbat/site.creds\"\ncacert = \"/etc/ca.pem\"\n\
         coordinate = false\nconnections = 64",
    );
    let expected = FleetConfig {
        host: "b".to_owned(),
        credentials: Some("/etc/fairbat/site.creds".into()),
        cacert: Some("/etc/ca.pem".into()),
        coordinate: false,
        connections: 64,
        ..expected
    };
    assert_eq!(full, expected);
    let text = "[fleet]\nurl = \"tls://[::1]\"\nsite = \"a\"\nhost = \"b\"";
    assert_eq!(config(text).fleet.unwrap().url.as_str(), "tls://[::1]");
}

#[test]
fn systemd_says_where_files_go_unless_the_file_does() {
    let variable = |name: &str| match name {
        "STATE_DIRECTORY" => Some("/var/lib/a:/var/lib/b".into()),
        "RUNTIME_DIRECTORY" => Some("/run/a".into()),
        _ => None,
    };
    let agent = |text| {
        let config = Config::parse(text, Path::new("agent.toml"), variable);
        config.unwrap().agent
    };
    let silent = agent("");
    assert_eq!(silent.state, Path::new("/var/lib/a"));
    assert_eq!(silent.socket, Path::new("/run/a/agent.sock"));
    let loud = agent("[agent]\nstate = \"/s/\"\nsocket = \"/r/s\"");
    assert_eq!(loud.state, Path::new("/s"));
    assert_eq!(loud.socket, Path::new("/r/s"));
}

#[test]
fn the_agent_has_settings_of_its_own() {
    let agent = config(
        "[agent]\nlisten = false\nconnections = 64\nmin_weight = 1\nlimit_rate = \"1.5M\"\n",
    )
    .agent;
    assert_eq!(agent.listen, None);
    assert_eq!(agent.connections, 64);
    assert!((agent.min_weight - 1.0).abs() < f64::EPSILON);
    assert_eq!(agent.limit_rate, Some(3 << 19));
    let agent = config("[agent]\nlisten = \"[::]:80\"\nlimit_rate = 5000").agent;
    assert_eq!(agent.listen, Some("[::]:80".parse().unwrap()));
    assert_eq!(agent.limit_rate, Some(5000));
}

#[test]
fn the_example_shows_every_key_and_is_right() {
    let config = config(EXAMPLE);
    assert_eq!(
        config.stores.keys().collect::<Vec<_>>(),
        ["disk", "nas", "offsite"]
    );
    let [home, etc, media] = &config.jobs[..] else {
        panic!("{:?}", config.jobs);
    };
    assert_eq!(
        home.timing,
        Timing::Calendar(vec![calendar("Mon..Fri 22:00")])
    );
    assert_eq!(home.due, Some(Due::By("06:00".parse().unwrap())));
    let Delete::Mirror {
        max: MaxDelete::Share(share),
    } = home.delete
    else {
        panic!("{:?}", home.delete);
    };
    assert!((share - 0.1).abs() < 1e-12);
    assert_eq!(etc.mode, JobMode::Stream);
    let named = AdmissionSettings::stream();
    assert_eq!(config.agent.stream, named, "the defaults are shown");
    assert_eq!(etc.timing, Timing::Every(Duration::from_secs(6 * 3600)));
    assert_eq!(
        media.course,
        Course::Pull {
            from: StoreDirectory {
                store: "nas".to_owned(),
                path: "media".to_owned()
            },
            to: "/srv/media".into()
        }
    );
    assert_eq!(media.due, Some(Due::Within(Duration::from_secs(12 * 3600))));
    let [ollama, nightly] = &config.holds[..] else {
        panic!("{:?}", config.holds);
    };
    assert_eq!(ollama.name, "ollama.service");
    assert_eq!(ollama.target, HoldTarget::Unit("ollama.service".to_owned()));
    assert!(ollama.is_due(&"2026-03-02T09:00:00[UTC]".parse().unwrap()));
    assert!(
        !ollama.is_due(&"2026-03-01T09:00:00[UTC]".parse().unwrap()),
        "a Sunday"
    );
    assert_eq!(nightly.name, "nightly");
    assert_eq!(nightly.bytes, Some(40 << 30));
    assert_eq!(nightly.due, Some(Due::By("06:00".parse().unwrap())));
    for keys in [
        &AgentConfig::KEYS[..],
        &AgentConfig::STREAM_KEYS,
        &fleet::KEYS,
        &store::S3_KEYS,
        &store::HTTP_KEYS,
        &store::LOCAL_KEYS,
        &jobs::KEYS,
        &hold::KEYS,
    ] {
        for key in keys {
            assert!(EXAMPLE.contains(&format!("{key} = ")), "{key}");
        }
    }
}

#[test]
fn a_stream_has_a_law_by_name_and_numbers() {
    let agent =
        config("[agent]\nconnections = 64\nsender = \"cdg\"\ncontroller = \"mbc\"\n[stream]\nlaw = \"paper\"\ntau = 3\ngamma = 0.1").agent;
    let paper = AdmissionSettings::paper();
    let law = AdmissionSettings {
        tau: 3.0,
        gain: paper.gain.beginning_at(0.1),
        m_max: 64,
        ..paper
    };
    assert_eq!(agent.stream, law);
    assert_eq!(agent.sender, SenderPolicy::Cdg);
    assert_eq!(agent.controller, ControllerPolicy::Mbc);
    let due = Timestamp::UNIX_EPOCH;
    for (mode, without) in [("stream", Service::Stream), ("scavenge", Service::Scavenge)] {
        let job = job(&push(&format!("mode = {mode:?}")));
        assert_eq!(job.service(None), without);
        assert_eq!(job.service(Some(due)), Service::ByDeadline(due));
    }
}

#[test]
fn a_job_says_little() {
    let found = job(&push(""));
    let expected = JobConfig {
        name: "j".to_owned(),
        course: Course::Push {
            from: "/home".into(),
            to: StoreDirectory {
                store: "nas".to_owned(),
                path: "home".to_owned(),
            },
        },
        timing: Timing::ByHand,
        due: None,
        mode: JobMode::Scavenge,
        filter: EntryFilter::everything(),
        delete: Delete::Never,
        verify: Verify::Sent,
        detect: Detect::Metadata,
        one_file_system: false,
        setuid: false,
        limit_rate: None,
        min_weight: 0.02,
        check: Timing::Calendar(vec![calendar("weekly")]),
        check_bytes_per_day: 2 << 30,
        authenticate: true,
    };
    assert_eq!(found, expected);
}

#[test]
fn a_job_says_all() {
    let found = job(&push(
        "schedule = [\"daily\", \"Mon 12:00 UTC\"]\nwithin = \"90m\"\ninclude = [\"/a\"]\n\
         exclude = [\"*.tmp\", \"!b\"]\ndelete = \"mirror\"\nmax_delete = 7\n\
         verify = \"read-back\"\ndetect = \"content\"\none_file_system = true\n\
         limit_rate = \"1K\"\nmin_weight = 0.5\ncheck = [\"daily\"]\n\
         check_bytes_per_day = \"3M\"\nauthenticate = false",
    ));
    let calendars = vec![calendar("daily"), calendar("Mon 12:00 UTC")];
    assert_eq!(found.timing, Timing::Calendar(calendars));
    assert_eq!(found.due, Some(Due::Within(Duration::from_secs(5400))));
    let exclude = ["*.tmp".to_owned(), "!b".to_owned()];
    let filter = EntryFilter::new(&["/a".to_owned()], &exclude).unwrap();
    assert_eq!(found.filter, filter);
    let max = MaxDelete::Files(7);
    assert_eq!(found.delete, Delete::Mirror { max });
    assert_eq!(found.verify, Verify::ReadBack);
    assert_eq!(found.detect, Detect::Content);
    assert!(found.one_file_system);
    assert_eq!(found.limit_rate, Some(1024));
    assert!((found.min_weight - 0.5).abs() < f64::EPSILON);
    assert_eq!(found.check, Timing::Calendar(vec![calendar("daily")]));
    assert_eq!(found.check_bytes_per_day, 3 << 20);
    assert!(!found.authenticate);
    assert_eq!(job(&push("check = false")).check, Timing::ByHand);
}

#[test]
fn a_job_without_a_weight_has_that_of_the_agent() {
    let text = format!("[agent]\nmin_weight = 0.25\n{}", push(""));
    assert!((job(&text).min_weight - 0.25).abs() < f64::EPSILON);
}

#[test]
fn paths_lose_needless_slashes_and_may_be_all_of_a_store() {
    let text = with_job("source = \"//home//a/./\"\ndestination = \"nas:a/b/\"");
    let Course::Push { from, to } = job(&text).course else {
        panic!("a push");
    };
    assert_eq!(from.as_os_str(), "/home/a");
    assert_eq!(to.to_string(), "nas:a/b");
    let text = with_job("source = \"/home\"\ndestination = \"nas:\"");
    assert_eq!(job(&text).course.place().path, "");
}

#[test]
fn stores_have_defaults() {
    let stores = config(STORES).stores;
    let keys = |origin| Spec {
        wanted: Wanted::Keys,
        origin,
    };
    let expected = S3 {
        endpoint: None,
        region: "us-east-1".to_owned(),
        bucket: "backups".to_owned(),
        prefix: "hosts/alpha".to_owned(),
        path_style: false,
        credentials: keys(Origin::Environment),
        cacert: None,
    };
    assert_eq!(stores["offsite"], StoreConfig::S3(expected.clone()));
    let StoreConfig::Webdav(nas) = &stores["nas"] else {
        panic!("{stores:?}");
    };
    assert_eq!(nas.url.as_str(), "https://nas.example.org/dav/");
    assert_eq!(nas.credentials.wanted, Wanted::Login);
    assert_eq!(stores["disk"], local("/mnt/backup", DEFAULT_FILE_MODE));
    for (text, mode) in [("0640", 0o640), ("600", 0o600), ("0666", 0o666)] {
        let text = format!("[stores.a]\ntype = \"local\"\npath = \"/a\"\nfile_mode = {text:?}\n");
        assert_eq!(config(&text).stores["a"], local("/a", mode));
    }
    let text = "[stores.a]\ntype = \"s3\"\nbucket = \"b\"\nendpoint = \"http://127.0.0.1:9000\"\n\
        credentials = \"a.keys\"\n";
    let StoreConfig::S3(found) = &config(text).stores["a"] else {
        panic!("an S3 store");
    };
    assert!(found.path_style);
    assert_eq!(
        found.credentials,
        keys(Origin::Service("a.keys".to_owned()))
    );
    let text = format!("{text}path_style = false\n");
    let StoreConfig::S3(found) = &config(&text).stores["a"] else {
        panic!("an S3 store");
    };
    assert!(!found.path_style);
}

#[test]
fn the_earliest_of_several_calendars_is_next_and_the_deadline_follows_the_start() {
    let now: DateTime = "2026-05-01T12:00:00".parse().unwrap();
    let now = now.to_zoned(TimeZone::UTC).unwrap();
    let timing = job(&push("schedule = [\"23:00\", \"22:00\", \"2020-1-1\"]")).timing;
    let start = timing.next_by_calendar(&now).unwrap();
    assert_eq!(start.datetime().to_string(), "2026-05-01T22:00:00");
    let by = Due::By("06:00".parse().unwrap()).after(&start).unwrap();
    assert_eq!(by.to_string(), "2026-05-02T06:00:00Z");
    let within = Due::Within(Duration::from_secs(3600)).after(&start);
    assert_eq!(within.unwrap().to_string(), "2026-05-01T23:00:00Z");
    assert_eq!(Timing::ByHand.next_by_calendar(&now), None);
}
