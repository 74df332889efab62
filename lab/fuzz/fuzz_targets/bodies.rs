//! Bodies over HTTP: each is read twice the same and checked, or every fault has a place in it and
//! a reason.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use palmette_demo::Demo;
use palmette_document::Faults;
use palmette_recommend::{Moment, QuestionLimits, RecommendBody};
use palmette_text::question::{ChatMembers, CompletionMembers, OwnMembers, TextBody};

static DEMO: LazyLock<Demo> = LazyLock::new(|| Demo::load().expect("the built-in shop"));

fn check_faults(faults: &Faults) {
    assert!(!faults.is_empty());
    for fault in faults.iter() {
        assert!(!fault.detail.is_empty());
        assert!(fault.pointer.is_empty() || fault.pointer.starts_with('/'), "{fault:?}");
    }
}

fn recommendation(body: &[u8]) {
    let read = RecommendBody::from_json(body).map_err(|error| error.to_string());
    assert_eq!(read, RecommendBody::from_json(body).map_err(|error| error.to_string()));
    let question = match read {
        Ok(body) => body.question,
        Err(reason) => return assert!(!reason.is_empty()),
    };
    // What a client wrote is what is asked when it is written again.
    let text = serde_json::to_vec(&question).expect("it has no keys but strings");
    let again = RecommendBody::from_json(&text).expect("it was read before");
    assert_eq!(again.question, question);
    let limits = QuestionLimits::default();
    let now = Some(Moment::Seconds(0.0));
    match question.check(DEMO.recommender(), DEMO.view(), &limits, now) {
        Ok(question) => assert!(question.question().k >= 1),
        Err(faults) => check_faults(&faults),
    }
}

fn text<Own: OwnMembers + PartialEq + std::fmt::Debug>(body: &[u8]) {
    let read = TextBody::<Own>::from_json(body);
    assert_eq!(read, TextBody::from_json(body));
    if let Err(faults) = read {
        check_faults(&faults);
    }
}

fuzz_target!(|body: &[u8]| {
    recommendation(body);
    text::<ChatMembers>(body);
    text::<CompletionMembers>(body);
});
