//! `palmette-train tokenize`: embeddings in, semantic IDs out.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use palmette_train::replace_text;
use palmette_train::semantic_ids::{
    Collisions, FitProgress, KMeansOptions, Method, Quality, RqVaeOptions, Tokenizer,
    read_embeddings, separate,
};

const AFTER_HELP: &str = "\
Examples:
  palmette-train tokenize --embeddings items.npy --items names.txt --out items.json
  palmette-train tokenize --embeddings items.parquet --method rq-vae --save tokenizer.safetensors --out items.json
  palmette-train tokenize --embeddings new.parquet --tokenizer tokenizer.safetensors --out new.json

  k-means takes seconds and reconstructs the embeddings best; rq-vae learns an encoder as well and takes minutes.
  Choose levels and codes so that codes^levels is many times the number of items: 3 x 256 suits tens of
  thousands, 4 x 256 or 3 x 2048 millions. A high collision rate asks for another level.";

/// Give items semantic IDs, from their embeddings.
///
/// OUT is {item: [\"<a_12>\", \"<b_3>\", …]}, which `palmette catalog build` reads. Embeddings are
/// a matrix, a row an item: .npy or .safetensors (name the rows with --items), or .parquet, .arrow
/// and .feather with a column item_id beside the lists of floats. The same input and seed give the
/// same IDs, whatever the number of threads.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct TokenizeArgs {
    /// File of embeddings
    #[arg(long, value_name = "FILE")]
    embeddings: PathBuf,
    /// Tensor or column of the embeddings, where the file has several
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Names of the rows: a JSON array, or one a line [default: row numbers]
    #[arg(long, value_name = "FILE")]
    items: Option<PathBuf>,
    /// File of the semantic IDs
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Replace OUT, and the file of --save
    #[arg(long)]
    overwrite: bool,
    /// Treatment of items with the same codes
    #[arg(long, value_enum, default_value_t = CollisionsArg::Reassign)]
    collisions: CollisionsArg,
    /// Keep the codebooks, for items to come
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Use codebooks that were kept instead of learning some. Collisions are seen among these items
    /// only
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["save", "method", "levels", "codes", "normalize", "seed", "rounds", "max_items", "hidden", "latent",
            "steps", "batch_size", "learning_rate", "commitment"]
    )]
    tokenizer: Option<PathBuf>,

    /// Method of learning codebooks
    #[arg(long, value_enum, default_value_t = MethodArg::KMeans, help_heading = "Codebooks")]
    method: MethodArg,
    /// Codes of an ID
    #[arg(long, value_name = "N", default_value_t = 3, help_heading = "Codebooks")]
    levels: usize,
    /// Entries of each codebook
    #[arg(long, value_name = "N", default_value_t = 256, help_heading = "Codebooks")]
    codes: usize,
    /// Scale embeddings to length 1 first
    #[arg(long, help_heading = "Codebooks")]
    normalize: bool,
    /// Decides everything random
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Codebooks")]
    seed: u64,
    /// Threads; the result does not depend on it [default: one per core]
    #[arg(long, value_name = "N", help_heading = "Codebooks")]
    threads: Option<NonZeroUsize>,

    /// Limit on the rounds of k-means a level
    #[arg(long, value_name = "N", default_value_t = 50, help_heading = "k-means")]
    rounds: usize,
    /// Limit on the items that centres are learned from; larger sets are sampled
    #[arg(long, value_name = "N", default_value_t = 200_000, help_heading = "k-means")]
    max_items: usize,

    /// Widths of the encoder's layers; the decoder has them in reverse
    #[arg(
        long,
        value_name = "N,N,…",
        value_delimiter = ',',
        default_value = "512,256,128",
        help_heading = "rq-vae"
    )]
    hidden: Vec<usize>,
    /// Numbers that the encoder makes of an embedding
    #[arg(long, value_name = "N", default_value_t = 32, help_heading = "rq-vae")]
    latent: usize,
    /// Steps of training; 5,000 suit tens of thousands of items
    #[arg(long, value_name = "N", default_value_t = 5000, help_heading = "rq-vae")]
    steps: usize,
    /// Items per step
    #[arg(long, value_name = "N", default_value_t = 1024, help_heading = "rq-vae")]
    batch_size: usize,
    /// Adam's learning rate
    #[arg(long, value_name = "X", default_value_t = 1e-3, help_heading = "rq-vae")]
    learning_rate: f64,
    /// Strength with which the encoder is drawn to the entries
    #[arg(long, value_name = "X", default_value_t = 0.25, help_heading = "rq-vae")]
    commitment: f32,

    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum MethodArg {
    /// Residual k-means
    KMeans,
    /// A residual-quantised autoencoder
    RqVae,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum CollisionsArg {
    /// Items share the ID
    Keep,
    /// All but one get the nearest free last code
    Reassign,
    /// Every ID gets one more code, which counts items with the same codes
    Append,
}

impl From<CollisionsArg> for Collisions {
    fn from(policy: CollisionsArg) -> Self {
        match policy {
            CollisionsArg::Keep => Self::Keep,
            CollisionsArg::Reassign => Self::Reassign,
            CollisionsArg::Append => Self::Append,
        }
    }
}

pub(crate) fn tokenize(args: &TokenizeArgs) -> anyhow::Result<()> {
    for path in [Some(&args.out), args.save.as_ref()].into_iter().flatten() {
        let is_there = path.exists();
        ensure!(
            args.overwrite || !is_there,
            "{} exists: replace it with --overwrite, or choose another name",
            path.display()
        );
    }
    ensure!(
        args.learning_rate.is_finite() && args.learning_rate > 0.0,
        "--learning-rate is {}; it must be above 0",
        args.learning_rate
    );
    ensure!(
        args.commitment.is_finite() && args.commitment >= 0.0,
        "--commitment is {}; it must be at least 0",
        args.commitment
    );
    let threads = args.threads.or_else(|| std::thread::available_parallelism().ok());
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.map_or(1, NonZeroUsize::get))
        .build()
        .context("the worker threads cannot be started; lower --threads")?;
    pool.install(|| run(args))
}

fn run(args: &TokenizeArgs) -> anyhow::Result<()> {
    let embeddings =
        read_embeddings(&args.embeddings, args.name.as_deref(), args.items.as_deref())?;
    let tokenizer = match &args.tokenizer {
        Some(path) => Tokenizer::load(path)?,
        None => {
            let mut progress = Progress::new(args.json);
            let method = args.method();
            let fitted = Tokenizer::fit(
                &embeddings,
                args.levels,
                args.codes,
                args.normalize,
                &method,
                args.seed,
                &mut |at| progress.show(at),
            );
            progress.finish();
            fitted?
        }
    };
    let encoded = tokenizer.encode(&embeddings)?;
    let (levels, count) = (tokenizer.levels(), tokenizer.codes());
    let misfit = |item, code| encoded.misfit(item, code);
    let separated = separate(&encoded.codes, levels, count, args.collisions.into(), misfit)?;
    // Both files or none, as far as that can be had: the tokenizer without its IDs does no harm.
    if let Some(path) = &args.save {
        tokenizer.save(path)?;
    }
    replace_text(&args.out, &index(embeddings.items(), &separated.codes, separated.levels))?;
    report(args, &encoded.quality, separated.levels, separated.moved)
}

impl TokenizeArgs {
    fn method(&self) -> Method {
        match self.method {
            MethodArg::KMeans => {
                Method::KMeans(KMeansOptions { rounds: self.rounds, max_items: self.max_items })
            }
            MethodArg::RqVae => Method::RqVae(RqVaeOptions {
                hidden: self.hidden.clone(),
                latent: self.latent,
                steps: self.steps,
                batch_size: self.batch_size,
                learning_rate: self.learning_rate,
                commitment: self.commitment,
            }),
        }
    }
}

/// `{item: ["<a_12>", …]}`, an item a line.
fn index(items: &[String], codes: &[u32], levels: usize) -> String {
    let mut text = String::from("{");
    for (at, (item, codes)) in items.iter().zip(codes.chunks(levels)).enumerate() {
        text += if at == 0 { "\n" } else { ",\n" };
        text += &serde_json::Value::from(item.as_str()).to_string();
        text += ": [";
        for (level, code) in codes.iter().enumerate() {
            let letter = char::from(b'a' + level as u8);
            let comma = if level == 0 { "" } else { ", " };
            // Writing to a String does not fail.
            let _ = write!(text, "{comma}\"<{letter}_{code}>\"");
        }
        text += "]";
    }
    text += "\n}\n";
    text
}

fn report(
    args: &TokenizeArgs,
    quality: &Quality,
    levels: usize,
    moved: usize,
) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    let out = args.out.display();
    if args.json {
        let document = serde_json::json!({
            "out": out.to_string(), "levels": levels, "moved": moved, "quality": quality,
        });
        writeln!(stdout, "{document}")?;
        return Ok(());
    }
    writeln!(stdout, "{} items; their semantic IDs are in {out}", quality.items)?;
    writeln!(stdout, "level  codes used  utilisation  perplexity  error left")?;
    for (level, found) in quality.levels.iter().enumerate() {
        writeln!(
            stdout,
            "{level:>5}  {:>10}  {:>10.1}%  {:>10.1}  {:>9.1}%",
            found.used,
            100.0 * found.utilisation,
            found.perplexity,
            100.0 * found.reconstruction_error
        )?;
    }
    let (rate, most) = (100.0 * quality.collision_rate, quality.largest_collision);
    let distinct = quality.distinct_ids;
    writeln!(stdout, "{distinct} different IDs; {rate:.1}% of items share theirs, at most {most}")?;
    match args.collisions {
        CollisionsArg::Keep => {}
        CollisionsArg::Reassign => {
            writeln!(stdout, "{moved} items got another last code, so that all IDs differ")?;
        }
        CollisionsArg::Append => writeln!(stdout, "level {} tells them apart", levels - 1)?,
    }
    Ok(())
}

/// A bar on a terminal, some lines elsewhere, nothing when only JSON is wanted.
struct Progress {
    bar: Option<ProgressBar>,
    is_quiet: bool,
}

impl Progress {
    fn new(is_quiet: bool) -> Self {
        let bar = (!is_quiet && std::io::stderr().is_terminal()).then(|| ProgressBar::new(0));
        if let Some(bar) = &bar {
            let style = "{bar:30} {pos}/{len}  {msg}  {elapsed} gone, {eta} left";
            bar.set_style(ProgressStyle::with_template(style).expect("a sound template"));
        }
        Self { bar, is_quiet }
    }

    fn show(&mut self, at: FitProgress) {
        let loss = at.loss.map_or_else(String::new, |loss| format!("loss {loss:.3}"));
        match &self.bar {
            Some(bar) => {
                bar.set_length(at.of as u64);
                bar.set_position(at.done as u64);
                bar.set_message(loss);
            }
            None if !self.is_quiet && at.done.is_multiple_of(at.of.div_ceil(10)) => {
                eprintln!("{}", format!("{} of {}  {loss}", at.done, at.of).trim_end());
            }
            None => {}
        }
    }

    fn finish(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
