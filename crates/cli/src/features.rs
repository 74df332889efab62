//! Cargo features of this build: their names for `--version`, and the error where one is missing.

use std::sync::LazyLock;

/// Each feature, and whether it is in this build.
const FEATURES: [(&str, bool); 9] = [
    ("bench", cfg!(feature = "bench")),
    ("cuda", cfg!(feature = "cuda")),
    ("demo", cfg!(feature = "demo")),
    ("encodings", cfg!(feature = "encodings")),
    ("hf-tokenizers", cfg!(feature = "hf-tokenizers")),
    ("otel", cfg!(feature = "otel")),
    ("postgres", cfg!(feature = "postgres")),
    ("server", cfg!(feature = "server")),
    ("tables", cfg!(feature = "tables")),
];

/// `0.1.0 (with demo, encodings; without bench, …)`.
pub(crate) fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        let named = |built: bool| {
            let names = FEATURES.iter().filter(|(_, is_in)| *is_in == built).map(|(name, _)| *name);
            let names = names.collect::<Vec<_>>().join(", ");
            if names.is_empty() { "no features".to_owned() } else { names }
        };
        let without = match FEATURES.iter().all(|(_, is_in)| *is_in) {
            true => String::new(),
            false => format!("; without {}", named(false)),
        };
        format!("{} (with {}{without})", env!("CARGO_PKG_VERSION"), named(true))
    });
    &VERSION
}

/// The error of something that needs a feature: what this build does not do, and the way out.
#[cfg_attr(
    all(
        feature = "bench",
        feature = "cuda",
        feature = "demo",
        feature = "otel",
        feature = "tables"
    ),
    expect(dead_code, reason = "nothing is missing")
)]
pub(crate) fn left_out(lacking: &str, feature: &str) -> anyhow::Error {
    anyhow::anyhow!("this build {lacking}; build with `--features {feature}`")
}
