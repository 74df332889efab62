//! Answers in a file, one JSON line each, and their comparison with those of another run.
//!
//! A line is `{"index": 17, "status": 200, "items": […]}`, in order of `index`; `items` is the text
//! that the server wrote. A request without an answer has the status `null`, one without items has
//! `null` there.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::answer::{Answer, shortened};

/// The most bytes of saved answers that are read: they are held in memory.
const MAX_SAVED_BYTES: usize = 1 << 30;

#[derive(Serialize, Deserialize)]
struct Line<'a> {
    index: u64,
    status: Option<u16>,
    #[serde(borrow)]
    items: Option<&'a RawValue>,
}

/// Writer of answers in the order of their requests.
///
/// Answers end out of that order; those after one that has not ended wait. They are no more than
/// were offered within one timeout.
#[derive(Debug)]
pub struct AnswerWriter<W> {
    out: W,
    next: u64,
    waiting: BTreeMap<u64, Answer>,
}

impl<W: Write> AnswerWriter<W> {
    /// Writes from request 0 on.
    pub fn new(out: W) -> Self {
        Self { out, next: 0, waiting: BTreeMap::new() }
    }

    /// Writes an answer, or keeps it until those before it have come.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn push(&mut self, answer: Answer) -> io::Result<()> {
        self.waiting.insert(answer.index, answer);
        while let Some(entry) = self.waiting.first_entry().filter(|e| *e.key() <= self.next) {
            let answer = entry.remove();
            self.next = self.next.max(answer.index + 1);
            write_line(&mut self.out, &answer)?;
        }
        Ok(())
    }

    /// Writes what waits for requests that never ended, and gives back the flushed writer.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn finish(mut self) -> io::Result<W> {
        for answer in self.waiting.values() {
            write_line(&mut self.out, answer)?;
        }
        self.out.flush()?;
        Ok(self.out)
    }
}

fn write_line(out: &mut impl Write, answer: &Answer) -> io::Result<()> {
    let items = answer.items.as_deref().map(serde_json::from_str::<&RawValue>).transpose()?;
    // An answer laid out over several lines stays one line here; no string of JSON has a line end
    // in it.
    let line = Line { index: answer.index, status: answer.status, items };
    let line = serde_json::to_string(&line)?.replace(['\n', '\r'], " ");
    writeln!(out, "{line}")
}

/// Answers with items, as a file has them.
#[derive(Debug, Default)]
pub struct Saved {
    items: HashMap<u64, Box<str>>,
}

/// A file of answers that cannot be used; the message names the line.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum SavedError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("line {line}: {reason}; a line is {{\"index\": 0, \"status\": 200, \"items\": […]}}")]
    Line { line: usize, reason: String },
    #[error("line {line}: request {index} has an answer already")]
    Twice { line: usize, index: u64 },
    #[error(
        "line {line} goes beyond {MAX_SAVED_BYTES} bytes, the most that is read; save fewer answers"
    )]
    TooLarge { line: usize },
    #[error("there is no answer with items in it, so nothing can be compared")]
    Empty,
}

impl Saved {
    /// Reads answers.
    ///
    /// # Errors
    /// For input that cannot be read, lines that are no answers, two answers of one request, none
    /// with items, or too many.
    pub fn read(mut input: impl BufRead) -> Result<Self, SavedError> {
        let (mut items, mut text, mut bytes) = (HashMap::new(), String::new(), 0);
        for line in 1.. {
            text.clear();
            let most = (MAX_SAVED_BYTES - bytes) as u64 + 1;
            let read = io::Read::take(&mut input, most).read_line(&mut text)?;
            bytes += read;
            if bytes > MAX_SAVED_BYTES {
                return Err(SavedError::TooLarge { line });
            }
            if read == 0 {
                break;
            }
            if text.trim().is_empty() {
                continue;
            }
            let answer: Line<'_> = serde_json::from_str(&text)
                .map_err(|e| SavedError::Line { line, reason: e.to_string() })?;
            let (Some(200), Some(of_answer)) = (answer.status, answer.items) else { continue };
            if items.insert(answer.index, Box::from(of_answer.get())).is_some() {
                return Err(SavedError::Twice { line, index: answer.index });
            }
        }
        if items.is_empty() { Err(SavedError::Empty) } else { Ok(Self { items }) }
    }
}

/// Comparison of a run's answers with saved ones, byte for byte.
///
/// A request is compared with the saved one of its number, or else with one about the same history,
/// whose number is the remainder by the number of histories. Refusals and errors on either side are
/// not compared.
#[derive(Debug)]
pub struct Comparison {
    saved: Saved,
    histories: u64,
    compared: u64,
    different: u64,
    first: Option<Difference>,
}

/// Two answers to one request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The request.
    pub index: u64,
    /// The request of the file.
    pub saved_index: u64,
    /// The items of the file from a little before the first byte that differs, cut to what a
    /// message shows.
    pub saved: String,
    /// Answers of this run, likewise.
    pub now: String,
}

impl Comparison {
    /// Compares with answers about as many histories as this run has.
    pub fn new(saved: Saved, histories: usize) -> Self {
        Self { saved, histories: histories.max(1) as u64, compared: 0, different: 0, first: None }
    }

    /// Compares one answer.
    pub fn push(&mut self, answer: &Answer) {
        let (Some(200), Some(now)) = (answer.status, &answer.items) else { return };
        let places = [answer.index, answer.index % self.histories];
        let found = places.iter().find_map(|place| Some((*place, self.saved.items.get(place)?)));
        let Some((saved_index, saved)) = found else { return };
        self.compared += 1;
        // As saved: on one line.
        let now = now.replace(['\n', '\r'], " ");
        if **saved == *now {
            return;
        }
        self.different += 1;
        if self.first.as_ref().is_none_or(|first| answer.index < first.index) {
            let (saved, now) = around_difference(saved, &now);
            self.first = Some(Difference { index: answer.index, saved_index, saved, now });
        }
    }

    /// Answers that had one to be compared with.
    pub fn compared(&self) -> u64 {
        self.compared
    }

    /// Answers that were not the same bytes.
    pub fn different(&self) -> u64 {
        self.different
    }

    /// The difference of the lowest number.
    pub fn first(&self) -> Option<&Difference> {
        self.first.as_ref()
    }
}

fn around_difference(left: &str, right: &str) -> (String, String) {
    const BEFORE: usize = 40;
    let same = left.char_indices().zip(right.chars()).take_while(|((_, a), b)| a == b);
    let starts: Vec<usize> = same.map(|((at, _), _)| at).collect();
    // Both have the same characters before, so that a boundary of one is one of the other.
    let from = starts.len().checked_sub(BEFORE).map_or(0, |place| starts[place]);
    let cut = |text: &str| {
        let shown = shortened(&text[from..]);
        if from > 0 { format!("…{shown}") } else { shown }
    };
    (cut(left), cut(right))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(index: u64, items: &str) -> Answer {
        Answer { index, status: Some(200), items: Some(items.to_owned()) }
    }

    fn saved(answers: Vec<Answer>) -> Vec<u8> {
        let mut writer = AnswerWriter::new(Vec::new());
        answers.into_iter().for_each(|answer| writer.push(answer).unwrap());
        writer.finish().unwrap()
    }

    #[test]
    fn lines_are_in_order_and_keep_the_servers_text() {
        let refused = Answer { index: 1, status: Some(429), items: None };
        let unsent = Answer { index: 4, status: None, items: None };
        let answers = vec![answer(2, "[ 1.50]"), unsent, answer(0, "[\n{\"a\":1e2}]"), refused];
        let text = String::from_utf8(saved(answers)).unwrap();
        let expected = [
            r#"{"index":0,"status":200,"items":[ {"a":1e2}]}"#,
            r#"{"index":1,"status":429,"items":null}"#,
            r#"{"index":2,"status":200,"items":[ 1.50]}"#,
            r#"{"index":4,"status":null,"items":null}"#,
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_first_difference_is_named() {
        let long = "x".repeat(500);
        let file = saved(vec![answer(0, "[1]"), answer(1, &format!("[\"{long}\",2]"))]);
        let mut comparison = Comparison::new(Saved::read(&*file).unwrap(), 3);
        comparison.push(&answer(3, "[1]"));
        comparison.push(&answer(2, "[7]"));
        comparison.push(&Answer { index: 0, status: Some(429), items: None });
        assert_eq!((comparison.compared(), comparison.different()), (1, 0));
        comparison.push(&answer(4, &format!("[\"{long}\",3]")));
        comparison.push(&answer(6, "[1.0]"));
        comparison.push(&answer(1, &format!("[\"{long}\",2]")));
        assert_eq!((comparison.compared(), comparison.different()), (4, 2));
        let first = comparison.first().unwrap();
        assert_eq!((first.index, first.saved_index), (4, 1));
        assert!(first.saved.ends_with("x\",2]") && first.now.ends_with("x\",3]"), "{first:?}");
        assert!(first.saved.starts_with("…x") && first.saved.len() < 60, "{first:?}");
    }

    #[test]
    fn a_byte_is_a_difference() {
        for (left, right) in [("[1.0]", "[1]"), ("[ 1]", "[1]"), ("[\"ü\"]", "[\"u\"]")] {
            let mut comparison =
                Comparison::new(Saved::read(&*saved(vec![answer(0, left)])).unwrap(), 1);
            comparison.push(&answer(0, right));
            assert_eq!(comparison.different(), 1, "{left} {right}");
        }
    }

    #[test]
    fn files_that_are_none() {
        #[track_caller]
        fn check(text: &str, words: &str) {
            let error = Saved::read(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        check("", "nothing can be compared");
        check("{\"index\":0,\"status\":429,\"items\":null}\n", "nothing can be compared");
        check("\nhello\n", "line 2");
        check("{\"status\":200}", "index");
        let twice = r#"{"index":7,"status":200,"items":[]}"#;
        check(&format!("{twice}\n{twice}\n"), "line 2: request 7");
    }
}
