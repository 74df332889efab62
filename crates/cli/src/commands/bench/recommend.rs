//! `palmette bench recommend`: what a recommendation costs on this machine.

use clap::{Args, ValueEnum};
use palmette_bench::recommend::{RandomModel, RecommendBench, RecommendReport};
use palmette_model::{Architecture, DeviceName, ModelConfig};
use palmette_recommend::{Mode, Normaliser};

use crate::commands::devices::DeviceArgs;
use crate::commands::loading::WeightsArg;
use crate::commands::mode::ModeArgs;
use crate::output::{bytes, grouped, print, print_json, table, visible};

/// Time whole recommendations by a model with random weights, next to what their arithmetic must
/// take
///
/// The bound is the floating-point operations of a request's matrix products over the speed of the
/// `gemm` crate on large matrices, measured in the same run on as many threads; of a device there
/// is none. Times are medians over --repeat requests; one more goes first. A device reads the
/// prompt of each anew.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RecommendArgs {
    /// Shape of the model, by its number of parameters
    #[arg(long, value_name = "SHAPE", default_value = "10m")]
    params: Params,
    /// Width of the residual stream, instead of the shape's
    #[arg(long, value_name = "N")]
    hidden: Option<usize>,
    /// Width of the feed-forward layers, instead of the shape's
    #[arg(long, value_name = "N")]
    inner: Option<usize>,
    /// Layers, instead of the shape's
    #[arg(long, value_name = "N")]
    layers: Option<usize>,
    /// Query heads, instead of the shape's
    #[arg(long, value_name = "N")]
    heads: Option<usize>,
    /// Key/value heads, instead of the shape's; the query heads are a multiple
    #[arg(long, value_name = "N")]
    kv_heads: Option<usize>,
    /// Width of a head, instead of the shape's
    #[arg(long, value_name = "N")]
    head_dim: Option<usize>,
    /// Form in which weights are kept
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = WeightsArg::F32)]
    weights: WeightsArg,
    /// Limit on the prompt's tokens: a beginning token and as many whole items as fit
    #[arg(long, value_name = "N", default_value_t = 512)]
    prompt: usize,
    /// Hypotheses kept at each level
    #[arg(long, value_name = "N", default_value_t = 128)]
    beam: usize,
    /// A width for each level instead, such as 64,256,128: as many as --levels
    #[arg(long, value_name = "WIDTHS", value_delimiter = ',', conflicts_with = "beam")]
    widths: Option<Vec<usize>>,
    /// Codes of each item
    #[arg(long, value_name = "N", default_value_t = 3)]
    levels: usize,
    /// Size of each level's codebook
    #[arg(long, value_name = "N", default_value_t = 256)]
    codes: u32,
    /// Items of the catalog, their codes drawn evenly
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    items: usize,
    /// Threads of one request
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// Set of tokens over which a code's probability is normalised
    #[arg(long, value_name = "WHOLE", default_value = "level")]
    normaliser: SoftmaxScopeArg,
    #[command(flatten)]
    mode: ModeArgs,
    #[command(flatten)]
    device: DeviceArgs,
    /// Requests timed
    #[arg(long, value_name = "N", default_value_t = 20)]
    repeat: usize,
    /// Seed of weights, items and history
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Time users who come back with one more event too, where keys and values of their histories
    /// are kept
    #[arg(long)]
    returning: bool,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  palmette bench recommend --params 10m --prompt 512 --beam 128 --levels 3 --codes 256
  palmette bench recommend --params 10m --beam 512 --mode draft
  palmette bench recommend --params 50m --beam 512 --threads 2 --json
  palmette bench recommend --params 100m --prompt 1000 --beam 256 --device cuda:0
  palmette bench recommend --widths 64,256,128
  palmette bench recommend --beam 10 --returning
  palmette bench recommend --params 1m --layers 8 --normaliser vocabulary

Shapes, with 3 levels of 256 codes:
  1m    hidden 128, inner  384,  4 layers,  4 heads, 2 for keys and values, of 32
  10m   hidden 384, inner 1024,  6 layers,  6 heads, 2 for keys and values, of 64
  50m   hidden 768, inner 2048,  8 layers, 12 heads, 4 for keys and values, of 64
  100m  hidden 768, inner 2048, 16 layers, 12 heads, 4 for keys and values, of 64";

/// Shape of a model by its approximate number of parameters.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Params {
    #[value(name = "1m")]
    M1,
    #[value(name = "10m")]
    M10,
    #[value(name = "50m")]
    M50,
    #[value(name = "100m")]
    M100,
}

/// Set of tokens over which a code's probability is normalised.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum SoftmaxScopeArg {
    /// The codes of its level; no other logits are computed
    Level,
    /// The whole vocabulary
    Vocabulary,
}

pub(crate) fn run(args: &RecommendArgs) -> anyhow::Result<()> {
    let device = args.device.choice(1)?;
    let bench = RecommendBench {
        model: model(args),
        weights: match device.device {
            DeviceName::Cpu => args.weights.format()?,
            DeviceName::Cuda(_) => args.weights.name(),
        },
        prompt: args.prompt,
        widths: args.widths.clone().unwrap_or_else(|| vec![args.beam; args.levels]),
        levels: args.levels,
        codes: args.codes,
        items: args.items,
        threads: args.threads,
        normaliser: match args.normaliser {
            SoftmaxScopeArg::Level => Normaliser::Level,
            SoftmaxScopeArg::Vocabulary => Normaliser::Vocabulary,
        },
        // Passes of the whole beam are timed: random weights find all items alike, and no probe
        // pays.
        mode: match args.mode.mode(&[], 0)? {
            Mode::Auto => Mode::Beam,
            mode => mode,
        },
        repeat: args.repeat,
        seed: args.seed,
        returning: args.returning,
    };
    let report = match device.device {
        DeviceName::Cpu => bench.run()?,
        DeviceName::Cuda(_) => bench.run_on(&|model| {
            let RandomModel { config, tensors, draft, prompt_tokens } = model;
            let parts = (config, tensors);
            let loaded = device.load_tensors(parts, draft, prompt_tokens, args.weights);
            loaded.map_err(|error| format!("{error:#}"))
        })?,
    };
    if args.json { print_json(&report) } else { print(&text(&report)) }
}

fn model(args: &RecommendArgs) -> ModelConfig {
    // hidden, inner, layers, heads, key/value heads, width of a head
    let [hidden, inner, layers, heads, kv_heads, head_dim] = match args.params {
        Params::M1 => [128, 384, 4, 4, 2, 32],
        Params::M10 => [384, 1024, 6, 6, 2, 64],
        Params::M50 => [768, 2048, 8, 12, 4, 64],
        Params::M100 => [768, 2048, 16, 12, 4, 64],
    };
    ModelConfig {
        hidden_size: args.hidden.unwrap_or(hidden),
        intermediate_size: args.inner.unwrap_or(inner),
        num_hidden_layers: args.layers.unwrap_or(layers),
        num_attention_heads: args.heads.unwrap_or(heads),
        num_key_value_heads: args.kv_heads.unwrap_or(kv_heads),
        head_dim: args.head_dim.unwrap_or(head_dim),
        rms_norm_eps: 1e-6,
        rope_theta: 1e4,
        tie_word_embeddings: true,
        architecture: Architecture::default(),
        // What the levels and the prompt need.
        vocab_size: 0,
        max_position_embeddings: 0,
    }
}

fn text(report: &RecommendReport) -> String {
    let shape = &report.model;
    let mut text = format!(
        "{} parameters in {}: hidden {}, inner {}, {} layers, {} heads, {} for keys and values, of {}\n",
        grouped(report.params as u64),
        bytes(report.weight_bytes),
        shape.hidden_size,
        shape.intermediate_size,
        shape.num_hidden_layers,
        shape.num_attention_heads,
        shape.num_key_value_heads,
        shape.head_dim
    );
    text += &format!(
        "{} prompt tokens, beam {}, {} levels of {} codes, {} items, {} logits a row\n\n",
        report.prompt_tokens,
        beam_text(&report.widths),
        report.levels,
        report.codes,
        grouped(report.items as u64),
        report.logits
    );
    if report.draft_params > 0 {
        let params = grouped(report.draft_params as u64);
        text.truncate(text.len() - 1);
        text += &format!("drafted by a head of {params} parameters\n\n");
    }
    let mut stages = vec![
        ("prefill", report.prefill_ms),
        ("decode", report.decode_ms),
        ("mask", report.mask_ms),
        ("top-k", report.topk_ms),
        ("total", report.total_ms),
    ];
    stages.extend(report.bound.map(|bound| ("bound", bound.bound_ms)));
    let row = |(name, ms): (&str, f64)| vec![name.to_owned(), format!("{ms:.2}")];
    let rows: Vec<Vec<String>> = stages.into_iter().map(row).collect();
    text += &table(&["stage", " ms"], &rows);
    if let Some(of) = report.returning {
        text += &format!(
            "\na user who comes back with one more event: {:.2} ms, {:.2} of a new user's; {} of {} tokens known\n",
            of.total_ms, of.ratio, of.known_tokens, report.prompt_tokens
        );
    }
    let operations = report.flops as f64 / 1e9;
    text += &match report.bound {
        Some(bound) => format!(
            "\n{:.2} times the bound: {operations:.2} billion operations at {:.0} a ns\n",
            bound.ratio, bound.gemm_gflops
        ),
        None => format!(
            "\n{operations:.2} billion operations on {}; no bound, which is that of this processor's products\n",
            visible(&report.device)
        ),
    };
    text += &format!(
        "keys and values {} as planned, {} of them for the beams\n",
        bytes(report.kv_bytes_used),
        bytes(report.kv_bytes_beams)
    );
    let cpu = report.machine.cpu.as_deref().unwrap_or("an unknown processor");
    text + &format!("{cpu}, {} threads, median of {} requests", report.threads, report.repeat)
}

/// One width where all levels have the same, as a search without a schedule.
fn beam_text(widths: &[usize]) -> String {
    match widths.split_first() {
        Some((first, rest)) if rest.iter().all(|width| width == first) => first.to_string(),
        _ => widths.iter().map(usize::to_string).collect::<Vec<_>>().join("-"),
    }
}
