#![no_main]

#[path = "../checks/agent_api.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::check(data));
