//! Server of the tests: HTTP/1.1 by hand, a thread a connection, each request answered as a closure
//! says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use palmette_serve_loadtest::{Driver, Endpoint, Load, Requests, Settings};

/// The answer to a request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Status, type, body; the connection stays.
    Http(u16, &'static str, String),
    /// The same with `Connection: close`.
    Last(u16, &'static str, String),
    /// These bytes, and the connection is closed.
    Raw(&'static str),
    /// None, while the client waits.
    Never,
}

impl Reply {
    pub(crate) fn items(items: &str) -> Self {
        Self::Http(200, "application/json", format!(r#"{{"items": {items}, "shortfall": null}}"#))
    }

    pub(crate) fn problem(status: u16, detail: &str) -> Self {
        let body = format!(r#"{{"title": "t", "status": {status}, "detail": "{detail}"}}"#);
        Self::Http(status, "application/problem+json", body)
    }
}

/// A server on a port of its own, to the end of the test.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// Heads and bodies, as they came.
    pub(crate) seen: Arc<Mutex<Vec<(String, String)>>>,
    pub(crate) connections: Arc<AtomicUsize>,
}

impl Server {
    /// `reply` is given the number of the request among all, from 0, and its body.
    pub(crate) fn start(reply: impl Fn(usize, &str) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            seen: Arc::default(),
            connections: Arc::default(),
        };
        let (seen, connections) = (Arc::clone(&server.seen), Arc::clone(&server.connections));
        let reply = Arc::new(reply);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (seen, reply) = (Arc::clone(&seen), Arc::clone(&reply));
                connections.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || serve(stream.unwrap(), &seen, &*reply));
            }
        });
        server
    }

    /// Answers one request after the other, whatever the number of connections, each in `time`.
    pub(crate) fn one_at_a_time(time: Duration) -> Self {
        let busy = Mutex::new(());
        Self::start(move |_, _| {
            let _busy = busy.lock().unwrap();
            std::thread::sleep(time);
            Reply::items("[1, 2, 3]")
        })
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::parse(&format!("http://{}", self.address)).unwrap()
    }

    /// A driver with three histories that asks for three items.
    pub(crate) fn driver(&self, settings: Settings) -> Driver {
        let bodies = ["[0]", "[1]", "[2]"].map(|body| body.into()).to_vec();
        Driver::new(self.endpoint(), Requests::new(bodies, 3), settings).unwrap()
    }
}

fn serve(
    stream: TcpStream,
    seen: &Mutex<Vec<(String, String)>>,
    reply: &(dyn Fn(usize, &str) -> Reply + Send + Sync),
) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut stream = stream;
    loop {
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if line.trim().is_empty() {
                break;
            }
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
            head += &line;
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let body = String::from_utf8(body).ok()?;
        let number = {
            let mut seen = seen.lock().unwrap();
            seen.push((head, body.clone()));
            seen.len() - 1
        };
        let reply = reply(number, &body);
        match &reply {
            Reply::Http(status, media_type, body) | Reply::Last(status, media_type, body) => {
                let is_last = matches!(reply, Reply::Last(..));
                let close = if is_last { "connection: close\r\n" } else { "" };
                let text = format!(
                    "HTTP/1.1 {status} x\r\ncontent-type: {media_type}\r\n{close}content-length: {}\r\n\r\n{body}",
                    body.len()
                );
                stream.write_all(text.as_bytes()).ok()?;
                if is_last {
                    return None;
                }
            }
            Reply::Raw(text) => return stream.write_all(text.as_bytes()).ok(),
            // Until the client goes away.
            Reply::Never => {
                reader.read_line(&mut String::new()).ok();
                return None;
            }
        }
    }
}

pub(crate) fn settings() -> Settings {
    Settings {
        connections: 64,
        timeout: Duration::from_secs(20),
        deadline: None,
        seed: 7,
        threads: 1,
    }
}

pub(crate) fn load(rate: f64, ms: u64) -> Load {
    Load { rate, lasting: Duration::from_millis(ms), warmup: Duration::ZERO }
}
