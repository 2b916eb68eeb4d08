//! The page in a real browser, with its script and without it. Without Chromium
//! these tests say that they are skipped.

mod scene;

use std::process::{Command, Stdio};
use std::{fs, io};

use scene::{Serving, night};

/// Preferences of somebody who allows no scripts. The option that turns them off
/// would leave nothing to print the page with.
const NO_SCRIPTS: &str = r#"{"profile": {"default_content_setting_values": {"javascript": 2}}}"#;

/// What Chromium makes of the page within some seconds, with these preferences;
/// `None` without Chromium.
fn seen(serving: &Serving, preferences: &str) -> Option<String> {
    let profile = tempfile::tempdir().expect("a temporary directory");
    let default = profile.path().join("Default");
    fs::create_dir(&default).expect("a directory");
    fs::write(default.join("Preferences"), preferences).expect("a file");
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(["--enable-logging=stderr", "--v=0"])
        .arg("--virtual-time-budget=4000")
        .arg(serving.url("/"))
        .stdin(Stdio::null())
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            eprintln!("SKIPPED: chromium is not installed");
            return None;
        }
        Err(error) => panic!("chromium: {error}"),
    };
    let said = String::from_utf8_lossy(&output.stderr);
    // It is quiet where the policy forbids something, but for these lines.
    assert!(!said.contains("Content Security Policy"), "{said}");
    assert!(!said.contains("Uncaught"), "{said}");
    assert!(output.status.success(), "{said}");
    Some(String::from_utf8(output.stdout).expect("a page"))
}

const WORDS: [&str; 6] = [
    "1 task needs a look",
    "12 min early",
    "the disk of the store is full",
    "yesterday 23:02",
    "10.9 MB/s",
    "held back by",
];

#[test]
fn with_its_script_it_keeps_itself_fresh() {
    let (handle, port) = night();
    let serving = Serving::begin(handle, port);
    let Some(page) = seen(&serving, "{}") else {
        return;
    };
    for words in WORDS {
        assert!(page.contains(words), "{words}\n{page}");
    }
    // Said by the script, after it has taken over what the agent said anew.
    assert!(page.contains("fresh every 5 seconds"), "{page}");
    assert_eq!(page.matches("<figure").count(), 8);
    assert!(page.contains("role=\"alert\" hidden"), "{page}");
}

#[test]
fn without_it_all_is_there_and_the_browser_reloads_it() {
    let (handle, port) = night();
    let serving = Serving::begin(handle, port);
    let Some(page) = seen(&serving, NO_SCRIPTS) else {
        return;
    };
    for words in WORDS {
        assert!(page.contains(words), "{words}\n{page}");
    }
    assert!(page.contains("reloaded every 10 seconds"), "{page}");
    assert!(!page.contains("fresh every 5 seconds</span>"), "{page}");
    assert!(page.contains("<meta http-equiv=\"refresh\""), "{page}");
    assert_eq!(page.matches("<figure").count(), 8);
}
