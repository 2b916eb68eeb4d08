#![no_main]

#[path = "../checks/s3.rs"]
mod checks;
#[path = "../checks/store_server.rs"]
mod store_server;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::check(data));
