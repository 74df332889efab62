//! Tables of a load test.

use palmette_serve_loadtest::{Comparison, RateReport};

use super::{LoadtestArgs, highest_kept_rate};
use crate::output::{grouped, table, visible};

/// Share of requests that the driver sent late, from which on a sentence says so.
const TOLD_LATE: f64 = 0.01;

pub(super) fn text(
    args: &LoadtestArgs,
    histories: usize,
    reports: &[RateReport],
    comparison: Option<&Comparison>,
) -> String {
    let deadline =
        args.body.deadline_ms.map_or("no deadline".to_owned(), |ms| format!("deadline {ms} ms"));
    let mut text = format!(
        "{}: {} histories, k {}, beam width {}, {deadline}; times in ms from each request's arrival\n",
        visible(&args.url),
        grouped(histories as u64),
        args.body.k,
        args.body.beam_width
    );
    text += &answers(reports);
    for report in reports {
        for error in &report.errors {
            let (count, error) = (grouped(error.count), visible(&error.error));
            text += &format!("  {}: {count} times: {error}\n", rate(report));
        }
    }
    if let Some(rate) = highest_kept_rate(args.body.deadline_ms, reports) {
        text += &format!(
            "The highest rate that was kept, p99 within the deadline and fewer than 0.1% not in time: {rate}/s\n"
        );
    }
    text += "\nThe driver\n";
    text += &driver(reports);
    for report in reports {
        text += &lateness(report, args.threads);
    }
    if let Some(comparison) = comparison.filter(|comparison| comparison.different() == 0) {
        text += &format!("{} answers are those of the file\n", grouped(comparison.compared()));
    }
    if reports.iter().any(|report| report.interrupted) {
        text += "Broken off: the last line is of the time until then\n";
    }
    text
}

fn rate(report: &RateReport) -> String {
    report.rate.map_or("one by one".to_owned(), |rate| rate.to_string())
}

fn ms(time: Option<f64>) -> String {
    time.map_or("-".to_owned(), |time| match time {
        ..100.0 => format!("{time:.1}"),
        _ => format!("{time:.0}"),
    })
}

fn answers(reports: &[RateReport]) -> String {
    let row = |report: &RateReport| {
        let counts = [
            report.offered,
            report.in_time,
            report.late,
            report.status_429,
            report.status_503,
            report.status_504,
            report.other_errors + report.unfinished,
        ];
        let latency = report.latency_ms;
        let times = [
            latency.map(|l| l.p50),
            latency.map(|l| l.p90),
            latency.map(|l| l.p99),
            latency.map(|l| l.p99_9),
            latency.map(|l| l.max),
            report.refusal_ms.map(|l| l.p99),
        ];
        let counts = counts.into_iter().map(grouped);
        let goodput = format!("{:.1}", report.goodput_per_s);
        [rate(report)].into_iter().chain(counts).chain([goodput]).chain(times.map(ms)).collect()
    };
    let headings = [
        " rate",
        " offered",
        " in time",
        " late",
        " 429",
        " 503",
        " 504",
        " errors",
        " in time/s",
        " p50",
        " p90",
        " p99",
        " p99.9",
        " max",
        " refused p99",
    ];
    table(&headings, &reports.iter().map(row).collect::<Vec<_>>())
}

fn driver(reports: &[RateReport]) -> String {
    let row = |report: &RateReport| {
        let of_driver = &report.driver;
        let seconds = |time: Option<f64>| time.map_or("?".to_owned(), |time| format!("{time:.2}"));
        vec![
            rate(report),
            grouped(report.sent),
            grouped(report.unsent),
            grouped(report.short),
            grouped(of_driver.late),
            grouped(of_driver.waited_for_connection),
            ms(of_driver.delay_ms.map(|delay| delay.p99)),
            grouped(of_driver.most_at_once as u64),
            grouped(of_driver.connections_opened),
            seconds(of_driver.cpu_s),
            seconds(of_driver.cpu_share),
        ]
    };
    let headings = [
        " rate",
        " sent",
        " unsent",
        " short",
        " late",
        " waited",
        " late by p99",
        " at once",
        " opened",
        " CPU s",
        " cores",
    ];
    table(&headings, &reports.iter().map(row).collect::<Vec<_>>())
}

/// A sentence where the figures are the driver's own.
fn lateness(report: &RateReport, threads: usize) -> String {
    let of_driver = &report.driver;
    let share = of_driver.late as f64 / report.sent.max(1) as f64;
    if report.rate.is_none() || share < TOLD_LATE {
        return String::new();
    }
    let is_busy = of_driver.cpu_share.is_some_and(|share| share > 0.8 * threads as f64);
    let way_out = if 2 * of_driver.waited_for_connection >= of_driver.late {
        "more --connections would have sent them in time"
    } else if is_busy {
        "its threads were busy; give more --threads"
    } else {
        "others kept this machine busy; give the driver one of its own"
    };
    format!(
        "  {}: the driver was late with {:.0}% of the requests, which is in the latencies: {way_out}\n",
        rate(report),
        100.0 * share
    )
}
