//! Whatever an agent writes: what was made harmless and redacted stays as it is when that is done again.
#![no_main]

use callboard::{harmless, redact, strict};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|input: &str| {
    if let Some(clean) = harmless::text(input) {
        assert_eq!(harmless::text(&clean), None, "made harmless twice");
    }
    if let Some((clean, found)) = redact::text(input) {
        assert!(found > 0 && clean != input);
        assert_eq!(redact::text(&clean), None, "redacted twice");
    }
    let Ok(value) = serde_json::from_str::<Value>(input) else {
        assert!(strict::check(input.as_bytes()).is_err(), "strict takes what is no JSON");
        return;
    };
    let mut once = value;
    harmless::value(&mut once);
    let harmless = once.clone();
    harmless::value(&mut once);
    assert_eq!(once, harmless, "made harmless twice");
    redact::value(&mut once);
    let mut twice = once.clone();
    assert_eq!((redact::value(&mut twice), &twice), (0, &once), "redacted twice");
});
