//! Recorder of one run: counters and histograms, shared by the requests on their way.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::answer::{Answer, Outcome, shortened};
use crate::report::{DriverReport, NamedError, Percentiles, RateReport};

/// Kinds of errors that are named.
const NAMED_ERRORS: usize = 5;

/// Lateness of sending that is not worth telling: what the system takes to wake a thread.
const DRIVER_LATE: Duration = Duration::from_millis(1);

/// Counts so far.
#[derive(Debug)]
pub(crate) struct Recorder {
    deadline: Option<Duration>,
    k: usize,
    keep_answers: bool,
    /// Not yet handed on; the driver takes them several times a second.
    pub(crate) answers: Vec<Answer>,
    pub(crate) offered: u64,
    pub(crate) sent: u64,
    pub(crate) unsent: u64,
    pub(crate) waited_for_connection: u64,
    pub(crate) connections_opened: u64,
    pub(crate) most_at_once: usize,
    in_time: u64,
    late: u64,
    status_429: u64,
    status_503: u64,
    status_504: u64,
    other_errors: u64,
    short: u64,
    driver_late: u64,
    errors: Vec<NamedError>,
    latency: Histogram<u64>,
    refusal: Histogram<u64>,
    delay: Histogram<u64>,
}

/// Parts of a report that the recorder does not see.
#[derive(Debug)]
pub(crate) struct Circumstances {
    pub(crate) rate: Option<f64>,
    pub(crate) offering: Duration,
    pub(crate) lasted: Duration,
    pub(crate) cpu_s: Option<f64>,
    pub(crate) interrupted: bool,
}

impl Recorder {
    /// No time that is recorded exceeds `longest` by much; one above twice that may count as the
    /// largest that the histogram has.
    pub(crate) fn new(
        deadline: Option<Duration>,
        longest: Duration,
        k: usize,
        keep_answers: bool,
    ) -> Self {
        let highest = microseconds(longest).saturating_mul(2).max(1_000);
        let histogram =
            Histogram::new_with_bounds(1, highest, 3).expect("bounds that are apart, three digits");
        Self {
            deadline,
            k,
            keep_answers,
            answers: Vec::new(),
            offered: 0,
            sent: 0,
            unsent: 0,
            waited_for_connection: 0,
            connections_opened: 0,
            most_at_once: 0,
            in_time: 0,
            late: 0,
            status_429: 0,
            status_503: 0,
            status_504: 0,
            other_errors: 0,
            short: 0,
            driver_late: 0,
            errors: Vec::new(),
            latency: histogram.clone(),
            refusal: histogram.clone(),
            delay: histogram,
        }
    }

    /// A request has a connection; `at_once` are on their way with it.
    pub(crate) fn sent(&mut self, waited: bool, at_once: usize) {
        self.sent += 1;
        self.waited_for_connection += u64::from(waited);
        self.most_at_once = self.most_at_once.max(at_once);
    }

    /// A thread of the runtime begins with a request, `delay` after its intended time.
    pub(crate) fn begun(&mut self, delay: Duration) {
        self.driver_late += u64::from(delay > DRIVER_LATE);
        self.delay.saturating_record(microseconds(delay));
    }

    /// A request has been given up before it was sent.
    pub(crate) fn unsent(&mut self, index: u64) {
        self.unsent += 1;
        self.keep(Answer { index, status: None, items: None });
    }

    /// A request ends, `latency` after its intended time.
    pub(crate) fn ended(&mut self, index: u64, outcome: Outcome, latency: Duration) {
        match &outcome {
            Outcome::Items { count, .. } => {
                self.short += u64::from(*count < self.k);
                let is_late = self.deadline.is_some_and(|deadline| latency > deadline);
                *(if is_late { &mut self.late } else { &mut self.in_time }) += 1;
                self.latency.saturating_record(microseconds(latency));
            }
            Outcome::TooMany(_) => self.status_429 += 1,
            Outcome::Unavailable(_) => self.status_503 += 1,
            Outcome::TooLate(_) => self.status_504 += 1,
            _ => self.other_errors += 1,
        }
        if matches!(outcome, Outcome::TooMany(_) | Outcome::Unavailable(_)) {
            self.refusal.saturating_record(microseconds(latency));
        }
        if let Some(error) = outcome.error() {
            self.name(error);
        }
        let status = outcome.status();
        let items = if let Outcome::Items { text, .. } = outcome { text } else { None };
        self.keep(Answer { index, status, items });
    }

    /// Requests that have ended, of those that were sent.
    pub(crate) fn answered_in_time(&self) -> u64 {
        self.in_time
    }

    pub(crate) fn report(&self, run: &Circumstances) -> RateReport {
        let seconds = run.offering.as_secs_f64();
        let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        let lasted = run.lasted.as_secs_f64();
        let ended = self.in_time
            + self.late
            + self.status_429
            + self.status_503
            + self.status_504
            + self.other_errors;
        RateReport {
            rate: run.rate,
            seconds,
            offered: self.offered,
            sent: self.sent,
            unsent: self.unsent,
            in_time: self.in_time,
            late: self.late,
            status_429: self.status_429,
            status_503: self.status_503,
            status_504: self.status_504,
            other_errors: self.other_errors,
            unfinished: self.sent.saturating_sub(ended),
            errors: self.errors.clone(),
            latency_ms: percentiles(&self.latency),
            refusal_ms: percentiles(&self.refusal),
            goodput_per_s: per_second(self.in_time),
            short: self.short,
            driver: DriverReport {
                late: self.driver_late,
                waited_for_connection: self.waited_for_connection,
                delay_ms: percentiles(&self.delay),
                connections_opened: self.connections_opened,
                most_at_once: self.most_at_once,
                cpu_s: run.cpu_s,
                cpu_share: run.cpu_s.filter(|_| lasted > 0.0).map(|cpu| cpu / lasted),
            },
            interrupted: run.interrupted,
        }
    }

    fn keep(&mut self, answer: Answer) {
        if self.keep_answers {
            self.answers.push(answer);
        }
    }

    fn name(&mut self, error: String) {
        let error = shortened(&error);
        if let Some(named) = self.errors.iter_mut().find(|named| named.error == error) {
            named.count += 1;
        } else if self.errors.len() < NAMED_ERRORS {
            self.errors.push(NamedError { error, count: 1 });
        }
    }
}

fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn percentiles(times: &Histogram<u64>) -> Option<Percentiles> {
    if times.is_empty() {
        return None;
    }
    let at = |quantile| times.value_at_quantile(quantile) as f64 / 1e3;
    Some(Percentiles {
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        p99_9: at(0.999),
        max: times.max() as f64 / 1e3,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn recorder(deadline_ms: u64) -> Recorder {
        Recorder::new(Some(Duration::from_millis(deadline_ms)), Duration::from_secs(10), 10, true)
    }

    fn report(recorder: &Recorder) -> RateReport {
        let second = Duration::from_secs(1);
        recorder.report(&Circumstances {
            rate: None,
            offering: second,
            lasted: second,
            cpu_s: Some(0.25),
            interrupted: false,
        })
    }

    #[test]
    fn each_end_has_one_count() {
        let mut recorder = recorder(200);
        let items = |count| Outcome::Items { count, text: Some("[]".into()) };
        let outcomes = [
            (items(10), 200),
            (items(9), 100),
            (items(10), 201),
            (Outcome::TooMany("x".into()), 3),
            (Outcome::Unavailable("x".into()), 9),
            (Outcome::TooLate("x".into()), 250),
            (Outcome::Other { status: 500, reason: "x".into() }, 1),
            (Outcome::Malformed("x".into()), 1),
            (Outcome::TimedOut, 10_000),
            (Outcome::Broken("x".into()), 1),
        ];
        for (index, (outcome, ms)) in (0..).zip(outcomes) {
            recorder.sent(false, 1);
            recorder.begun(Duration::from_micros(500));
            recorder.ended(index, outcome, Duration::from_millis(ms));
        }
        recorder.sent(true, 3);
        recorder.begun(Duration::from_millis(2));
        recorder.unsent(99);
        let report = report(&recorder);
        assert_eq!([report.in_time, report.late, report.short], [2, 1, 1]);
        assert_eq!([report.status_429, report.status_503, report.status_504], [1, 1, 1]);
        assert_eq!([report.other_errors, report.unfinished, report.unsent], [4, 1, 1]);
        assert_eq!(report.errors.len(), 4);
        assert_eq!(report.sent, 11);
        let (latency, refusal) = (report.latency_ms.unwrap(), report.refusal_ms.unwrap());
        assert!((latency.max - 201.0).abs() < 0.5 && (refusal.max - 9.0).abs() < 0.05);
        assert_eq!(report.goodput_per_s, 2.0);
        let driver = report.driver;
        assert_eq!([driver.late, driver.waited_for_connection], [1, 1]);
        assert_eq!((driver.most_at_once, driver.cpu_share), (3, Some(0.25)));
        let statuses: Vec<Option<u16>> = recorder.answers.iter().map(|a| a.status).collect();
        let expected = [200, 200, 200, 429, 503, 504, 500, 200].map(Some);
        assert_eq!(statuses, [&expected[..], &[None, None, None]].concat());
    }

    #[test]
    fn kinds_of_errors_are_bounded_and_times_too_long_are_the_largest() {
        let mut recorder = recorder(1);
        for index in 0..1_000 {
            let reason = format!("{}", index % 50);
            recorder.ended(index, Outcome::Broken(reason), Duration::from_millis(1));
        }
        recorder.ended(0, Outcome::Items { count: 0, text: None }, Duration::MAX);
        let report = report(&recorder);
        assert_eq!((report.other_errors, report.errors.len()), (1_000, NAMED_ERRORS));
        assert!(report.errors.iter().all(|named| named.count == 20));
        assert!(report.latency_ms.unwrap().max >= 20_000.0);
    }

    proptest! {
        /// The oracle sorts all times.
        #[test]
        fn percentiles_are_those_of_the_sorted_times(
            times in proptest::collection::vec(1_u64..9_000_000, 1..400),
        ) {
            let mut recorder = recorder(1);
            for &time in &times {
                let items = Outcome::Items { count: 10, text: None };
                recorder.ended(0, items, Duration::from_micros(time));
            }
            let mut sorted = times;
            sorted.sort_unstable();
            let at = |quantile: f64| {
                let place = (quantile * sorted.len() as f64).ceil().max(1.0) as usize;
                sorted[place - 1] as f64 / 1e3
            };
            let found = report(&recorder).latency_ms.unwrap();
            for (found, expected) in [
                (found.p50, at(0.5)),
                (found.p90, at(0.9)),
                (found.p99, at(0.99)),
                (found.p99_9, at(0.999)),
                (found.max, at(1.0)),
            ] {
                prop_assert!((found - expected).abs() <= expected * 1e-3 + 1e-3, "{found} {expected}");
            }
        }
    }
}
