use super::*;
use crate::samples::{DirectionRecord, Lateness, SenderSample};

fn setup(more: &str) -> Scenario {
    let text = format!(
        "description = \"test\"\nduration_s = 10.0\nmeasure_from_s = 4.0\n{more}\n\
         [[link]]\nrate_mbit = 12.0\ndelay_ms = 10.0\nqueue = {{ packets = 50 }}\n"
    );
    toml::from_str(&text).unwrap()
}

/// Samples of every second: so many bytes of each.
fn link(foreground: &[u64], background: &[u64]) -> LinkRecord {
    let samples = Samples {
        interval_ms: 1000,
        queue_packets: (0..foreground.len() as u32).collect(),
        queue_bytes: vec![0; foreground.len()],
        foreground: foreground.to_vec(),
        background: background.to_vec(),
        ..Samples::default()
    };
    LinkRecord {
        forward: DirectionRecord {
            samples,
            ..DirectionRecord::default()
        },
        backward: DirectionRecord::default(),
        cpu_s: 2.0,
        lateness: Lateness::default(),
    }
}

fn of<'a>(setup: &'a Scenario, links: &'a [LinkRecord]) -> Measured<'a> {
    Measured {
        setup,
        links,
        rtt: &[],
        flows: &[],
        fetches: &[],
        background: &[],
        lab_cpu_s: 5.0,
        waited_s: Some(2.5),
    }
}

#[test]
fn links_are_measured_in_the_window_only() {
    let setup = setup("");
    // 8 Mbit/s and 2.4 Mbit/s of payload from 4 s on, nonsense before.
    let mut foreground = vec![9_000_000; 4];
    foreground.extend([1_000_000; 6]);
    let mut background = vec![9_000_000; 4];
    background.extend([300_000; 6]);
    let links = [link(&foreground, &[0; 10]), link(&foreground, &background)];
    let summary = summarise(&of(&setup, &links));
    assert!((summary.background_mbit - 2.4).abs() < 1e-9);
    let expected = 8.0 * 1500.0 / 1448.0 / 12.0;
    assert!((summary.utilisation - expected).abs() < 1e-9);
    assert!((summary.queue_mean_packets - 6.5).abs() < 1e-9);
    assert!((summary.link_cores - 0.4).abs() < 1e-9);
    assert!((summary.lab_cores - 0.5).abs() < 1e-9);
    assert_eq!(summary.waited, Some(0.25));
}

#[test]
fn the_capacity_follows_the_schedule() {
    let mut setup = setup("");
    setup.link[0].schedule = toml::from_str::<std::collections::BTreeMap<String, _>>(
        "steps = [{ at_s = 4.0, rate_mbit = 6.0 }, { at_s = 7.0, rate_mbit = 18.0 }]",
    )
    .map(|mut steps| steps.remove("steps").unwrap())
    .unwrap();
    let links = [link(&[362_000; 10], &[362_000; 10])];
    // 724 kB a second are 6 Mbit/s with headers, of 12 in the mean.
    let summary = summarise(&of(&setup, &links));
    assert!((summary.utilisation - 0.5).abs() < 1e-9);
}

#[test]
fn a_flow_is_measured_while_it_is_active() {
    let setup = setup(
        "[[foreground]]\ntraffic = { greedy = { flows = 2 } }\nstop_s = 6.05\n\
         [[foreground]]\ntraffic = { constant = { rate_mbit = 1.0 } }\nstart_s = 8.0\n\
         [[foreground]]\ntraffic = { greedy = {} }\nstop_s = 3.0\n",
    );
    let flow = |received: Vec<u64>| FlowRecord {
        name: "flow".to_owned(),
        backward: false,
        received,
        packets: Vec::new(),
    };
    // 10 kB each 100 ms are 0.8 Mbit/s.
    let steady: Vec<u64> = (1..=100).map(|i| i * 10_000).collect();
    // Nothing until 8 s, then 20 kB.
    let late = (1..=100u64)
        .map(|i| i.saturating_sub(80) * 20_000)
        .collect();
    let flows = [
        flow(steady.clone()),
        flow(vec![1_000_000]),
        flow(late),
        flow(steady),
    ];
    let measured = Measured {
        flows: &flows,
        ..of(&setup, &[])
    };
    let got = summarise(&measured).foreground_mbit;
    let expected = [0.8, 0.0, 1.6, 0.0];
    assert_eq!(got.len(), expected.len());
    for (got, expected) in got.iter().zip(expected) {
        assert!((got - expected).abs() < 1e-9, "{got} for {expected}");
    }
}

#[test]
fn senders_and_streams_are_measured_where_they_arrive() {
    let setup = setup("");
    // The link carried 8 Mbit/s of the background, of which a tenth twice.
    let links = [link(&[0; 10], &[1_000_000; 10])];
    let sender = BackgroundRecord {
        received: (1..=100).map(|i| i * 90_000).collect(),
        ..BackgroundRecord::default()
    };
    // 0.8 Mbit/s until 5 s, then nothing; the background begins after 2 s.
    let stream = FlowRecord {
        name: "constant".to_owned(),
        backward: false,
        received: (1..=100u64).map(|i| i.min(50) * 10_000).collect(),
        packets: Vec::new(),
    };
    let measured = Measured {
        background: &[sender, BackgroundRecord::default()],
        flows: &[stream],
        ..of(&setup, &links)
    };
    let got = summarise(&measured);
    assert!((got.background_mbit - 8.0).abs() < 1e-9);
    assert!((got.goodput_mbit() - 7.2).abs() < 1e-9, "{got:?}");
    let first = got.foreground_first_mbit.unwrap();
    assert!((first - 0.3).abs() < 1e-9, "{first}");
    let other = summarise(&of(&setup, &links));
    assert_eq!(other.received_mbit, None);
    assert_eq!(other.goodput_mbit(), other.background_mbit);
    assert_eq!(other.foreground_first_mbit, None);
}

#[test]
fn probes_and_fetches_of_the_window_count() {
    let setup = setup("");
    let probe = |t, ms| Probe { t, ms };
    let rtt = [
        probe(3.9, Some(900.0)),
        probe(4.0, Some(20.0)),
        probe(5.0, Some(30.0)),
        probe(6.0, None),
        probe(7.0, Some(40.0)),
    ];
    let fetch = |t, seconds| Fetch {
        t,
        bytes: 1000,
        seconds,
    };
    let fetches = [
        fetch(1.0, Some(9.0)),
        fetch(4.5, Some(1.0)),
        fetch(5.5, Some(2.0)),
        fetch(9.5, None),
    ];
    let measured = Measured {
        rtt: &rtt,
        fetches: &fetches,
        ..of(&setup, &[])
    };
    let summary = summarise(&measured);
    assert_eq!(summary.rtt_mean_ms, Some(30.0));
    assert_eq!(summary.rtt_median_ms, Some(30.0));
    assert_eq!(summary.rtt_p95_ms, Some(39.0));
    assert_eq!(summary.probe_loss, 0.25);
    assert_eq!((summary.fetches, summary.unfinished), (3, 1));
    // The last had taken half a second when the run was over.
    assert_eq!(summary.fetch_mean_s, Some(3.5 / 3.0));
    assert_eq!(summary.fetch_p95_s, Some(1.9));
}

#[test]
fn nothing_is_zero_and_never_nan() {
    let setup = setup("");
    let empty = [LinkRecord {
        forward: DirectionRecord::default(),
        backward: DirectionRecord::default(),
        cpu_s: 0.0,
        lateness: Lateness::default(),
    }];
    let none = Summary::default();
    for links in [&[][..], &empty[..]] {
        let measured = Measured {
            lab_cpu_s: 0.0,
            waited_s: None,
            ..of(&setup, links)
        };
        assert_eq!(summarise(&measured), none);
    }
}

#[test]
fn use_is_of_what_radio_could_have_carried() {
    let setup = setup("");
    let mut links = [link(&[0; 10], &[500_000; 10])];
    links[0].forward.samples.capacity = vec![1_000_000; 10];
    let summary = summarise(&of(&setup, &links));
    let expected = 0.5 * 1500.0 / 1448.0;
    assert!((summary.utilisation - expected).abs() < 1e-9);
}

#[test]
fn a_course_is_short_and_has_rates_and_weights() {
    let text = "description = \"test\"\nduration_s = 800.0\nmeasure_from_s = 4.0\n\
                [[link]]\nrate_mbit = 12.0\ndelay_ms = 10.0\nqueue = { packets = 50 }\n\
                [background]\nsize_mb = 5.0\ndeadline_s = 500.0\ncontroller = \"mbc\"\n";
    let mut setup: Scenario = toml::from_str(text).unwrap();
    let link = LinkRecord {
        forward: DirectionRecord {
            samples: Samples {
                interval_ms: 1000,
                foreground: vec![125_000; 800],
                background: (0..800)
                    .map(|t| if t < 300 { 0 } else { 250_000 })
                    .collect(),
                ..Samples::default()
            },
            ..DirectionRecord::default()
        },
        backward: DirectionRecord::default(),
        cpu_s: 0.0,
        lateness: Lateness::default(),
    };
    let sample = |t: f64| SenderSample {
        t,
        w: 0.5,
        ..SenderSample::default()
    };
    let background = [BackgroundRecord {
        sender: (300..500).map(|t| sample(f64::from(t))).collect(),
        ..BackgroundRecord::default()
    }];
    let links = [link];
    let course = Course::of(&setup, &links, &background).unwrap();
    assert_eq!((course.every_s, course.w.len()), (2.0, 400));
    let w = [140, 160, 260].map(|step| course.w[step]);
    assert_eq!(w, [0.0, 0.5, 0.0]);
    assert!(course.foreground_mbit.iter().all(|rate| *rate == 1.0));
    assert_eq!(course.background_mbit[149..151], [0.0, 2.0]);
    setup.background.controller = None;
    assert_eq!(Course::of(&setup, &links, &background), None);
}

#[test]
fn a_rate_is_set_against_the_mean_of_the_greedy_flows_that_are_there() {
    let text = "description = \"test\"\nduration_s = 40.0\nmeasure_from_s = 4.0\n\
                [[link]]\nrate_mbit = 10.0\ndelay_ms = 11.0\nqueue = { bdp = 1.0 }\n\
                [[foreground]]\ntraffic = { greedy = {} }\nstop_s = 20.0\n\
                [[foreground]]\ntraffic = { greedy = {} }\nstart_s = 10.0\nstop_s = 20.0\n\
                [[foreground]]\ntraffic = { udp = { rate_mbit = 1.0, packet_bytes = 1500 } }\n\
                [background]\nstart_s = 4.0\nsize_mb = 5.0\ndeadline_s = 20.0\n";
    let scenario: Scenario = toml::from_str(text).unwrap();
    let of = |background: &[f64], finish_s: f64| {
        let mut summary = Summary {
            foreground_mbit: vec![4.0, 3.0, 1.0],
            ..Summary::default()
        };
        summary.deadline = Some(DeadlineFigures {
            finish_s,
            ..Default::default()
        });
        // Of one flow until 10 s, then of two, then only datagrams.
        let foreground = [5.0, 5.0, 7.0, 7.0, 1.0, 1.0];
        summary.course = Some(Course {
            every_s: 5.0,
            foreground_mbit: foreground.to_vec(),
            background_mbit: background.to_vec(),
            w: vec![1.0; 6],
        });
        summary.rate_against_greedy(&scenario)
    };
    // 2 of 4, 3 of 3 and 3 of 3; before, and without anybody, nothing counts.
    let got = of(&[9.0, 2.0, 3.0, 3.0, 9.0, 9.0], 30.0).unwrap();
    assert!((got - 0.8).abs() < 1e-9, "{got}");
    // Nothing beside one flow does not hide the other.
    let got = of(&[9.0, 0.0, 6.0, 6.0, 9.0, 9.0], 30.0).unwrap();
    assert!((got - 1.2).abs() < 1e-9, "{got}");
    // It was there after 10 s.
    let got = of(&[9.0, 2.0, 3.0, 9.0, 9.0, 9.0], 10.0).unwrap();
    assert!((got - 5.0 / 7.0).abs() < 1e-9, "{got}");
    assert_eq!(of(&[], 10.0), None);
}
