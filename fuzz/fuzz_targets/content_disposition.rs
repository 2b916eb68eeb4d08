#![no_main]

#[path = "../checks/content_disposition.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::check(data));
