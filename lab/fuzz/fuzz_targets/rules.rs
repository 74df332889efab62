//! Rules of the business: what parses is the same twice, is no less when its moment is set, and has
//! the key that is left out alone.
#![no_main]

use libfuzzer_sys::fuzz_target;
use palmette_recommend::{Moment, Rules};

fuzz_target!(|text: &str| {
    match Rules::parse(text) {
        Ok(rules) => {
            let again = Rules::parse(text).expect("it was read before");
            assert_eq!(format!("{rules:?}"), format!("{again:?}"));
            assert_eq!(rules.is_empty(), again.at(Moment::Seconds(0.0)).is_empty());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
