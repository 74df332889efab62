//! Configuration of a server: promises, limits and room.

use std::path::PathBuf;
use std::time::Duration;

use palmette_recommend::QuestionLimits;
use palmette_serve_schedule::Config as Schedule;

use crate::model_loader::ModelLoader;

/// Configuration of a server. The default is that of a process with the machine to itself.
#[derive(Clone, Debug)]
pub struct ServeConfig {
    /// Streams, threads, memory and policy of the scheduler.
    pub schedule: Schedule,
    /// Reader of the models of directories.
    pub models: ModelLoader,
    /// Deadline of an interactive request that names none, from its receipt.
    pub default_deadline: Duration,
    /// The longest deadline that a request may name.
    pub max_deadline: Duration,
    /// Limits of questions, and the width of searches whose question names none.
    pub questions: QuestionLimits,
    /// Bytes of a request's body, uploads apart.
    pub max_body: usize,
    /// Bytes of a body of items or of a whole catalog.
    pub max_upload: usize,
    /// The longest time of a request for text, from its receipt.
    pub max_text_time: Duration,
    /// Time for headers, and again for a body, to arrive in.
    pub read_timeout: Duration,
    /// Time between two requests of a connection, after which it is closed.
    pub idle_timeout: Duration,
    /// Connections at once; more wait to be accepted.
    pub max_connections: usize,
    /// Bytes of answers that are kept for repeated requests; 0 for none.
    pub answer_cache: usize,
    /// Directory for models and catalogs that clients name or upload, and for targets; without it
    /// there are none of these.
    pub data_dir: Option<PathBuf>,
    /// Time between the end of readiness and the end of admission, for balancers to notice.
    pub drain_delay: Duration,
    /// Time for requests that were admitted to end in after that.
    pub drain_grace: Duration,
    /// Time for texts that are being written to end in after that; then each ends with an error, a
    /// stream by its last event.
    pub text_drain_grace: Duration,
    /// Status of a refusal for want of time: 429, or 503 for balancers that try another server only
    /// then.
    pub overload_status: u16,
    /// Time behind a shared log after which a server is not ready.
    pub max_lag: Duration,
    /// Names by which requests without keys may call this server, beside addresses and localhost.
    pub server_names: Vec<String>,
    /// Origins whose pages may ask without keys, beside this server's own, such as
    /// `https://shop.example`.
    pub origins: Vec<String>,
    /// File of keys, a line each: `name scope[,scope] catalogs sha256hex`. Without one every
    /// request may do everything.
    pub keys: Option<PathBuf>,
    /// File that gets the scheduler's events and actions, a JSON line each.
    pub record: Option<PathBuf>,
}

impl Default for ServeConfig {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
        Self {
            schedule: Schedule {
                streams: cores,
                threads: cores,
                memory: 4 << 30,
                ..Schedule::default()
            },
            models: ModelLoader::default(),
            default_deadline: Duration::from_secs(1),
            max_deadline: Duration::from_secs(30),
            questions: QuestionLimits {
                max_k: 1000,
                max_beam_width: 4096,
                max_history: 1000,
                max_free_tokens: 4096,
                max_explained_items: 16,
                ..QuestionLimits::default()
            },
            max_body: 1 << 20,
            max_upload: 64 << 20,
            max_text_time: Duration::from_secs(600),
            read_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            max_connections: 10_000,
            answer_cache: 64 << 20,
            data_dir: None,
            drain_delay: Duration::from_secs(5),
            drain_grace: Duration::from_secs(30),
            text_drain_grace: Duration::from_secs(30),
            overload_status: 429,
            max_lag: Duration::from_secs(5),
            server_names: Vec::new(),
            origins: Vec::new(),
            keys: None,
            record: None,
        }
    }
}
