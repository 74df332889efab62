//! Load: open loop, counts, bounds. No absolute time is asserted but that a run ends long before it
//! would if it hung.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use palmette_serve_loadtest::{Arrivals, Load, RateReport, Settings};

use crate::server::{Reply, Server, load, settings};

/// Longer than any run here takes on the slowest machine, and shorter than the timeouts that a
/// hanging one would wait for.
const SOON: Duration = Duration::from_secs(15);

#[track_caller]
fn check_sum(report: &RateReport) {
    assert_eq!(report.offered, report.sent + report.unsent, "{report:?}");
    let ended = report.in_time + report.late + report.other_errors + report.unfinished;
    let refused = report.status_429 + report.status_503 + report.status_504;
    assert_eq!(report.sent, ended + refused, "{report:?}");
}

/// Arrivals of the first run of a driver with the seed of the tests.
fn arrivals(rate: f64, ms: std::ops::Range<u64>) -> u64 {
    let ms = Duration::from_millis(ms.start)..Duration::from_millis(ms.end);
    let times = Arrivals::new(rate, settings().seed, 0).unwrap();
    times.take_while(|time| *time < ms.end).filter(|time| *time >= ms.start).count() as u64
}

/// A server of about 100 requests a second is offered three times as many. What waits for answers
/// sees nothing of that.
#[test]
fn overload_is_seen_in_latency_from_the_intended_time() {
    let server = Server::one_at_a_time(Duration::from_millis(10));
    let closed = server.driver(settings()).run_one_at_a_time(20, &mut ());
    let mut driver = server.driver(settings());
    let over = driver.run(&load(300.0, 600), &mut ()).unwrap();
    assert_eq!(over.offered, arrivals(300.0, 0..600), "arrivals do not depend on answers");
    assert_eq!([over.sent, over.in_time], [over.offered; 2]);
    let low = driver.run(&load(10.0, 600), &mut ()).unwrap();
    for report in [&closed, &over, &low] {
        check_sum(report);
        assert_eq!(report.in_time, report.offered);
    }
    let [closed, over, low] = [closed, over, low].map(|report| report.latency_ms.unwrap());
    assert!(over.p99 > 5.0 * closed.p50, "{closed:?} {over:?}");
    assert!(over.p50 > 3.0 * low.p50, "{low:?} {over:?}");
    assert!(over.p50 <= over.p90 && over.p90 <= over.p99 && over.p99 <= over.max, "{over:?}");
}

/// Waiting for a connection is part of the latency, and told apart.
#[test]
fn few_connections_are_the_drivers_lateness() {
    let server = Server::one_at_a_time(Duration::from_millis(10));
    let mut driver = server.driver(Settings { connections: 2, ..settings() });
    let over = driver.run(&load(300.0, 500), &mut ()).unwrap();
    check_sum(&over);
    assert_eq!(over.sent, arrivals(300.0, 0..500));
    assert_eq!(over.driver.most_at_once, 2);
    assert!(server.connections.load(Ordering::SeqCst) <= 2);
    assert!(over.driver.waited_for_connection > over.sent * 3 / 4, "{over:?}");
    assert!(over.driver.late > over.sent / 2, "{over:?}");
    let (latency, delay) = (over.latency_ms.unwrap(), over.driver.delay_ms.unwrap());
    assert!(latency.max >= delay.max && delay.p50 > latency.p50 / 2.0, "{latency:?} {delay:?}");
}

#[test]
fn each_status_has_its_count() {
    let server = Server::start(|number, _| match number % 6 {
        0 => Reply::items("[1, 2, 3]"),
        1 => Reply::items("[1]"),
        2 => Reply::problem(429, "would finish late"),
        3 => Reply::problem(503, "starting"),
        4 => Reply::problem(504, "late"),
        _ => Reply::problem(418, "a teapot"),
    });
    let report = server.driver(settings()).run_one_at_a_time(60, &mut ());
    check_sum(&report);
    assert_eq!([report.in_time, report.short, report.late], [20, 10, 0]);
    assert_eq!([report.status_429, report.status_503, report.status_504], [10; 3]);
    assert_eq!((report.other_errors, report.errors.len()), (10, 1));
    assert_eq!(
        (report.errors[0].error.as_str(), report.errors[0].count),
        ("status 418: a teapot", 10)
    );
    assert!(report.refusal_ms.is_some() && report.rate.is_none());
    assert_eq!(report.driver.connections_opened, 1);
}

#[test]
fn the_deadline_is_the_clients() {
    let server = Server::one_at_a_time(Duration::from_millis(5));
    let deadline = Some(Duration::from_millis(4));
    let report = server.driver(Settings { deadline, ..settings() }).run_one_at_a_time(5, &mut ());
    check_sum(&report);
    assert_eq!([report.in_time, report.late], [0, 5]);
    assert_eq!(report.goodput_per_s, 0.0);
}

#[test]
fn broken_connections_are_counted() {
    let began = Instant::now();
    for reply in [
        Reply::Raw(""),
        Reply::Raw("HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{\"items\""),
        Reply::Raw("SSH-2.0-OpenSSH_9.2\r\n"),
        Reply::Raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"),
    ] {
        let of_server = reply.clone();
        let server = Server::start(move |_, _| of_server.clone());
        let report = server.driver(settings()).run(&load(200.0, 200), &mut ()).unwrap();
        check_sum(&report);
        assert_eq!([report.other_errors, report.in_time], [report.offered, 0], "{reply:?}");
        assert!(report.errors[0].error.contains("connection"), "{reply:?} {report:?}");
        assert!(report.latency_ms.is_none());
    }
    assert!(began.elapsed() < SOON);
}

/// Some answers of a server that breaks some connections.
#[test]
fn what_is_closed_is_opened_again() {
    let server = Server::start(|number, _| match number % 4 {
        1 => Reply::Raw(""),
        2 => Reply::Last(200, "application/json", r#"{"items": []}"#.into()),
        _ => Reply::items("[1, 2, 3]"),
    });
    let report = server.driver(settings()).run_one_at_a_time(40, &mut ());
    check_sum(&report);
    assert_eq!([report.in_time, report.other_errors, report.short], [30, 10, 10]);
    let opened = server.connections.load(Ordering::SeqCst) as u64;
    assert!((20..=21).contains(&opened) && opened <= report.driver.connections_opened, "{opened}");
}

#[test]
fn a_server_that_never_answers_ends_the_run_at_the_timeout() {
    let server = Server::start(|_, _| Reply::Never);
    let timeout = Duration::from_millis(300);
    let mut driver = server.driver(Settings { connections: 3, timeout, ..settings() });
    let began = Instant::now();
    let report = driver.run(&load(400.0, 250), &mut ()).unwrap();
    assert!(began.elapsed() < SOON);
    check_sum(&report);
    assert_eq!(report.offered, arrivals(400.0, 0..250));
    assert!(report.sent >= 3 && report.unsent > report.sent, "{report:?}");
    assert_eq!((report.other_errors, report.unfinished), (report.sent, 0));
    assert!(report.errors[0].error.contains("timeout"));
}

#[test]
fn a_warm_up_is_sent_and_not_counted() {
    let server = Server::start(|_, _| Reply::items("[1, 2, 3]"));
    let warm = Load { warmup: Duration::from_millis(300), ..load(200.0, 200) };
    let report = server.driver(settings()).run(&warm, &mut ()).unwrap();
    check_sum(&report);
    assert_eq!(report.offered, arrivals(200.0, 300..500));
    assert!((report.seconds - 0.2).abs() < 1e-6);
    let seen = server.seen.lock().unwrap();
    assert_eq!(seen.len() as u64, arrivals(200.0, 0..500));
    // In whatever order the server's threads saw them: of three histories those of the warm-up from
    // the last one on.
    let mut bodies: Vec<&str> = seen.iter().map(|(_, body)| body.as_str()).collect();
    bodies.sort_unstable();
    let warm_ups = (0..arrivals(200.0, 0..300)).map(|place| 2 - place % 3);
    let counted = (0..report.offered).map(|index| index % 3);
    let mut expected: Vec<String> = warm_ups.chain(counted).map(|n| format!("[{n}]")).collect();
    expected.sort_unstable();
    assert_eq!(bodies, expected);
}

#[test]
fn a_run_that_is_stopped_tells_what_it_measured() {
    let server =
        Server::start(|number, _| if number < 20 { Reply::items("[]") } else { Reply::Never });
    let mut driver = server.driver(settings());
    let stop = driver.stop();
    let began = Instant::now();
    let seen = Arc::clone(&server.seen);
    let stopper = std::thread::spawn(move || {
        // The last of those that are answered has been answered by then: it has 10 after it.
        while seen.lock().unwrap().len() < 30 && began.elapsed() < SOON {
            std::thread::sleep(Duration::from_millis(5));
        }
        stop.stop();
    });
    let report = driver.run(&load(200.0, 60_000), &mut ()).unwrap();
    stopper.join().unwrap();
    assert!(began.elapsed() < SOON);
    check_sum(&report);
    assert!(report.interrupted && report.seconds < 60.0, "{report:?}");
    assert_eq!(report.in_time, 20);
    assert!(report.unfinished > 0, "{report:?}");
    // Nothing more can be run.
    assert_eq!(driver.run(&load(200.0, 60_000), &mut ()).unwrap().offered, 0);
}

#[test]
fn loads_and_settings_out_of_range() {
    let server = Server::start(|_, _| Reply::Never);
    #[track_caller]
    fn check(
        result: Result<impl std::fmt::Debug, palmette_serve_loadtest::SettingsError>,
        words: &str,
    ) {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let mut driver = server.driver(settings());
    check(driver.run(&load(0.0, 5), &mut ()), "the rate is 0;");
    check(driver.run(&load(f64::NAN, 5), &mut ()), "the rate is NaN;");
    check(driver.run(&load(1e9, 5), &mut ()), "100000 requests a second");
    check(driver.run(&load(1.0, 0), &mut ()), "lasts 0 s");
    check(driver.run(&load(1.0, 100_000_000), &mut ()), "at most 86400 s");
    let warmup = Duration::from_secs(90_000);
    check(driver.run(&Load { warmup, ..load(1.0, 5) }, &mut ()), "the warm-up lasts 90000 s");
    let new = |settings, bodies: &[&'static str]| {
        let bodies = bodies.iter().map(|&body| body.into()).collect();
        let requests = palmette_serve_loadtest::Requests::new(bodies, 3);
        palmette_serve_loadtest::Driver::new(server.endpoint(), requests, settings)
    };
    check(new(settings(), &[]), "no histories");
    check(new(Settings { connections: 0, ..settings() }, &["[]"]), "connections is 0;");
    check(new(Settings { threads: 65, ..settings() }, &["[]"]), "threads is 65;");
    check(new(Settings { timeout: Duration::ZERO, ..settings() }, &["[]"]), "timeout is 0 ms;");
    let deadline = Some(Duration::from_secs(30));
    check(new(Settings { deadline, ..settings() }, &["[]"]), "deadline is 30000 ms;");
    assert!(server.seen.lock().unwrap().is_empty());
}
