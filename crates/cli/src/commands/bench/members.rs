//! `palmette bench members`: what sets of strings that grammars name cost on this machine.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use palmette_bench::grammar::Percentiles;
use palmette_bench::members::{
    Compared, DocumentBench, DocumentReport, LexiconReport, MemberKind, MembersBench,
    MembersReport, TimedKind,
};
use palmette_vocabulary::LoadedVocabulary;

use crate::commands::vocabulary::VocabularyOptions;
use crate::output::{bytes, grouped, make_parent, print, print_json, progress_spinner, table};

/// Make a set of strings and measure what a grammar that names it costs
///
/// The strings are made from a seed. Measured: building the set, its size, opening its file; the
/// mask of every place along the tokens of random members, of all strings and under a filter of 1%;
/// then whole masks of a JSON text that has such members, beside the same schema with a plain
/// string; and whether masks are those of the definition, which reads every token byte by byte,
/// along texts and along random tokens that are allowed.
///
/// Or, with --document-bytes, the same of the substrings of a document.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MembersArgs {
    /// Kind of the strings
    #[arg(long, value_name = "KIND", default_value = "titles")]
    kind: Kind,
    /// Strings to make; equal ones are one member
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    strings: usize,
    /// Bytes of a document whose substrings are measured instead, by each unit
    #[arg(long, value_name = "BYTES", conflicts_with_all = ["kind", "strings", "compare", "cases"])]
    document_bytes: Option<usize>,
    /// Random members whose tokens are followed, and texts with two of them
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    walks: usize,
    /// Whole masks to compare with the definition, half of them under a filter of 1%. It takes a
    /// tenth of a second at a place in free text, once for each place
    #[arg(long, value_name = "N", default_value_t = 500)]
    compare: usize,
    /// Vocabulary: the name of an encoding such as o200k_base, or a file
    #[arg(long, value_name = "NAME|FILE", default_value = "o200k_base")]
    vocab: String,
    #[command(flatten)]
    vocabulary: VocabularyOptions,
    /// Seed of strings, members and filters
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Only write the texts that are followed, with the strings as an enumeration of the schema, as
    /// a case that `palmette bench grammar --cases FILE` follows, other engines beside it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["compare", "json"])]
    cases: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  palmette bench members --strings 1000000
  palmette bench members --kind skus --strings 10000000 --walks 20000 --json
  palmette bench members --document-bytes 100000
  palmette bench members --strings 10000 --cases listed.jsonl
  palmette bench grammar --cases listed.jsonl --peers lab/peers/bin

Times are processor time of one thread, which includes reading the clock (the first line). A member
is followed by its longest token three times in four, else by another that fits.

Kinds:
  titles  of products: brand, adjectives, thing, purpose, size, colour, model; 60 bytes
  names   a capitalised word, or two
  skus    B0 and eight letters and digits
  urls    a host, a folder, a title and a number; 95 bytes";

/// Kind of the strings.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    /// Titles of products, 60 bytes
    Titles,
    /// Names of a word or two, 9 bytes
    Names,
    /// Stock-keeping units, 10 bytes
    Skus,
    /// Addresses of pages, 95 bytes
    Urls,
}

pub(crate) fn run(args: &MembersArgs) -> anyhow::Result<()> {
    let loaded = args.vocabulary.load(&args.vocab, false)?;
    let bar = progress_spinner(args.json);
    let stage = |what: &str| bar.set_message(what.to_owned());
    let (walks, seed) = (args.walks, args.seed);
    if let Some(bytes) = args.document_bytes {
        let bench = DocumentBench { bytes, walks, seed };
        let report = bench.run(&loaded.vocabulary, stage)?;
        bar.finish_and_clear();
        return if args.json { print_json(&report) } else { print(&document_text(&report)) };
    }
    let kind = match args.kind {
        Kind::Titles => MemberKind::Titles,
        Kind::Names => MemberKind::Names,
        Kind::Skus => MemberKind::Skus,
        Kind::Urls => MemberKind::Urls,
    };
    let bench = MembersBench { kind, strings: args.strings, walks, compared: args.compare, seed };
    if let Some(path) = &args.cases {
        return write_cases(&bench, &loaded, path, &bar);
    }
    let report = bench.run(&loaded.vocabulary, stage)?;
    bar.finish_and_clear();
    let Compared { masks, different, .. } = report.compared;
    if args.json {
        print_json(&report)?
    } else {
        print(&text(&report))?
    }
    if different > 0 {
        bail!(
            "{different} of {masks} masks differ from the definition; please report this, with the seed"
        );
    }
    Ok(())
}

fn write_cases(
    bench: &MembersBench,
    loaded: &LoadedVocabulary,
    path: &Path,
    bar: &ProgressBar,
) -> anyhow::Result<()> {
    let Some(tokenizer) = &loaded.tokenizer else {
        bail!(
            "vocabulary {} does not say how text is cut into tokens; choose another",
            loaded.name
        );
    };
    bar.set_message("making strings and texts");
    let cases = bench.cases(&loaded.vocabulary, |text| tokenizer.encode(text))?;
    make_parent(path)?;
    let write = || -> anyhow::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        for case in &cases {
            serde_json::to_writer(&mut file, case)?;
            writeln!(file)?;
        }
        Ok(file.flush()?)
    };
    write().with_context(|| path.display().to_string())?;
    bar.finish_and_clear();
    let texts: usize = cases.iter().map(|case| case.texts.len()).sum();
    let cases = match cases.len() {
        1 => "1 case".to_owned(),
        many => format!("{many} cases"),
    };
    print(&format!("{}: {cases}, {} texts", path.display(), grouped(texts as u64)))
}

const HEADINGS: [&str; 7] = ["us", " times", " p50", " p90", " p99", " p99.9", " max"];

fn row(TimedKind { what, us }: &TimedKind) -> Vec<String> {
    let Percentiles { count, p50, p90, p99, p999, max, .. } = *us;
    let times = [p50, p90, p99, p999, max].map(|us| format!("{us:.2}"));
    [vec![what.clone(), grouped(count as u64)], times.into()].concat()
}

fn text(report: &MembersReport) -> String {
    let LexiconReport { strings, text_bytes, bytes: size, bytes_per_text_byte: ratio, .. } =
        report.lexicon;
    let LexiconReport { sort_cpu_s, arrays_cpu_s, open_ms, .. } = report.lexicon;
    let LexiconReport { first_root_ms, tables_ms, table_bytes, .. } = report.lexicon;
    let seconds =
        |s: Option<f64>| s.map_or_else(|| "not known".to_owned(), |s| format!("{s:.2} s"));
    let [frame, sums, whole] = open_ms.map(|ms| format!("{ms:.2} ms"));
    let mut text = format!(
        "{} strings of {:.1} bytes, {}; the lexicon has {}, {ratio:.3} of that\n",
        grouped(strings as u64),
        text_bytes as f64 / strings as f64,
        bytes(text_bytes as usize),
        bytes(size)
    );
    text += &format!(
        "built in processor time: sorting {}, arrays {}\n",
        seconds(sort_cpu_s),
        seconds(arrays_cpu_s)
    );
    text += &format!("opened: frame {frame}, sums {sums}, every string {whole}\n");
    text += &format!(
        "first mask of the root {first_root_ms:.2} ms; tables of large prefixes {tables_ms:.0} ms, all tables {}\n\n",
        bytes(table_bytes)
    );
    let rows: Vec<_> = report.set.iter().map(row).collect();
    text += &format!("The set alone, as strings of JSON\n{}\n", table(&HEADINGS, &rows));
    let rows: Vec<_> = report.whole.iter().map(row).collect();
    text += &format!("Whole masks of JSON texts with such strings\n{}\n", table(&HEADINGS, &rows));
    let Compared { masks, places, different } = report.compared;
    let cpu = report.machine.cpu.as_deref().unwrap_or("an unknown processor");
    text + &format!(
        "{} of {} masks differ from the definition, of {} places; {cpu}",
        grouped(different as u64),
        grouped(masks as u64),
        grouped(places as u64)
    )
}

fn document_text(report: &DocumentReport) -> String {
    let mut text = format!("a document of {}\n", bytes(report.document_bytes));
    for unit in &report.units {
        text += &format!(
            "\n{}: {} members, {:.2} bytes a byte, tables {}\n{}",
            unit.unit,
            grouped(unit.members),
            unit.bytes_per_text_byte,
            bytes(unit.table_bytes),
            table(&HEADINGS, &unit.times.iter().map(row).collect::<Vec<_>>())
        );
    }
    let cpu = report.machine.cpu.as_deref().unwrap_or("an unknown processor");
    text + &format!("\n{cpu}")
}
