//! Shared logs in PostgreSQL: a table of objects, one of files, and `LISTEN`/`NOTIFY` to tell of
//! new ones.
//!
//! An object is a row whose name is the primary key, so that one of those that insert it makes it;
//! it is on the disk when the insert is answered, unless `synchronous_commit` is off. The tables
//! are `palmette_objects` and `palmette_files`, in the first schema of the search path, and are
//! made where they are not there. Connections are not encrypted: reach the database over a socket,
//! a private network or a tunnel.

use std::fmt;
use std::future::poll_fn;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::{Mutex, watch};
use tokio_postgres::{AsyncMessage, Client, Config, NoTls};

use crate::error::LogError;
use crate::open::shown;
use crate::pieces::Pieces;
use crate::shared_log::SharedLog;

/// Bytes of a file in one row.
const PART: usize = 4 << 20;
const CHANNEL: &str = "palmette_objects";
const TABLES: &str = r#"
CREATE TABLE IF NOT EXISTS palmette_objects (name text COLLATE "C" PRIMARY KEY, bytes bytea NOT NULL);
CREATE TABLE IF NOT EXISTS palmette_files
  (name text COLLATE "C" NOT NULL, part integer NOT NULL, bytes bytea NOT NULL, PRIMARY KEY (name, part));
"#;

/// A database.
pub struct PostgresLog {
    config: Config,
    address: String,
    client: Mutex<Option<Arc<Client>>>,
    /// Counts what was told of.
    told: Arc<watch::Sender<u64>>,
}

impl fmt::Debug for PostgresLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresLog").field("address", &self.address).finish_non_exhaustive()
    }
}

impl PostgresLog {
    /// Connects to a database, and makes the tables where they are not there.
    ///
    /// # Errors
    /// When the address is none, or the database cannot be reached.
    pub async fn open(address: &str) -> Result<Self, LogError> {
        let config: Config = address
            .parse()
            .map_err(|error| LogError::address(shown(address), format!("{error}")))?;
        let told = Arc::new(watch::Sender::new(0));
        let this =
            Self { config, address: shown(address), client: Mutex::new(None), told: told.clone() };
        let client = this.client().await?;
        // Two that make them at once may fail, though they say IF NOT EXISTS: then they are there.
        let mut made = client.batch_execute(TABLES).await;
        if made.is_err() {
            made = client.batch_execute(TABLES).await;
        }
        made.map_err(|error| this.failed("the tables", &error))?;
        tokio::spawn(listen(this.config.clone(), Arc::downgrade(&told)));
        Ok(this)
    }

    /// The connection, made anew where it broke.
    async fn client(&self) -> Result<Arc<Client>, LogError> {
        let mut held = self.client.lock().await;
        if let Some(client) = held.as_ref().filter(|client| !client.is_closed()) {
            return Ok(Arc::clone(client));
        }
        let connected = self.config.connect(NoTls).await;
        let (client, connection) = connected.map_err(|error| self.failed("", &error))?;
        tokio::spawn(async move {
            // Whoever asks next is told that it broke.
            _ = connection.await;
        });
        let client = Arc::new(client);
        *held = Some(Arc::clone(&client));
        Ok(client)
    }

    fn failed(&self, object: &str, error: &tokio_postgres::Error) -> LogError {
        let object = format!("{} {object}", self.address);
        // The cause says what the database said.
        let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
        LogError::store(object.trim(), format!("{error}{}", cause.unwrap_or_default()))
    }
}

/// Tells of what is made, until nobody listens.
async fn listen(config: Config, told: Weak<watch::Sender<u64>>) {
    while told.strong_count() > 0 {
        let listening = async {
            let (client, mut connection) = config.connect(NoTls).await?;
            let (sender, mut messages) = tokio::sync::mpsc::unbounded_channel();
            tokio::spawn(async move {
                while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
                    if sender.send(message).is_err() {
                        return;
                    }
                }
            });
            client.batch_execute(&format!("LISTEN {CHANNEL}")).await?;
            loop {
                match tokio::time::timeout(Duration::from_secs(5), messages.recv()).await {
                    Ok(Some(AsyncMessage::Notification(_))) => match told.upgrade() {
                        Some(told) => told.send_modify(|count| *count += 1),
                        None => break,
                    },
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(_) if told.strong_count() == 0 => break,
                    Err(_) => {}
                }
            }
            Ok::<_, tokio_postgres::Error>(())
        };
        if let Err(error) = listening.await {
            tracing::debug!(%error, "nothing is told of new entries; they are looked for");
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[async_trait]
impl SharedLog for PostgresLog {
    async fn create(&self, name: &str, bytes: Bytes) -> Result<bool, LogError> {
        let client = self.client().await?;
        let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
        let made = client
            .query_opt(
                "WITH made AS (INSERT INTO palmette_objects (name, bytes) VALUES ($1, $2) \
                 ON CONFLICT DO NOTHING RETURNING name) \
                 SELECT pg_notify('palmette_objects', $3) FROM made",
                &[&name, &&bytes[..], &folder],
            )
            .await;
        Ok(made.map_err(|error| self.failed(name, &error))?.is_some())
    }

    async fn read(&self, name: &str) -> Result<Option<Bytes>, LogError> {
        let client = self.client().await?;
        let found =
            client.query_opt("SELECT bytes FROM palmette_objects WHERE name = $1", &[&name]).await;
        let found = found.map_err(|error| self.failed(name, &error))?;
        Ok(found.map(|row| Bytes::from(row.get::<_, Vec<u8>>(0))))
    }

    async fn names(
        &self,
        folder: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<String>, LogError> {
        let client = self.client().await?;
        // Zero is the character after the slash.
        let (from, to) = (format!("{folder}/{after}"), format!("{folder}0"));
        let begin = folder.len() as i32 + 2;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let select = |table: &str| {
            format!(
                "SELECT DISTINCT substr(name, $3) AS own FROM {table} WHERE name > $1 AND name < $2 AND strpos(substr(name, $3), '/') = 0"
            )
        };
        let query = format!(
            "SELECT own FROM ({} UNION {}) AS listed ORDER BY own COLLATE \"C\" LIMIT $4",
            select("palmette_objects"),
            select("palmette_files")
        );
        let rows = client.query(&query, &[&from, &to, &begin, &limit]).await;
        let rows = rows.map_err(|error| self.failed(folder, &error))?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    async fn delete(&self, name: &str) -> Result<(), LogError> {
        let client = self.client().await?;
        for table in ["palmette_objects", "palmette_files"] {
            let deleted =
                client.execute(&format!("DELETE FROM {table} WHERE name = $1"), &[&name]).await;
            deleted.map_err(|error| self.failed(name, &error))?;
        }
        Ok(())
    }

    async fn put_file(&self, name: &str, from: &Path) -> Result<(), LogError> {
        let client = self.client().await?;
        let mut file = Pieces::open(from).await?;
        let failed = |error| self.failed(name, &error);
        client
            .execute("DELETE FROM palmette_files WHERE name = $1", &[&name])
            .await
            .map_err(failed)?;
        for part in 0_i32.. {
            let piece = file.next(PART).await?;
            // An empty file has an empty row.
            if piece.is_empty() && part > 0 {
                break;
            }
            let insert = "INSERT INTO palmette_files (name, part, bytes) VALUES ($1, $2, $3)";
            client.execute(insert, &[&name, &part, &&piece[..]]).await.map_err(failed)?;
        }
        Ok(())
    }

    async fn get_file(&self, name: &str, to: &Path) -> Result<bool, LogError> {
        let client = self.client().await?;
        let select = "SELECT bytes FROM palmette_files WHERE name = $1 AND part = $2";
        let mut file = None;
        for part in 0_i32.. {
            let row = client.query_opt(select, &[&name, &part]).await;
            let Some(row) = row.map_err(|error| self.failed(name, &error))? else { break };
            let file = match &mut file {
                Some(file) => file,
                none => none.insert(Pieces::create(to).await?),
            };
            file.write(row.get::<_, Vec<u8>>(0).into()).await?;
        }
        Ok(file.is_some())
    }

    async fn wait(&self, _: &str, most: Duration) {
        let mut told = self.told.subscribe();
        // Something that comes before this is looked for after `most`.
        _ = tokio::time::timeout(most, told.changed()).await;
    }

    fn poll(&self) -> Duration {
        Duration::from_millis(100)
    }

    async fn exists(&self, name: &str) -> Result<bool, LogError> {
        let client = self.client().await?;
        let found =
            client.query_opt("SELECT 1 FROM palmette_objects WHERE name = $1", &[&name]).await;
        Ok(found.map_err(|error| self.failed(name, &error))?.is_some())
    }

    fn address(&self) -> &str {
        &self.address
    }
}
