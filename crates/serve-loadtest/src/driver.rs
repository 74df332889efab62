//! Driver: sends requests at their times and waits for what becomes of them.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hyper::Uri;
use tokio::runtime::Runtime;
use tokio::time::timeout_at;

use crate::answer::{Answer, Outcome};
use crate::arrivals::Arrivals;
use crate::connection::Asking;
use crate::endpoint::Endpoint;
use crate::pool::{Lease, Pool};
use crate::processor_time::process_cpu_s;
use crate::recorder::{Circumstances, Recorder};
use crate::report::RateReport;
use crate::requests::Requests;

/// The longest sleep between two looks at the stop flag and at answers to hand on.
const PAUSE: Duration = Duration::from_millis(50);

/// Time for requests on their way when a run is broken off.
const GRACE: Duration = Duration::from_secs(1);

/// The driver sleeps until its arrivals; what is sent this long after `run` was called is not late
/// for having been set up.
const LEAD: Duration = Duration::from_millis(5);

/// Settings of a driver.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The most requests on their way at once, each on a connection of its own.
    pub connections: usize,
    /// The longest wait for a connection, from the intended time, and for the answer, from sending.
    /// Not one for both: a request sent with no time left would break its connection, and the
    /// server would meet what the driver makes of its own lateness.
    pub timeout: Duration,
    /// Answers after this time, from the intended one, are late; without it none is. It is not
    /// sent: bodies have their own.
    pub deadline: Option<Duration>,
    /// Seed of the arrivals.
    pub seed: u64,
    /// Threads of the runtime.
    pub threads: usize,
}

/// Load of one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Requests a second, on average.
    pub rate: f64,
    /// For this long, after the warm-up.
    pub lasting: Duration,
    /// Requests at the same rate before, which are not counted. They ask about the last histories
    /// first, so that the first counted requests find nothing that a cache has of them.
    pub warmup: Duration,
}

/// Settings that give no load test; the message names the value and the rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(String);

/// A server that cannot be measured, or a request that it will not answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum CheckError {
    #[error(
        "{endpoint} cannot be reached: {reason}; start `palmette serve` there, or give the address that it printed"
    )]
    Unreachable { endpoint: String, reason: String },
    #[error(
        "{endpoint} does not answer within {seconds} s; is it a Palmette server, and is it idle?"
    )]
    NoAnswer { endpoint: String, seconds: f64 },
    #[error(
        "{endpoint} is no Palmette server: POST {path} gives {reason}; give the address that `palmette serve` printed"
    )]
    NotPalmette { endpoint: String, path: String, reason: String },
    #[error("{endpoint} wants a key: {reason}; give a key file with one that the server knows")]
    Key { endpoint: String, reason: String },
    #[error("{endpoint} refuses the first request with status {status}: {reason}")]
    Refused { endpoint: String, status: u16, reason: String },
}

/// State of a run in progress.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// The share of the time, or of the requests, that is over.
    pub done: f64,
    /// Requests sent, without those of the warm-up.
    pub sent: u64,
    /// Requests answered in time.
    pub in_time: u64,
}

/// Listener of a run, called on the thread that sends: what takes long here makes requests late,
/// which the report tells.
pub trait Observer {
    /// Called some times a second.
    fn progress(&mut self, _progress: Progress) {}
    /// True where [`answer`](Self::answer) is to be called; otherwise answers are not kept.
    fn keeps_answers(&self) -> bool {
        false
    }
    /// The answer of a request, once for each that was offered and ended, in the order of their
    /// ends.
    fn answer(&mut self, _answer: Answer) {}
}

/// Nobody listens.
impl Observer for () {}

/// A flag that breaks a run off: nothing more is sent, and what is on its way has a second to end.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Breaks the run off.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// True from [`stop`](Self::stop) on.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A client of one server, with its connections.
///
/// Runs follow each other: connections are kept, request numbers go on, and each has arrivals of
/// its own.
#[derive(Debug)]
pub struct Driver {
    endpoint: Endpoint,
    requests: Requests,
    settings: Settings,
    asking: Arc<Asking>,
    runtime: Runtime,
    pool: Arc<Pool>,
    stop: Stop,
    next_index: u64,
    next_stream: u64,
}

impl Driver {
    /// Makes the driver; nothing is sent.
    ///
    /// # Errors
    /// For settings out of range, no requests, a host that is not found, and where the system gives
    /// no threads.
    pub fn new(
        endpoint: Endpoint,
        requests: Requests,
        settings: Settings,
    ) -> Result<Self, SettingsError> {
        settings.check()?;
        if requests.is_empty() {
            return Err(SettingsError(
                "there are no histories; give a file with at least one".into(),
            ));
        }
        let addresses = endpoint.addresses();
        let addresses = addresses.map_err(|e| SettingsError(format!("{endpoint}: {e}")))?;
        let path: Uri = endpoint
            .recommend_path()
            .parse()
            .map_err(|e: hyper::http::uri::InvalidUri| SettingsError(format!("{endpoint}: {e}")))?;
        let asking = Asking {
            address: addresses[0],
            path,
            headers: requests.headers(&endpoint),
            keep_items: false,
        };
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        runtime
            .worker_threads(settings.threads)
            .thread_name("palmette-serve-loadtest")
            .enable_all();
        let runtime = runtime.build();
        let runtime =
            runtime.map_err(|e| SettingsError(format!("the runtime has no threads: {e}")))?;
        Ok(Self {
            pool: Pool::new(settings.connections),
            endpoint,
            requests,
            settings,
            asking: Arc::new(asking),
            runtime,
            stop: Stop::default(),
            next_index: 0,
            next_stream: 0,
        })
    }

    /// The flag that breaks off this driver's runs.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// Lets Ctrl-C set that flag instead of ending the process.
    pub fn stop_on_interrupt(&self) {
        let stop = self.stop();
        self.runtime.spawn(async move {
            // Where there is no such signal the process ends as it always did.
            while tokio::signal::ctrl_c().await.is_ok() {
                stop.stop();
            }
        });
    }

    /// Sends the first request, at each address of the host until one can be reached, and looks at
    /// the answer. Refusals for load are none of its errors.
    ///
    /// # Errors
    /// For a server that is not there, is no Palmette server, wants a key, or will not answer this
    /// request at any load.
    pub fn check(&mut self) -> Result<(), CheckError> {
        let endpoint = || self.endpoint.to_string();
        let mut failed =
            CheckError::Unreachable { endpoint: endpoint(), reason: "it has no address".into() };
        for address in self.endpoint.addresses().unwrap_or_default() {
            let asking = Asking {
                address,
                path: self.asking.path.clone(),
                headers: self.asking.headers.clone(),
                keep_items: false,
            };
            let timeout = self.settings.timeout;
            let expires = Instant::now() + timeout;
            let Some(mut lease) = self.pool.take() else { continue };
            let asked = asking.ask(&mut lease.connection, self.requests.body(0), || ());
            let outcome = match self.runtime.block_on(within(expires, asked)) {
                None => {
                    let seconds = timeout.as_secs_f64();
                    failed = CheckError::NoAnswer { endpoint: endpoint(), seconds };
                    continue;
                }
                Some(Err(reason)) => {
                    failed = CheckError::Unreachable { endpoint: endpoint(), reason };
                    continue;
                }
                Some(Ok(received)) => {
                    let is_problem = received.is_problem();
                    (received.outcome(false), is_problem)
                }
            };
            self.asking = Arc::new(asking);
            return self.judge(outcome);
        }
        Err(failed)
    }

    fn judge(&self, (outcome, is_problem): (Outcome, bool)) -> Result<(), CheckError> {
        let endpoint = self.endpoint.to_string();
        match outcome {
            Outcome::Other { status: 401, reason } => Err(CheckError::Key { endpoint, reason }),
            Outcome::Other { status, reason } if is_problem => {
                Err(CheckError::Refused { endpoint, status, reason })
            }
            Outcome::Other { .. } | Outcome::Malformed(_) => Err(CheckError::NotPalmette {
                endpoint,
                path: self.endpoint.recommend_path(),
                reason: outcome.error().unwrap_or_default(),
            }),
            _ => Ok(()),
        }
    }

    /// Offers requests at a rate, and waits until all have ended.
    ///
    /// # Errors
    /// For a rate, a time or a warm-up out of range; then nothing is sent.
    pub fn run(
        &mut self,
        load: &Load,
        observer: &mut dyn Observer,
    ) -> Result<RateReport, SettingsError> {
        load.check()?;
        let arrivals = Arrivals::new(load.rate, self.settings.seed, self.next_stream);
        let arrivals = arrivals.map_err(|e| SettingsError(e.to_string()))?;
        self.next_stream += 1;
        let end = load.warmup + load.lasting;
        let mut run = Run::new(self, observer);
        let start = Instant::now() + LEAD;
        run.begins = start + load.warmup;
        let warm = Arc::new(Mutex::new(run.driver.recorder(false)));
        let mut warm_ups = 0_u64;
        for arrival in arrivals.take_while(|&arrival| arrival < end) {
            let intended = start + arrival;
            let is_counted = arrival >= load.warmup;
            run.done = arrival.as_secs_f64() / end.as_secs_f64();
            if !run.sleep_until(intended) {
                break;
            }
            if is_counted {
                let recorder = Arc::clone(&run.recorder);
                run.begin_counting();
                let index = run.next_index();
                run.send(&recorder, index, index, intended);
            } else {
                let last = run.driver.requests.len() as u64 - 1;
                let body = last - warm_ups % (last + 1);
                warm_ups += 1;
                run.send(&warm, body, body, intended);
            }
        }
        // The last gap is part of the time that was measured.
        run.sleep_until(start + end);
        let offering = Instant::now().saturating_duration_since(run.begins).min(load.lasting);
        run.done = 1.0;
        run.drain();
        Ok(run.report(Some(load.rate), offering))
    }

    /// Sends `count` requests, each when the one before it has ended: no load, but the answers that
    /// a load's are compared with.
    pub fn run_one_at_a_time(&mut self, count: u64, observer: &mut dyn Observer) -> RateReport {
        let mut run = Run::new(self, observer);
        let recorder = Arc::clone(&run.recorder);
        run.begins = Instant::now();
        run.begin_counting();
        for sent in 0..count {
            run.done = sent as f64 / count as f64;
            if !run.wait(|driver, time| driver.pool.sleep_until(time, |busy| busy == 0)) {
                break;
            }
            let index = run.next_index();
            run.send(&recorder, index, index, Instant::now());
        }
        run.done = 1.0;
        run.drain();
        let offering = run.begins.elapsed();
        run.report(None, offering)
    }

    fn recorder(&self, keep_answers: bool) -> Recorder {
        let Settings { deadline, timeout, .. } = self.settings;
        // Waiting for a connection and for the answer.
        Recorder::new(deadline, 2 * timeout, self.requests.k, keep_answers)
    }
}

/// Run in progress.
struct Run<'a> {
    driver: &'a mut Driver,
    observer: &'a mut dyn Observer,
    recorder: Arc<Mutex<Recorder>>,
    asking: Arc<Asking>,
    /// Start of what is counted.
    begins: Instant,
    /// Processor time when the first request was counted.
    cpu_before: Option<Option<f64>>,
    done: f64,
    last_look: Instant,
    /// The last moment at which a request waited for a connection.
    all_busy_until: Instant,
    /// The moment by which all requests that were sent have ended.
    expires: Instant,
    interrupted: bool,
}

impl<'a> Run<'a> {
    fn new(driver: &'a mut Driver, observer: &'a mut dyn Observer) -> Self {
        let keep_items = observer.keeps_answers();
        let asking = Asking {
            address: driver.asking.address,
            path: driver.asking.path.clone(),
            headers: driver.asking.headers.clone(),
            keep_items,
        };
        let now = Instant::now();
        Self {
            recorder: Arc::new(Mutex::new(driver.recorder(keep_items))),
            asking: Arc::new(asking),
            driver,
            observer,
            begins: now,
            cpu_before: None,
            done: 0.0,
            last_look: now,
            all_busy_until: now,
            expires: now,
            interrupted: false,
        }
    }

    fn next_index(&mut self) -> u64 {
        let index = self.driver.next_index;
        self.driver.next_index += 1;
        index
    }

    fn begin_counting(&mut self) {
        self.cpu_before.get_or_insert_with(process_cpu_s);
    }

    /// Sends a request, or gives it up where no connection is free before its timeout.
    fn send(&mut self, recorder: &Arc<Mutex<Recorder>>, index: u64, body: u64, intended: Instant) {
        lock(recorder).offered += 1;
        let timeout = self.driver.settings.timeout;
        let (lease, waited) = match self.driver.pool.take() {
            // One that arrived while another waited has waited behind it.
            Some(lease) => (Some(lease), intended < self.all_busy_until),
            None => {
                let lease = self.wait_for_lease(intended + timeout);
                self.all_busy_until = Instant::now();
                (lease, true)
            }
        };
        let Some(lease) = lease else {
            lock(recorder).unsent(index);
            return;
        };
        let body = self.driver.requests.body(body);
        let (asking, recorder) = (Arc::clone(&self.asking), Arc::clone(recorder));
        let at_once = self.driver.pool.busy();
        lock(&recorder).sent(waited, at_once);
        let expires = Instant::now() + timeout;
        self.expires = self.expires.max(expires);
        self.driver.runtime.spawn(one(asking, lease, recorder, index, body, intended, expires));
        if self.last_look.elapsed() >= PAUSE {
            self.look();
        }
    }

    fn wait_for_lease(&mut self, until: Instant) -> Option<Lease> {
        while Instant::now() < until && !self.is_stopped() {
            let left = until.saturating_duration_since(Instant::now()).min(PAUSE);
            let limit = self.driver.pool.limit();
            self.driver.pool.sleep_until(left, |busy| busy < limit);
            if let Some(lease) = self.driver.pool.take() {
                return Some(lease);
            }
            self.look();
        }
        None
    }

    /// Sleeps until a moment; false where the run is broken off.
    fn sleep_until(&mut self, moment: Instant) -> bool {
        self.wait(|_, pause| {
            let left = moment.saturating_duration_since(Instant::now());
            std::thread::sleep(left.min(pause));
            left <= pause
        })
    }

    /// Waits until `sleep` reports its event; false where the run is broken off. `sleep` sleeps no
    /// longer than the duration it is given.
    fn wait(&mut self, sleep: impl Fn(&Driver, Duration) -> bool) -> bool {
        loop {
            if self.is_stopped() {
                return false;
            }
            if sleep(self.driver, PAUSE) {
                return true;
            }
            self.look();
        }
    }

    /// Waits until no request is on its way. Each ends by its timeout.
    fn drain(&mut self) {
        let mut until =
            if self.is_stopped() { Instant::now() + GRACE } else { self.expires + GRACE };
        while Instant::now() < until && !self.driver.pool.sleep_until(PAUSE, |busy| busy == 0) {
            let was_stopped = self.interrupted;
            if self.is_stopped() && !was_stopped {
                until = until.min(Instant::now() + GRACE);
            }
            self.look();
        }
        self.look();
    }

    fn is_stopped(&mut self) -> bool {
        self.interrupted |= self.driver.stop.is_stopped();
        self.interrupted
    }

    /// Tells the observer what has happened.
    fn look(&mut self) {
        self.last_look = Instant::now();
        let (answers, progress) = {
            let mut recorder = lock(&self.recorder);
            let (sent, in_time) = (recorder.sent, recorder.answered_in_time());
            let progress = Progress { done: self.done, sent, in_time };
            (std::mem::take(&mut recorder.answers), progress)
        };
        answers.into_iter().for_each(|answer| self.observer.answer(answer));
        self.observer.progress(progress);
    }

    fn report(&self, rate: Option<f64>, offering: Duration) -> RateReport {
        let cpu = self.cpu_before.flatten().zip(process_cpu_s());
        lock(&self.recorder).report(&Circumstances {
            rate,
            offering,
            lasted: Instant::now().saturating_duration_since(self.begins),
            cpu_s: cpu.map(|(before, after)| after - before),
            interrupted: self.interrupted,
        })
    }
}

/// Exchange of one request, from sending to its end.
async fn one(
    asking: Arc<Asking>,
    mut lease: Lease,
    recorder: Arc<Mutex<Recorder>>,
    index: u64,
    body: bytes::Bytes,
    intended: Instant,
    expires: Instant,
) {
    // Here, since a runtime that is too busy is late as well.
    lock(&recorder).begun(Instant::now().saturating_duration_since(intended));
    let opened = || lock(&recorder).connections_opened += 1;
    let asked = within(expires, asking.ask(&mut lease.connection, body, opened)).await;
    let latency = Instant::now().saturating_duration_since(intended);
    // The answer is looked into after its time has been taken.
    let outcome = match asked {
        None => Outcome::TimedOut,
        Some(Err(reason)) => Outcome::Broken(reason),
        Some(Ok(received)) => received.outcome(asking.keep_items),
    };
    // Before the lease ends: when none is left, all have been counted.
    lock(&recorder).ended(index, outcome, latency);
    drop(lease);
}

/// Result of a future, if it comes before a moment.
async fn within<T>(expires: Instant, future: impl Future<Output = T>) -> Option<T> {
    timeout_at(expires.into(), future).await.ok()
}

fn lock(recorder: &Mutex<Recorder>) -> MutexGuard<'_, Recorder> {
    // Counts that a panic left are still counts.
    recorder.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Settings {
    fn check(&self) -> Result<(), SettingsError> {
        const MAX_CONNECTIONS: usize = 65_536;
        const MAX_THREADS: usize = 64;
        const HOUR: Duration = Duration::from_secs(3_600);
        let error = |message: String| Err(SettingsError(message));
        if !(1..=MAX_CONNECTIONS).contains(&self.connections) {
            return error(format!(
                "the number of connections is {}; it must be from 1 to {MAX_CONNECTIONS}",
                self.connections
            ));
        }
        if !(1..=MAX_THREADS).contains(&self.threads) {
            return error(format!(
                "the number of threads is {}; it must be from 1 to {MAX_THREADS}",
                self.threads
            ));
        }
        if !(Duration::from_millis(1)..=HOUR).contains(&self.timeout) {
            return error(format!(
                "the timeout is {} ms; it must be from 1 ms to an hour",
                self.timeout.as_millis()
            ));
        }
        if let Some(deadline) = self.deadline
            && (deadline.is_zero() || deadline > self.timeout)
        {
            return error(format!(
                "the deadline is {} ms; it must be above 0 and at most the timeout, {} ms, after which no answer is waited for",
                deadline.as_millis(),
                self.timeout.as_millis()
            ));
        }
        Ok(())
    }
}

impl Load {
    /// Looks whether it can be offered, as [`Driver::run`] does; the rate is looked at by
    /// [`Arrivals::new`].
    ///
    /// # Errors
    /// For a time or a warm-up out of range.
    pub fn check(&self) -> Result<(), SettingsError> {
        const DAY: Duration = Duration::from_secs(86_400);
        if self.lasting.is_zero() || self.lasting > DAY {
            return Err(SettingsError(format!(
                "the load lasts {} s; it must last more than 0 and at most {} s",
                self.lasting.as_secs_f64(),
                DAY.as_secs()
            )));
        }
        if self.warmup > DAY {
            return Err(SettingsError(format!(
                "the warm-up lasts {} s; it must last at most {} s",
                self.warmup.as_secs_f64(),
                DAY.as_secs()
            )));
        }
        Ok(())
    }
}
