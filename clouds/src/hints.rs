//! Hints over NATS: a reader looks at the log as soon as an object was made, and seldom otherwise.
//!
//! An object store tells nobody of new objects, so replicas look five times a second, and each look
//! is a request that is paid for. [`HintedLog`] stands before any log: who makes an object
//! publishes its folder on a subject of the log, and who waits in that folder looks at once. The
//! log alone has the truth. A hint that is lost costs the time until the next look, one that is
//! late, repeated or false costs a look, and a NATS server that is away makes everything as it is
//! without.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, ConnectOptions, ServerAddr};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use palmette_catalog_replica::{LogError, SharedLog};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Time between looks while hints come.
const POLL: Duration = Duration::from_secs(1);

/// A hint is published within this time, or not at all.
const PUBLISH: Duration = Duration::from_millis(50);

/// A shared log whose makers of objects tell its readers.
///
/// Dropping it ends its connection.
#[derive(Debug)]
pub struct HintedLog {
    log: Arc<dyn SharedLog>,
    subject: String,
    client: Arc<OnceLock<Client>>,
    /// By folder that is waited in: true where it was told of since the last wait ended.
    told: watch::Sender<HashMap<String, bool>>,
    listening: JoinHandle<()>,
}

impl HintedLog {
    /// Hints for a log by the NATS server at `nats://[USER:PASSWORD@]HOST:PORT`. The server need
    /// not be there yet.
    ///
    /// # Errors
    /// When the address is none of a server.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn new(log: Arc<dyn SharedLog>, server: &str) -> Result<Self, LogError> {
        let server = server
            .parse::<ServerAddr>()
            .ok()
            .filter(|server| !server.host().is_empty())
            .ok_or_else(|| {
            let problem =
                format!("{server:?} is no address of a server of hints, which is nats://HOST:PORT");
            LogError::address(log.address(), problem)
        })?;
        let subject = subject(log.address());
        let (client, told) = (Arc::default(), watch::Sender::new(HashMap::new()));
        let listening =
            tokio::spawn(listen(server, subject.clone(), Arc::clone(&client), told.clone()));
        Ok(Self { log, subject, client, told, listening })
    }

    fn connected(&self) -> Option<&Client> {
        self.client.get().filter(|client| client.connection_state() == State::Connected)
    }
}

impl Drop for HintedLog {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// The subject of a log: its address, in what subjects are made of. Logs that share one by chance
/// only look more often.
fn subject(address: &str) -> String {
    let part = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    format!("palmette.log.{}", address.chars().map(part).collect::<String>())
}

/// Hears of folders for as long as it is let.
async fn listen(
    server: ServerAddr,
    subject: String,
    known: Arc<OnceLock<Client>>,
    told: watch::Sender<HashMap<String, bool>>,
) {
    // Tries for ever, with pauses that grow to four seconds; afterwards the client connects again
    // by itself.
    let options = ConnectOptions::new().retry_on_initial_connect();
    let Ok(client) = options.connect(server).await else { return };
    let Ok(mut hints) = client.subscribe(subject).await else { return };
    _ = known.set(client);
    while let Some(hint) = hints.next().await {
        told.send_if_modified(|told| tell(told, &hint.payload));
    }
}

/// Marks a folder that is waited in; false for any other, so that strangers cannot make the list
/// long.
fn tell(told: &mut HashMap<String, bool>, folder: &[u8]) -> bool {
    match str::from_utf8(folder).ok().and_then(|folder| told.get_mut(folder)) {
        Some(is_told) => !std::mem::replace(is_told, true),
        None => false,
    }
}

#[async_trait]
impl SharedLog for HintedLog {
    async fn create(&self, name: &str, bytes: Bytes) -> Result<bool, LogError> {
        let is_made = self.log.create(name, bytes).await?;
        if is_made {
            let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
            self.told.send_if_modified(|told| tell(told, folder.as_bytes()));
            if let Some(client) = self.connected() {
                let hint = client.publish(self.subject.clone(), Bytes::from(folder.to_owned()));
                _ = tokio::time::timeout(PUBLISH, hint).await;
            }
        }
        Ok(is_made)
    }

    async fn read(&self, name: &str) -> Result<Option<Bytes>, LogError> {
        self.log.read(name).await
    }

    async fn names(
        &self,
        folder: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<String>, LogError> {
        self.log.names(folder, after, limit).await
    }

    async fn delete(&self, name: &str) -> Result<(), LogError> {
        self.log.delete(name).await
    }

    async fn put_file(&self, name: &str, from: &Path) -> Result<(), LogError> {
        self.log.put_file(name, from).await
    }

    async fn get_file(&self, name: &str, to: &Path) -> Result<bool, LogError> {
        self.log.get_file(name, to).await
    }

    async fn wait(&self, folder: &str, most: Duration) {
        self.told.send_if_modified(|told| {
            told.entry(folder.to_owned()).or_default();
            false
        });
        let mut told = self.told.subscribe();
        let is_told = told.wait_for(|told| told.get(folder) == Some(&true));
        if tokio::time::timeout(most, is_told).await.is_ok() {
            self.told.send_if_modified(|told| {
                told.insert(folder.to_owned(), false);
                false
            });
        }
    }

    fn poll(&self) -> Duration {
        match self.connected() {
            Some(_) => POLL.max(self.log.poll()),
            None => self.log.poll(),
        }
    }

    async fn exists(&self, name: &str) -> Result<bool, LogError> {
        self.log.exists(name).await
    }

    fn address(&self) -> &str {
        self.log.address()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_have_letters_digits_and_lines() {
        assert_eq!(subject("s3://bucket/a.b *>"), "palmette.log.s3___bucket_a_b___");
    }

    #[test]
    fn folders_that_nobody_waits_in_are_not_kept() {
        let mut told = HashMap::from([("a/log".to_owned(), false)]);
        assert!(tell(&mut told, b"a/log") && !tell(&mut told, b"a/log"));
        assert!(!tell(&mut told, b"b/log") && !tell(&mut told, b"\xff"));
        assert_eq!(told, HashMap::from([("a/log".to_owned(), true)]));
    }
}
