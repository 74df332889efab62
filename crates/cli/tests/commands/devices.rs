//! Devices by name: a list of them, and what is refused where there is none.

#[cfg(feature = "demo")]
use crate::command::check_refused;
use crate::command::{run, run_json};
#[cfg(feature = "demo")]
use crate::shop::{Shop, with_recommender};

#[test]
fn this_processor_is_always_a_device() {
    let listed = run_json(&["devices"]);
    assert_eq!(listed["devices"][0]["device"], "cpu");
    let text = run(&["devices"]);
    assert!(text.contains("this processor"), "{text}");
    // With a driver there are devices, without one a reason.
    let found = listed["devices"].as_array().unwrap().len();
    assert_eq!(found > 1, listed["note"].is_null(), "{listed}");
    if found == 1 {
        assert!(text.contains(listed["note"].as_str().unwrap()), "{text}");
    }
}

#[cfg(feature = "demo")]
#[test]
fn a_device_that_is_not_there_is_refused_by_name() {
    let shop = Shop::get().recommender();
    let asked = |rest: &[&str], words: &[&str]| {
        let args = [&["--history", "P0001"], rest].concat();
        check_refused(&with_recommender("recommend", &shop, &args), words);
    };
    asked(&["--device", "gpu"], &["\"gpu\" is no device", "cpu, or cuda:0"]);
    // The shop's model has heads that no kernel computes, if the number does not refuse it.
    asked(&["--device", "cuda:999"], &["--device cuda:999"]);
    asked(&["--device", "cuda:999", "--weights", "int8"], &["--device cuda:999"]);
    let args = ["--history", "P0001", "--device", "cpu"];
    let here = run_json(&with_recommender("recommend", &shop, &args));
    let default = run_json(&with_recommender("recommend", &shop, &args[..2]));
    assert_eq!(here["items"], default["items"]);
}
