//! The commands as a user types them; those that need a feature where the build has it.

#[cfg(all(feature = "demo", feature = "server", unix))]
mod audit;
#[cfg(feature = "bench")]
mod bench;
#[cfg(feature = "bench")]
mod bench_grammar;
#[cfg(feature = "bench")]
mod bench_members;
#[cfg(feature = "bench")]
mod bench_recommend;
#[cfg(feature = "tables")]
mod catalog_build;
mod catalog_files;
mod catalog_plan;
#[cfg(feature = "demo")]
mod cli;
mod command;
#[cfg(all(feature = "server", feature = "hf-tokenizers"))]
mod deploy;
mod devices;
#[cfg(feature = "demo")]
mod filters;
#[cfg(all(feature = "demo", feature = "server", target_os = "linux"))]
mod full_disk;
mod generate;
mod grammar;
#[cfg(target_os = "linux")]
mod hostile;
#[cfg(feature = "demo")]
mod json_errors;
mod left_out;
mod lexicon;
#[cfg(feature = "server")]
mod loadtest;
#[cfg(feature = "hf-tokenizers")]
mod model;
#[cfg(feature = "demo")]
mod offline;
#[cfg(feature = "demo")]
mod recommend;
#[cfg(all(feature = "demo", feature = "server", unix))]
mod replicas;
#[cfg(all(feature = "demo", feature = "server", unix))]
mod serve;
#[cfg(all(feature = "demo", feature = "server", unix))]
mod serve_tour;
#[cfg(all(feature = "demo", feature = "server", unix))]
mod server;
#[cfg(feature = "demo")]
mod shop;
mod simulate;
mod vocabulary;
#[cfg(all(feature = "demo", target_os = "linux"))]
mod week;
