//! Other engines beside palmette, in the same run.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use palmette_bench::grammar::{
    CaseOutcome, GrammarCase, GrammarReport, Peer, Percentiles, Reason, Walks,
};
use serde::Serialize;

use crate::output::{bytes, grouped, progress_bar, table};

/// Options of other engines that follow the same texts.
#[derive(Debug, Args)]
pub(super) struct PeerArgs {
    /// Folder of the programs llguidance-peer, glrmask-peer and outlines-peer: those that are there
    /// follow the same texts, one engine after another, each with one thread. lab/peers says how to
    /// build them; they read JSON Schema and Lark, over o200k_base
    #[arg(long, value_name = "FOLDER", conflicts_with = "lines", help_heading = "Other engines")]
    peers: Option<PathBuf>,
    /// Another engine: a command that takes --cases FILE --skip N and prints a line for each case
    /// as --lines does
    #[arg(long, value_name = "NAME=COMMAND", value_parser = peer, conflicts_with = "lines", help_heading = "Other engines")]
    peer: Vec<Peer>,
    /// Longest time that a peer may take for one case; then it counts as not compiled
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, help_heading = "Other engines")]
    peer_seconds: f64,
    /// Folder in which every engine's lines are kept, as NAME.jsonl, for
    /// lab/timings/plot_grammar.py; made if it is not there
    #[arg(long, value_name = "FOLDER", conflicts_with = "lines", help_heading = "Other engines")]
    keep_lines: Option<PathBuf>,
}

/// A peer's report.
#[derive(Debug, Serialize)]
pub(super) struct PeerReport {
    pub(super) engine: String,
    #[serde(flatten)]
    pub(super) report: GrammarReport,
}

/// Outcomes of a peer's cases.
#[derive(Debug)]
pub(super) struct PeerOutcomes {
    pub(super) engine: String,
    pub(super) outcomes: Vec<CaseOutcome>,
}

impl PeerOutcomes {
    pub(super) fn report(self, walks: usize, num_words: usize) -> PeerReport {
        let Self { engine, outcomes } = self;
        PeerReport { engine, report: GrammarReport::new(&outcomes, walks, num_words) }
    }
}

/// The programs of a folder of peers.
const PROGRAMS: [&str; 3] = ["llguidance", "glrmask", "outlines"];

/// The vocabulary that these were built with.
const VOCABULARY: &str = "o200k_base";

impl PeerArgs {
    /// The engines that are asked for, before anything is measured.
    pub(super) fn find(
        &self,
        vocab: &str,
        ahead: Duration,
        walks: Walks,
    ) -> anyhow::Result<Vec<Peer>> {
        let seconds = self.peer_seconds;
        ensure!(
            Duration::try_from_secs_f64(seconds).is_ok_and(|time| !time.is_zero()),
            "--peer-seconds is {seconds}; it is a time, longer than 0"
        );
        let mut found = Vec::new();
        if let Some(folder) = &self.peers {
            ensure!(
                vocab == VOCABULARY,
                "--peers: these programs know {VOCABULARY} alone, and --vocab is {vocab}; leave out one of the two"
            );
            for name in PROGRAMS {
                let program = folder.join(format!("{name}-peer"));
                if !program.is_file() {
                    eprintln!("ABSENT: {name}: there is no {}", program.display());
                    continue;
                }
                let program = program.to_string_lossy().into_owned();
                let mut command =
                    [program, "run".into(), "--walks".into(), walks.times.to_string()].to_vec();
                for (option, time) in [("--ahead", ahead), ("--pace", walks.pace)] {
                    if !time.is_zero() {
                        command.extend([option.to_owned(), time.as_millis().to_string()]);
                    }
                }
                found.push(Peer { name: name.to_owned(), command });
            }
            ensure!(
                !found.is_empty(),
                "--peers {}: none of the programs is there",
                folder.display()
            );
        }
        found.extend(self.peer.iter().cloned());
        let mut names: Vec<&str> = found.iter().map(|peer| &*peer.name).collect();
        names.push(OWN);
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            bail!("two engines are called {}; give each its own name", twice[0]);
        }
        Ok(found)
    }

    /// Keeps palmette's lines, if that was asked for.
    pub(super) fn keep_own(&self, outcomes: &[CaseOutcome]) -> anyhow::Result<()> {
        self.keep(OWN, outcomes)
    }

    /// Lets the engines follow the cases.
    pub(super) fn run(
        &self,
        peers: &[Peer],
        cases: &[GrammarCase],
        quiet: bool,
    ) -> anyhow::Result<Vec<PeerOutcomes>> {
        let mut found = Vec::new();
        if peers.is_empty() {
            return Ok(found);
        }
        let file = tempfile::NamedTempFile::new().context("a file for the cases")?;
        write_lines(file.as_file(), cases)?;
        let names: Vec<&str> = cases.iter().map(|case| &*case.name).collect();
        for peer in peers {
            let bar = progress_bar(cases.len(), &peer.name, quiet);
            let at_most = Duration::from_secs_f64(self.peer_seconds);
            let outcomes = peer.run(file.path(), &names, at_most, |_| bar.inc(1));
            bar.finish_and_clear();
            let outcomes = outcomes.with_context(|| format!("--peer {}", peer.name))?;
            self.keep(&peer.name, &outcomes)?;
            found.push(PeerOutcomes { engine: peer.name.clone(), outcomes });
        }
        Ok(found)
    }

    /// Keeps an engine's lines, if that was asked for.
    pub(super) fn keep(&self, name: &str, outcomes: &[CaseOutcome]) -> anyhow::Result<()> {
        let Some(folder) = &self.keep_lines else { return Ok(()) };
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let path = folder.join(format!("{name}.jsonl"));
        let file = File::create(&path).with_context(|| path.display().to_string())?;
        write_lines(&file, outcomes)
    }
}

/// Name of palmette itself among its peers.
const OWN: &str = "palmette";

/// Table of the engines, and why grammars of the others are not compiled.
pub(super) fn text(own: &GrammarReport, others: &[(String, &GrammarReport)]) -> String {
    let row = |name: &str, report: &GrammarReport| {
        let count =
            |part: usize, of: usize| format!("{} of {}", grouped(part as u64), grouped(of as u64));
        let pick = |figure: Option<Percentiles>, show: fn(Percentiles) -> Vec<f64>| match figure {
            Some(figure) => {
                let values = show(figure).into_iter().map(|value| format!("{value:.2}"));
                values.collect::<Vec<_>>().join(" / ")
            }
            None => "-".to_owned(),
        };
        let tail: fn(Percentiles) -> Vec<f64> = |at| vec![at.p50, at.p99, at.p999, at.max];
        vec![
            name.to_owned(),
            count(report.compiled, report.schemas),
            count(report.valid_rejected, report.valid),
            count(report.invalid_accepted, report.invalid),
            pick(report.compile_ms, |at| vec![at.p50, at.p99, at.max]),
            pick(report.mask_us_cold, tail),
            pick(report.mask_us, tail),
            pick(report.commit_us, |at| vec![at.p50, at.p999]),
            report.walked.map_or_else(|| "-".to_owned(), grouped),
            sizes(report.bytes, |size| bytes(size as usize)),
            sizes(report.rows, |rows| grouped(rows as u64)),
        ]
    };
    let mut rows = vec![row(OWN, own)];
    rows.extend(others.iter().map(|(name, report)| row(name, report)));
    let heads = [
        "",
        " compiled",
        " valid rejected",
        " invalid accepted",
        " compile ms p50 / p99 / max",
        " first walk us p50 / p99 / p99.9 / max",
        " mask us p50 / p99 / p99.9 / max",
        " commit us p50 / p99.9",
        " walked",
        " memory p50 / max",
        " rows p50 / max",
    ];
    let mut text = table(&heads, &rows);
    for (name, report) in others {
        for Reason { cases, reason } in &report.unsupported_reasons {
            text += &format!("\n{name}: {} not compiled: {reason}", grouped(*cases as u64));
        }
    }
    text
}

/// The median and the greatest of some sizes, or a dash.
fn sizes(figure: Option<Percentiles>, show: impl Fn(f64) -> String) -> String {
    figure.map_or_else(|| "-".to_owned(), |at| format!("{} / {}", show(at.p50), show(at.max)))
}

fn write_lines(file: &File, lines: &[impl Serialize]) -> anyhow::Result<()> {
    let mut file = BufWriter::new(file);
    for line in lines {
        serde_json::to_writer(&mut file, line)?;
        writeln!(file)?;
    }
    Ok(file.flush()?)
}

fn peer(text: &str) -> Result<Peer, String> {
    let (name, command) = text.split_once('=').ok_or("it is NAME=COMMAND")?;
    let command = shlex::split(command).ok_or("a quotation mark of the command is not closed")?;
    let is_name =
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c));
    if !is_name {
        return Err(format!("`{name}` is no name: letters, digits, `-`, `_` and `.`"));
    }
    if command.is_empty() {
        return Err("there is no command behind `=`".to_owned());
    }
    Ok(Peer { name: name.to_owned(), command })
}
