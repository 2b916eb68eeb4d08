//! `--follow`.

use fairbat::lane::Gain;

use super::*;

fn follow(flags: &[&str]) -> Result<Following, String> {
    let words = [&["-i", "-", "--follow"], flags].concat();
    match Process::default().resolve(&words)?.1 {
        Downloads::Follow(following) => Ok(following),
        Downloads::Batch(requests) => panic!("{requests:?}"),
    }
}

#[test]
fn the_law_is_named_and_its_numbers_may_be_given() {
    let law = follow(&[]).expect("the defaults").law;
    assert_eq!(law, AdmissionSettings::stream());
    let law = follow(&["--law", "paper", "-x", "64"]).expect("right").law;
    let paper = AdmissionSettings::paper();
    assert_eq!(law, AdmissionSettings { m_max: 64, ..paper });
    let words = [
        "--tau=2.5",
        "--gamma=0.04",
        "--kappa=0.5",
        "--min-connections=1",
        "URL",
    ];
    let words = words.map(|word| if word == "URL" { URL } else { word });
    let following = follow(&words).expect("right");
    assert_eq!(following.first[0].as_str(), URL);
    let law = following.law;
    assert_eq!(
        (law.tau, law.kappa, law.m_min, law.m_max),
        (2.5, 0.5, 1.0, 4)
    );
    let Gain::Settling { initial, floor, .. } = law.gain else {
        panic!("{law:?}");
    };
    assert_eq!(
        (initial, floor),
        (0.04, 0.002),
        "half of it would halve both"
    );
}

#[test]
fn where_none_yields_there_is_a_connection_unless_somebody_asks_for_less() {
    let least = |flags: &[&str]| follow(flags).expect("right").law.m_min;
    assert_eq!(least(&["--weight=1"]), 1.0);
    assert_eq!(least(&["--weight=1", "--min-connections=0.2"]), 0.2);
    assert_eq!(least(&["--weight=0.9"]), AdmissionSettings::stream().m_min);
}

#[test]
fn complaints_say_what_may_be_written() {
    for (flags, expected) in [
        (&["--tau=0"][..], "--tau"),
        (&["--gamma=nan"], "--gamma"),
        (&["--kappa=-1"], "--kappa"),
        (&["--min-connections=5"], "at most --max-connections, 4"),
        (&["--min-connections=0"], "above 0"),
        (&["--deadline=4h"], "--deadline"),
        (&["-o", "file"], "--output"),
        (&["--split=2"], "--split"),
        (&["--fail-late"], "--fail-late"),
    ] {
        let error = follow(flags).expect_err("it means nothing");
        assert!(error.contains(expected), "{flags:?}: {error}");
    }
    for words in [
        &["--follow", URL][..],
        &["--tau=3", URL],
        &["--law=paper", URL],
    ] {
        let error = complaint(words);
        assert!(error.contains("--follow"), "{words:?}: {error}");
    }
    assert!(complaint(&["-i", "/no/such", "--follow"]).contains("/no/such"));
}
