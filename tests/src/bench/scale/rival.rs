//! What the agent is compared with.

use std::path::Path;

use super::agent::PREFIX;
use crate::bench::measure::measure;
use crate::bench::record::Sample;
use crate::stores::S3;

/// `rclone copy` of a tree into an empty place. By default it has four files on
/// their way, as the agent has; it lists the destination, and makes two requests
/// for each file, PUT and HEAD. It remembers nothing, and writes no manifest.
pub(super) fn copy(home: &Path, source: &Path, store: &S3, in_flight: Option<u32>) -> Sample {
    let config = home.join("rclone.conf");
    let text = format!(
        "[store]\ntype = s3\nprovider = Other\nendpoint = {}\naccess_key_id = {}\n\
         secret_access_key = {}\nregion = {}\n",
        store.endpoint(),
        store.access_key(),
        store.secret_key(),
        store.region()
    );
    std::fs::write(&config, text).expect("write a configuration");
    let path = |path: &Path| path.to_str().expect("a path in UTF-8").to_owned();
    let mut args = vec![
        "rclone".to_owned(),
        "--config".to_owned(),
        path(&config),
        "copy".to_owned(),
        path(source),
        format!("store:{}/{PREFIX}", store.bucket()),
    ];
    if let Some(in_flight) = in_flight {
        args.extend(["--transfers".to_owned(), in_flight.to_string()]);
    }
    measure(&args, home, 0)
}
