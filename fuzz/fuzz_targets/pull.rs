#![no_main]

#[path = "../checks/pull.rs"]
mod checks;
#[path = "../checks/sealed.rs"]
mod sealed;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::check(data));
