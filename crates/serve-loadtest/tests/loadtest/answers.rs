//! Answers: alone and under load, saved and compared.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use palmette_serve_loadtest::{Answer, AnswerWriter, Comparison, Observer, Saved};

use crate::server::{Reply, Server, load, settings};

#[derive(Default)]
struct Kept(Vec<Answer>);

impl Observer for Kept {
    fn keeps_answers(&self) -> bool {
        true
    }

    fn answer(&mut self, answer: Answer) {
        self.0.push(answer);
    }
}

fn saved(answers: &[Answer]) -> Vec<u8> {
    let mut writer = AnswerWriter::new(Vec::new());
    answers.iter().for_each(|answer| writer.push(answer.clone()).unwrap());
    writer.finish().unwrap()
}

#[test]
fn a_request_has_the_body_of_its_number_alone_and_under_load() {
    let server = Server::start(|_, body| {
        std::thread::sleep(Duration::from_millis(3));
        Reply::items(&format!("[{body}]"))
    });
    let mut alone = Kept::default();
    server.driver(settings()).run_one_at_a_time(7, &mut alone);
    let expected = ["[[0]]", "[[1]]", "[[2]]", "[[0]]", "[[1]]", "[[2]]", "[[0]]"];
    let items: Vec<&str> = alone.0.iter().map(|answer| answer.items.as_deref().unwrap()).collect();
    assert_eq!(items, expected);
    let file = saved(&alone.0);
    assert_eq!(file.iter().filter(|&&byte| byte == b'\n').count(), 7);

    let mut driver = server.driver(settings());
    let mut comparison = Comparison::new(Saved::read(&*file).unwrap(), 3);
    let mut next = 0;
    for rate in [300.0, 800.0] {
        let mut loaded = Kept::default();
        let report = driver.run(&load(rate, 200), &mut loaded).unwrap();
        assert_eq!(loaded.0.len() as u64, report.offered);
        loaded.0.iter().for_each(|answer| comparison.push(answer));
        let mut indices: Vec<u64> = loaded.0.iter().map(|answer| answer.index).collect();
        indices.sort_unstable();
        assert_eq!(indices, (next..next + report.offered).collect::<Vec<_>>(), "numbers go on");
        next += report.offered;
    }
    assert_eq!((comparison.compared(), comparison.different()), (next, 0));
}

/// A server whose answers depend on what else it answers at the time.
#[test]
fn answers_that_depend_on_load_are_found() {
    let at_once = AtomicUsize::new(0);
    let server = Server::start(move |_, _| {
        let others = at_once.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(20));
        at_once.fetch_sub(1, Ordering::SeqCst);
        Reply::items(if others == 0 { "[1.5]" } else { "[1.25]" })
    });
    let mut alone = Kept::default();
    server.driver(settings()).run_one_at_a_time(3, &mut alone);
    let mut comparison = Comparison::new(Saved::read(&*saved(&alone.0)).unwrap(), 3);
    let mut loaded = Kept::default();
    server.driver(settings()).run(&load(400.0, 200), &mut loaded).unwrap();
    loaded.0.iter().for_each(|answer| comparison.push(answer));
    assert!(comparison.different() > 0 && comparison.different() < comparison.compared());
    let first = comparison.first().unwrap();
    assert_eq!((first.saved.as_str(), first.now.as_str()), ("[1.5]", "[1.25]"));
    let lowest = loaded.0.iter().filter(|answer| answer.items.as_deref() == Some("[1.25]"));
    assert_eq!(first.index, lowest.map(|answer| answer.index).min().unwrap());
}
