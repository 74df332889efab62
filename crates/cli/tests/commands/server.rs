//! A server as a process of its own, asked over sockets.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::NamedTempFile;

use crate::shop::Shop;

/// Time after which something that was to happen is taken not to: long, for machines that do much
/// else.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server that listens; killed when dropped.
pub(crate) struct Server {
    child: Child,
    log: NamedTempFile,
    /// Host and port.
    pub(crate) address: String,
}

/// `serve` over the exported shop, its catalog a file, on a free port.
pub(crate) fn shop_args(more: &[&str]) -> Vec<String> {
    let shop = Shop::get();
    let (model, catalog) = (shop.path("model"), shop.path("shop.palm"));
    let args = ["serve", "--model", &model, "--catalog", &catalog, "--listen", "127.0.0.1:0"];
    args.iter().chain(more).map(|&arg| arg.to_owned()).collect()
}

impl Server {
    /// Starts one whose arguments have `--json`, and waits until it listens.
    #[track_caller]
    pub(crate) fn start(args: &[String]) -> Self {
        Self::start_by(Command::new(env!("CARGO_BIN_EXE_palmette")).args(args))
    }

    /// Server started by a command that becomes the server.
    #[track_caller]
    pub(crate) fn start_by(command: &mut Command) -> Self {
        let log = NamedTempFile::new().expect("a file");
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(log.reopen().expect("a file"))
            .spawn()
            .expect("the built command");
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        out.read_line(&mut line).expect("a pipe");
        let mut server = Self { child, log, address: String::new() };
        let started: Value = serde_json::from_str(&line).unwrap_or_else(|error| {
            panic!("{command:?} printed {line:?}, {error}; its log: {}", server.log())
        });
        server.address = started["listening"].as_str().expect("an address").to_owned();
        server
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.log.path()).unwrap_or_default()
    }

    /// Status and body; of text a string.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        ask(&self.address, "GET", path, None).expect("an answer")
    }

    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        ask(&self.address, "POST", path, Some(&body.to_string())).expect("an answer")
    }

    /// Request with a key.
    #[track_caller]
    pub(crate) fn post_with(&self, key: &str, path: &str, body: &Value) -> (u16, Value) {
        let header = format!("authorization: Bearer {key}\r\n");
        ask_with(&self.address, "POST", path, &header, Some(&body.to_string())).expect("an answer")
    }

    /// The sum of a metric over its labels.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").1;
        let lines = text.as_str().unwrap_or("").lines();
        let of = lines.filter(|line| {
            line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{']))
        });
        of.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
    }

    pub(crate) fn takes_connections(&self) -> bool {
        TcpStream::connect(&self.address).is_ok()
    }

    /// Sends a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &id]).status();
        assert!(sent.expect("kill").success());
    }

    /// Ends it as a crash does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("a child");
        self.child.wait().expect("a child");
    }

    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, is_so: impl Fn() -> bool) {
        let began = Instant::now();
        while !is_so() {
            assert!(began.elapsed() < PATIENCE, "waited for too long until {what}: {}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for the end of the process; its exit code.
    #[track_caller]
    pub(crate) fn ended(&mut self) -> Option<i32> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status.code();
            }
            assert!(began.elapsed() < PATIENCE, "it does not end: {}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that has ended already is no error.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Asks over a connection of its own; a body that is no JSON comes as a string.
pub(crate) fn ask(
    address: &str,
    method: &str,
    path: &str,
    body: Option<&str>,
) -> std::io::Result<(u16, Value)> {
    ask_with(address, method, path, "", body)
}

/// Request with more headers, each with the end of its line.
pub(crate) fn ask_with(
    address: &str,
    method: &str,
    path: &str,
    headers: &str,
    body: Option<&str>,
) -> std::io::Result<(u16, Value)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let body = body.unwrap_or("");
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + body).as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let broken = || std::io::Error::other(format!("a broken answer: {answer:?}"));
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(broken)?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(broken)?;
    let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body = match is_chunked {
        true => unchunked(body).ok_or_else(broken)?,
        false => body.to_owned(),
    };
    Ok((status, serde_json::from_str(&body).unwrap_or(Value::String(body))))
}

/// A body that came in chunks, each with its length before it.
fn unchunked(body: &str) -> Option<String> {
    let (mut rest, mut whole) = (body.as_bytes(), Vec::new());
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        let len = usize::from_str_radix(std::str::from_utf8(&rest[..end]).ok()?, 16).ok()?;
        if len == 0 {
            return String::from_utf8(whole).ok();
        }
        whole.extend_from_slice(rest.get(end + 2..end + 2 + len)?);
        rest = rest.get(end + 4 + len..)?;
    }
}
