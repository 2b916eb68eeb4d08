use std::os::unix::fs::PermissionsExt as _;

use super::*;

const FILE_LOGIN: &str = "# of the nas\n\nuser = alice \n password=p=q #r\n";

fn no_variables(_: &str) -> Option<OsString> {
    None
}

/// A file with this content and mode, and what is read from it.
fn from(content: &[u8], mode: u32, wanted: Wanted) -> Result<StoreCredentials, CredentialsError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, content).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    let origin = Origin::File(path);
    read("nas", &Spec { wanted, origin }, no_variables)
}

fn password(user: &str, password: &str) -> StoreCredentials {
    StoreCredentials::Password {
        user: user.to_owned(),
        password: SecretText::new(password.to_owned()),
    }
}

#[test]
fn files_have_lines_of_keys_and_values() {
    let found = from(FILE_LOGIN.as_bytes(), 0o600, Wanted::Login).unwrap();
    assert_eq!(found, password("alice", "p=q #r"));
    let found = from(b"token = t\n", 0o400, Wanted::Login).unwrap();
    assert_eq!(
        found,
        StoreCredentials::Token(SecretText::new("t".to_owned()))
    );
    let content = b"access_key_id = i\r\nsecret_access_key = k\r\nsession_token = t";
    let found = from(content, 0o600, Wanted::Keys).unwrap();
    let expected = StoreCredentials::Keys {
        access_key_id: "i".to_owned(),
        secret_access_key: SecretText::new("k".to_owned()),
        session_token: Some(SecretText::new("t".to_owned())),
    };
    assert_eq!(found, expected);
}

#[test]
fn nothing_secret_is_shown() {
    let found = from(FILE_LOGIN.as_bytes(), 0o600, Wanted::Login).unwrap();
    let shown = format!("{found:?}");
    assert!(shown.contains("alice") && shown.contains("***") && !shown.contains("p=q"));
    for content in [
        "machine nas login alice password hunter2",
        "aHVudGVyMg==hunter2",
        "password = hunter2",
        "user = hunter2",
        "user = alice\nuser = hunter2",
        "token = hunter2\npassword = hunter2",
        "user =\npassword = hunter2",
        "access_key_id = hunter2",
        "hunter2 = alice",
    ] {
        let error = from(content.as_bytes(), 0o600, Wanted::Login).unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        assert!(error.to_string().contains("user and password"), "{error}");
    }
}

#[test]
fn errors_name_the_line() {
    let error = from(b"user = a\n\npasswort = b", 0o600, Wanted::Login).unwrap_err();
    let message = error.to_string();
    assert!(message.contains("/file:3: its key is unknown"), "{message}");
    let error = from(b"# nothing", 0o600, Wanted::Keys).unwrap_err();
    let message = error.to_string();
    assert!(message.contains("no credentials") && message.contains("access_key_id"));
    let error = from(b"user = \xff", 0o600, Wanted::Login).unwrap_err();
    assert!(error.to_string().contains("not UTF-8"), "{error}");
    let large = vec![b'#'; 65 << 10];
    let error = from(&large, 0o600, Wanted::Login).unwrap_err();
    assert!(error.to_string().contains("too large"), "{error}");
}

#[test]
fn a_file_that_others_may_use_is_refused_with_what_to_do() {
    for mode in [0o604, 0o640, 0o620, 0o601] {
        let error = from(FILE_LOGIN.as_bytes(), mode, Wanted::Login).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("chmod 600 /"), "{message}");
        assert!(message.contains(&format!("{mode:04o}")), "{message}");
    }
}

#[test]
fn what_is_no_file_is_refused_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    for path in [pipe, directory.path().to_owned()] {
        let spec = Spec {
            wanted: Wanted::Login,
            origin: Origin::File(path),
        };
        let error = read("nas", &spec, no_variables).unwrap_err();
        assert!(error.to_string().contains("not a regular file"), "{error}");
    }
}

#[test]
fn a_name_is_looked_up_among_those_of_the_service() {
    let spec = Spec {
        wanted: Wanted::Login,
        origin: Origin::Service("nas".to_owned()),
    };
    let error = read("x", &spec, no_variables).unwrap_err().to_string();
    assert!(error.contains("LoadCredential=nas:"), "{error}");
    let directory = tempfile::tempdir().unwrap();
    let variable = |name: &str| {
        let is = name == "CREDENTIALS_DIRECTORY";
        is.then(|| directory.path().as_os_str().to_owned())
    };
    let error = read("x", &spec, variable).unwrap_err();
    assert!(error.to_string().contains("No such file"), "{error}");
    let path = directory.path().join("nas");
    std::fs::write(&path, FILE_LOGIN).unwrap();
    // As systemd makes them: an access list for the user shows as a group's.
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o440)).unwrap();
    assert_eq!(
        read("x", &spec, variable).unwrap(),
        password("alice", "p=q #r")
    );
}

#[test]
fn without_a_file_the_environment_counts() {
    let read = |wanted, variables: &[(&str, &str)]| {
        let origin = Origin::Environment;
        read("my-nas", &Spec { wanted, origin }, |name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).into())
        })
    };
    let none = read(Wanted::Login, &[]).unwrap();
    assert_eq!(none, StoreCredentials::Anonymous);
    let user = ("FAIRBAT_STORE_MY_NAS_USER", "alice");
    let login = [user, ("FAIRBAT_STORE_MY_NAS_PASSWORD", "p")];
    assert_eq!(read(Wanted::Login, &login).unwrap(), password("alice", "p"));
    assert_eq!(
        read(Wanted::Keys, &login).unwrap(),
        StoreCredentials::Anonymous
    );
    assert!(read(Wanted::Login, &[user]).is_err());
    let keys = [("AWS_ACCESS_KEY_ID", "i"), ("AWS_SECRET_ACCESS_KEY", "k")];
    assert!(matches!(
        read(Wanted::Keys, &keys).unwrap(),
        StoreCredentials::Keys {
            session_token: None,
            ..
        }
    ));
    assert!(read(Wanted::Keys, &keys[..1]).is_err());
}

#[test]
fn a_file_of_another_format_is_read_whole_and_is_as_private() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("site.creds");
    std::fs::write(&path, "-----BEGIN NATS USER JWT-----\n").unwrap();
    let with_mode = |mode| {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        read_private(&path)
    };
    let text = with_mode(0o600).unwrap();
    assert_eq!(text.expose(), "-----BEGIN NATS USER JWT-----\n");
    let error = with_mode(0o640).unwrap_err().to_string();
    assert!(error.contains("chmod 600"), "{error}");
}
