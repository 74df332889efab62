//! Traces of requests, handed to a collector by OTLP over HTTP.

use std::pin::Pin;
use std::time::Duration;

use anyhow::Context;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::hyper::HyperClient;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use tokio::runtime::Runtime;

/// Time for the collector to take what it is sent.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Traces that are handed on until this is dropped; the remainder is sent then.
#[derive(Debug)]
pub(crate) struct Traces(SdkTracerProvider);

impl Traces {
    /// Begins to hand traces to the collector at a URL such as `http://127.0.0.1:4318`.
    pub(super) fn start(url: &str) -> anyhow::Result<Self> {
        let exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpJson)
            .with_http_client(Client::start()?)
            .with_timeout(TIMEOUT)
            .with_endpoint(format!("{}/v1/traces", url.trim_end_matches('/')))
            .build()
            .with_context(|| format!("--otlp {url}"))?;
        let resource = Resource::builder().with_service_name("palmette").build();
        let provider =
            SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource);
        Ok(Self(provider.build()))
    }

    pub(super) fn tracer(&self) -> SdkTracer {
        self.0.tracer("palmette")
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        if let Err(error) = self.0.shutdown() {
            tracing::warn!(%error, "the last traces were not handed on");
        }
    }
}

/// A client with a thread of its own: the exporter's has no reactor.
#[derive(Debug)]
struct Client {
    runtime: Runtime,
    client: HyperClient,
}

impl Client {
    fn start() -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("traces")
            .enable_all()
            .build()
            .context("a thread for traces")?;
        Ok(Self { runtime, client: HyperClient::with_default_connector(TIMEOUT, None) })
    }
}

type ResponseFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for Client {
    fn send_bytes<'a, 'b>(&'a self, request: Request<Bytes>) -> ResponseFuture<'b>
    where
        'a: 'b,
        Self: 'b,
    {
        let client = self.client.clone();
        let sent = self.runtime.spawn(async move { client.send_bytes(request).await });
        Box::pin(async move { sent.await? })
    }
}
