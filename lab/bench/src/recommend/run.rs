//! The measurement: a random model and catalog, and requests timed by stage.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use palmette_catalog::{BuildOptions, Catalog, Item};
use palmette_decode::Stage;
use palmette_model::draft::{DraftForm, DraftHead, DraftTensors};
use palmette_model::{
    DeviceName, LoadError, Model, ModelConfig, ModelTensors, Session, SharedEngine, WeightFormat,
};
use palmette_recommend::{History, Mode, Normaliser, PromptFormat, Recommender, Request, Worker};
use serde::Serialize;

use super::ceiling::gemm_gflops;
use super::operations::{Operations, Passes};
use crate::bench::BenchError;
use crate::machine::Machine;
use crate::random::Random;

/// Measurement of recommendations: model, catalog, search and repetitions.
#[derive(Clone, Debug)]
pub struct RecommendBench {
    /// The model's shape. Its vocabulary and positions are set to what the levels and the prompt
    /// need.
    pub model: ModelConfig,
    /// Format of the model's weights.
    pub weights: WeightFormat,
    /// Limit on the prompt's tokens: a beginning token and as many whole items as fit.
    pub prompt: usize,
    /// Hypotheses kept at each level, one number a level.
    pub widths: Vec<usize>,
    /// Codes of each item.
    pub levels: usize,
    /// Size of each level's codebook.
    pub codes: u32,
    /// Items of the catalog, their codes drawn evenly.
    pub items: usize,
    /// Threads of one request.
    pub threads: usize,
    /// Set of tokens over which scores are normalised.
    pub normaliser: Normaliser,
    /// Method of finding items; a draft head is as random as the model.
    pub mode: Mode,
    /// Requests timed, after one that is not.
    pub repeat: usize,
    /// Seed of weights, items and history.
    pub seed: u64,
    /// True to time users who come back with one more event too, beside each request of a user who
    /// was never seen: on this processor.
    pub returning: bool,
}

/// Requests of users whose history without its last event was read before.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ReturningUsers {
    /// A whole request.
    pub total_ms: f64,
    /// Median of its time over that of the request of a new user beside it.
    pub ratio: f64,
    /// Tokens of the prompt that were known.
    pub known_tokens: usize,
    /// Bytes that prompts are kept in.
    pub prompt_memory: u64,
}

/// Memory for the prompts of returning users: of more of them than are timed between two requests
/// of one.
const PROMPT_MEMORY: usize = 256 << 20;

/// Results of the measurement: medians over the requests.
#[derive(Clone, Debug, Serialize)]
pub struct RecommendReport {
    /// Reading the prompt.
    pub prefill_ms: f64,
    /// All decode passes.
    pub decode_ms: f64,
    /// Moving beams on and making their masks.
    pub mask_ms: f64,
    /// Choosing the best extensions.
    pub topk_ms: f64,
    /// A whole request.
    pub total_ms: f64,
    /// Floating-point operations of a request's matrix products; see [`Operations`].
    pub flops: u64,
    /// Operations of the prompt, a part of `flops`.
    pub prefill_flops: u64,
    /// Bound by this processor's products; none for a device, whose products are others.
    #[serde(flatten)]
    pub bound: Option<ProductBound>,
    /// Users who come back with one more event, where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returning: Option<ReturningUsers>,
    /// Bytes that a request's keys and values are planned to take here; none on a device, whose
    /// requests are promised pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kv_bytes_planned: Option<usize>,
    /// Bytes that they took.
    pub kv_bytes_used: usize,
    /// Bytes of the beams' own tokens, a part of `kv_bytes_used`.
    pub kv_bytes_beams: usize,
    /// Parameters of the model.
    pub params: usize,
    /// Format of the model's weights.
    pub weights: WeightFormat,
    /// Bytes they take.
    pub weight_bytes: usize,
    /// Shape of the model.
    pub model: ModelConfig,
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Hypotheses kept at the last level, which is how many results there are at most.
    pub beam: usize,
    /// Hypotheses kept at each level.
    pub widths: Vec<usize>,
    /// Rows of each decode pass.
    pub rows: Vec<usize>,
    /// Codes of each item.
    pub levels: usize,
    /// Size of each level's codebook.
    pub codes: u32,
    /// Items of the catalog.
    pub items: usize,
    /// Threads of one request.
    pub threads: usize,
    /// Logits computed for a row: those of a level or of the vocabulary.
    pub logits: usize,
    /// Parameters of the draft head; 0 where items are not drafted.
    pub draft_params: usize,
    /// Requests timed.
    pub repeat: usize,
    /// The fastest request.
    pub min_total_ms: f64,
    /// Device that computes the model: `cpu`, or its name.
    pub device: String,
    /// Machine of the measurement.
    pub machine: Machine,
}

/// Bound of a request's time by matrix products of the `gemm` crate.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ProductBound {
    /// Billions of operations a second in a large product, on as many threads.
    pub gemm_gflops: f64,
    /// Time of `flops` operations at that speed.
    pub bound_ms: f64,
    /// `total_ms / bound_ms`
    pub ratio: f64,
}

/// Random model that a device is to compute: the weights of this processor's, by the same seed.
#[derive(Debug)]
pub struct RandomModel {
    /// Shape of the model.
    pub config: ModelConfig,
    /// Tensors of the model.
    pub tensors: ModelTensors,
    /// Tensors of its draft head, where items are drafted.
    pub draft: Option<DraftTensors>,
    /// Tokens of the longest prompt, the head's placeholders among them.
    pub prompt_tokens: usize,
}

/// Loader of a random model onto a device; an error is its message.
pub type DeviceLoader<'a> = dyn Fn(RandomModel) -> Result<SharedEngine, String> + 'a;

impl RecommendBench {
    /// Makes model and catalog, and measures on this processor.
    ///
    /// # Errors
    /// For nothing to measure, a shape that no model has, or more memory than there is.
    pub fn run(&self) -> Result<RecommendReport, BenchError> {
        self.check().and_then(|()| self.measure(None)).map_err(BenchError::new)
    }

    /// Measures where a loader puts the model; one that keeps prompts of earlier requests would
    /// read only the first.
    ///
    /// # Errors
    /// As [`run`](Self::run), and when the device does not take the model.
    pub fn run_on(&self, device: &DeviceLoader<'_>) -> Result<RecommendReport, BenchError> {
        let check = || match self.returning {
            true => Err("users who come back are timed on this processor".to_owned()),
            false => self.check(),
        };
        check().and_then(|()| self.measure(Some(device))).map_err(BenchError::new)
    }

    fn check(&self) -> Result<(), String> {
        let counts = [
            ("levels", self.levels),
            ("beam", self.widths.iter().copied().min().unwrap_or(0)),
            ("codes", self.codes as usize),
            ("items", self.items),
            ("threads", self.threads),
            ("repeat", self.repeat),
        ];
        if let Some((what, _)) = counts.iter().find(|(_, count)| *count == 0) {
            return Err(format!("{what} is 0; at least 1 is needed"));
        }
        if let Mode::Proven(_) = self.mode {
            return Err(
                "random weights find all items alike, and a proof is as wide as it may be: \
                 time it with a trained model, by `palmette recommend --mode proven --timings`"
                    .to_owned(),
            );
        }
        if let Mode::Probed(width) = self.mode {
            return Err(format!(
                "a probe of {width} beams leaves out what the model finds unlikely, and random weights find all items alike: \
                 time it with a trained model, by `palmette recommend --timings`"
            ));
        }
        let (prompt, least) = (self.prompt, self.levels.saturating_add(1));
        if prompt < least {
            return Err(format!(
                "a prompt of {prompt} tokens holds no item; the shortest has {least}: a beginning token and {} codes",
                self.levels
            ));
        }
        Ok(())
    }

    fn measure(&self, device: Option<&DeviceLoader<'_>>) -> Result<RecommendReport, String> {
        let recommender = Arc::new(self.recommender(device)?);
        let mut worker = Worker::new(Arc::clone(&recommender), self.threads);
        let mut random = Random::new(self.seed ^ 1);
        let num_items = self.items as u64;
        let history: Vec<u64> =
            (0..recommender.format().max_history_items).map(|_| random.below(num_items)).collect();
        let k = self.widths.iter().copied().min().unwrap_or(1).min(10);
        let request = Request {
            beam_width: self.beam(),
            mode: self.mode,
            include_seen: true,
            // Each is a new user's.
            remember: false,
            ..Request::new(History::Numbers(&history), k)
        };

        time_request(&mut worker, &request)?;
        let mut runs = Vec::with_capacity(self.repeat);
        let (mut returned, mut known_tokens) = (Vec::new(), 0);
        for _ in 0..self.repeat {
            runs.push(time_request(&mut worker, &request)?);
            if self.returning {
                let user: Vec<u64> = history.iter().map(|_| random.below(num_items)).collect();
                let of = |history| Request {
                    remember: true,
                    history: History::Numbers(history),
                    ..request
                };
                time_request(&mut worker, &of(&user[..user.len() - 1]))?;
                let known = recommender.known_prompt(&of(&user)).map_err(|e| e.to_string())?;
                known_tokens = known.map_or(0, |prompt| prompt.known);
                returned.push(time_request(&mut worker, &of(&user))?);
            }
        }
        let returning = self.returning.then(|| {
            let total = |run: &Stages| run.total;
            let ratios = returned.iter().zip(&runs).map(|(one, new)| total(one) / total(new));
            ReturningUsers {
                total_ms: middle(returned.iter().map(total).collect()),
                ratio: middle(ratios.collect()),
                known_tokens,
                prompt_memory: recommender.engine().prompt_use().map_or(0, |of| of.bytes),
            }
        });
        let gemm_gflops = device.is_none().then(|| gemm_gflops(self.threads, 20));
        let report = self.report(&recommender, &worker, &runs, gemm_gflops);
        Ok(RecommendReport { returning, ..report })
    }

    fn report(
        &self,
        recommender: &Recommender,
        worker: &Worker,
        runs: &[Stages],
        gemm_gflops: Option<f64>,
    ) -> RecommendReport {
        let model = recommender.engine().config().clone();
        let drafting = matches!(self.mode, Mode::Draft(_));
        let logits = match self.normaliser {
            Normaliser::Vocabulary if !drafting => model.vocab_size,
            _ => self.codes as usize,
        };
        let rows = worker.rows_of_passes()[1..].to_vec();
        let prompt_tokens = worker.prompt_tokens();
        let operations = match recommender.draft_outline().filter(|_| drafting) {
            Some(head) => Operations::of_draft(&model, head, prompt_tokens, &rows),
            None => Operations::of(&model, &Passes { prompt_tokens, rows: rows.clone(), logits }),
        };
        let (flops, prefill_flops) = (operations.total(), operations.prefill);
        let head = recommender.draft_outline().filter(|_| drafting);
        let placeholders = head.map_or(0, |head| head.num_placeholders());
        let beams = if drafting { &[] } else { &self.widths[..self.levels - 1] };
        let prompt = recommender.max_prompt_tokens() + placeholders;
        let device = recommender.engine().device_use().map(|of| of.device);
        let kv_bytes_planned = device.is_none().then(|| {
            let planned = Session::planned_bytes_of_passes(&model, prompt, beams, self.threads);
            planned.map_or(0, |planned| planned.prompt_cache + planned.beam_cache)
        });
        let weights = match self.weights {
            WeightFormat::F32 if device.is_some() => WeightFormat::Bf16,
            weights => weights,
        };
        let (prompt_bytes, beam_bytes) = worker.cache_bytes();
        let median = |part: fn(&Stages) -> f64| middle(runs.iter().map(part).collect());
        let total_ms = median(|run| run.total);
        RecommendReport {
            prefill_ms: median(|run| run.prefill),
            decode_ms: median(|run| run.decode),
            mask_ms: median(|run| run.mask),
            topk_ms: median(|run| run.top_k),
            total_ms,
            flops,
            prefill_flops,
            bound: gemm_gflops.map(|gemm_gflops| {
                let bound_ms = flops as f64 / gemm_gflops / 1e6;
                ProductBound { gemm_gflops, bound_ms, ratio: total_ms / bound_ms }
            }),
            returning: None,
            kv_bytes_planned,
            kv_bytes_used: prompt_bytes + beam_bytes,
            kv_bytes_beams: beam_bytes,
            params: recommender.engine().num_parameters(),
            weights,
            weight_bytes: recommender.engine().weight_bytes(),
            model,
            prompt_tokens,
            beam: self.beam(),
            widths: self.widths.clone(),
            rows,
            levels: self.levels,
            codes: self.codes,
            items: self.items,
            threads: self.threads,
            logits,
            draft_params: head.map_or(0, |head| head.num_parameters()),
            repeat: self.repeat,
            min_total_ms: runs.iter().map(|run| run.total).fold(f64::INFINITY, f64::min),
            device: device.unwrap_or_else(|| DeviceName::Cpu.to_string()),
            machine: Machine::here(),
        }
    }

    fn recommender(&self, device: Option<&DeviceLoader<'_>>) -> Result<Recommender, String> {
        let text = |error: LoadError| error.to_string();
        let catalog = Arc::new(self.catalog()?);
        let max_history_items = (self.prompt - 1) / self.levels;
        let format =
            PromptFormat::for_catalog(&catalog, max_history_items).map_err(|e| e.to_string())?;
        let config = ModelConfig {
            vocab_size: format.vocab_size(),
            max_position_embeddings: format.max_prompt_tokens() + self.levels,
            ..self.model.clone()
        };
        let draft = match self.mode.verification() {
            None => None,
            Some(_) => {
                let shape = format.draft_shape().map_err(|e| e.to_string())?;
                let form = DraftForm::default();
                Some(DraftTensors::random(form, &config, shape, self.seed ^ 2).map_err(text)?)
            }
        };
        let (engine, head) = match device {
            None => {
                let model = Model::random(config, self.seed).map_err(text)?;
                let memory = if self.returning { PROMPT_MEMORY } else { 0 };
                let model = model.with_weights(self.weights).with_prompt_memory(memory);
                let model = model.map_err(|error| error.to_string())?;
                let head = draft.map(|tensors| DraftHead::new(&tensors, &model));
                (SharedEngine::from(model), head)
            }
            Some(load) => {
                let tensors = ModelTensors::random(&config, self.seed).map_err(text)?;
                let placeholders = draft.as_ref().map(|head| head.outline().num_placeholders());
                let prompt_tokens = format.max_prompt_tokens() + placeholders.unwrap_or(0);
                (load(RandomModel { config, tensors, draft, prompt_tokens })?, None)
            }
        };
        let recommender = Recommender::new(engine, catalog, format).map_err(|e| e.to_string())?;
        let recommender =
            recommender.with_normaliser(self.normaliser).map_err(|e| e.to_string())?;
        let recommender =
            recommender.with_widths(self.widths.clone()).map_err(|e| e.to_string())?;
        match head {
            Some(head) => recommender.with_draft_head(head).map_err(|e| e.to_string()),
            None => Ok(recommender),
        }
    }

    /// The last level's width.
    fn beam(&self) -> usize {
        self.widths.last().copied().unwrap_or(0)
    }

    fn catalog(&self) -> Result<Catalog, String> {
        let mut random = Random::new(self.seed);
        let mut code = || random.below(u64::from(self.codes)) as u32;
        let item = |n: usize| Item {
            id: n.to_string(),
            codes: (0..self.levels).map(|_| code()).collect(),
            attributes: Default::default(),
        };
        let items: Vec<Item> = (0..self.items).map(item).collect();
        let codes_per_level = Some(vec![self.codes; self.levels]);
        let options = BuildOptions { codes_per_level, ..BuildOptions::default() };
        Catalog::build(items.into(), &options).map_err(|e| e.to_string())
    }
}

/// The median.
fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0
}

/// Milliseconds of one request.
#[derive(Clone, Copy, Debug, Default)]
struct Stages {
    prefill: f64,
    decode: f64,
    mask: f64,
    top_k: f64,
    total: f64,
}

fn time_request(worker: &mut Worker, request: &Request<'_>) -> Result<Stages, String> {
    let mut stages = Stages::default();
    let start = Instant::now();
    let mut last = start;
    let answer = worker.recommend(request, &mut |stage| {
        let now = Instant::now();
        let part = match stage {
            Stage::Prefill => &mut stages.prefill,
            Stage::Decode => &mut stages.decode,
            Stage::Mask => &mut stages.mask,
            Stage::TopK => &mut stages.top_k,
        };
        *part += (now - last).as_secs_f64() * 1e3;
        last = now;
        ControlFlow::Continue(())
    });
    stages.total = start.elapsed().as_secs_f64() * 1e3;
    answer.map(|_| stages).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use palmette_cuda::{Architecture as Hardware, CudaEngine, DeviceLimits};
    use palmette_cuda_emulator::Emulator;
    use palmette_cuda_emulator::decoder::LIMITS;
    use palmette_model::Architecture;
    use palmette_recommend::Verification;

    use super::*;

    fn bench() -> RecommendBench {
        let model = ModelConfig {
            vocab_size: 0,
            hidden_size: 32,
            intermediate_size: 48,
            num_hidden_layers: 2,
            num_attention_heads: 4,
            num_key_value_heads: 2,
            head_dim: 8,
            max_position_embeddings: 0,
            rms_norm_eps: 1e-6,
            rope_theta: 1e4,
            tie_word_embeddings: true,
            architecture: Architecture::default(),
        };
        RecommendBench {
            model,
            weights: WeightFormat::F32,
            prompt: 12,
            widths: vec![8; 3],
            levels: 3,
            codes: 16,
            items: 300,
            threads: 1,
            normaliser: Normaliser::Level,
            mode: Mode::Beam,
            repeat: 2,
            seed: 1,
            returning: false,
        }
    }

    #[test]
    fn who_comes_back_is_known() {
        let bench = RecommendBench { prompt: 64, returning: true, ..bench() };
        let report = bench.run().unwrap();
        let returning = report.returning.expect("returning users");
        // Of 64 tokens the last three are the new event's; the three pages before it are whole.
        assert_eq!((report.prompt_tokens, returning.known_tokens), (64, 48));
        assert!(returning.ratio > 0.0 && returning.total_ms > 0.0);
        assert!(returning.prompt_memory <= PROMPT_MEMORY as u64);
        assert!(RecommendBench { returning: false, ..bench }.run().unwrap().returning.is_none());
    }

    #[test]
    fn a_report_says_what_was_done() {
        let report = bench().run().unwrap();
        assert_eq!((report.prompt_tokens, report.logits, report.params > 0), (10, 16, true));
        assert_eq!(report.rows, [8, 8]);
        assert_eq!(report.kv_bytes_planned, Some(report.kv_bytes_used));
        let bound = report.bound.expect("a bound of this processor");
        assert!(report.total_ms > 0.0 && bound.bound_ms > 0.0 && report.flops > 0);
        let scheduled = RecommendBench { widths: vec![4, 16, 8], ..bench() }.run().unwrap();
        assert_eq!((scheduled.rows, scheduled.beam), (vec![4, 16], 8));
        assert_eq!(scheduled.kv_bytes_planned, Some(scheduled.kv_bytes_used));
        // Slots of 4 + 16 rows, 2 layers of keys and values of 16 numbers, and lists of 16 places a
        // pass.
        assert_eq!(scheduled.kv_bytes_beams, 20 * 2 * 2 * 16 * 4 + 2 * 16 * 8 + 3 * 8);
        let whole = RecommendBench { normaliser: Normaliser::Vocabulary, ..bench() };
        assert_eq!(whole.run().unwrap().logits, 50);
    }

    #[test]
    fn a_draft_takes_no_decode_pass() {
        for verification in [Verification::Masks, Verification::Keys] {
            let mode = Mode::Draft(verification);
            let report = RecommendBench { mode, ..bench() }.run().unwrap();
            // No slots: only where the first pass would begin.
            assert_eq!((report.rows.len(), report.kv_bytes_beams), (2, 8));
            assert_eq!(report.kv_bytes_planned, Some(report.kv_bytes_used));
            assert!(report.draft_params > 0);
            assert!(report.flops < bench().run().unwrap().flops);
        }
    }

    /// An emulated device: the weights of this processor, and no bound by its products.
    #[test]
    fn a_device_is_measured_without_this_processors_bound() {
        let mut bench = bench();
        (bench.model.hidden_size, bench.model.intermediate_size, bench.model.head_dim) =
            (64, 64, 64);
        bench.model.num_attention_heads = 2;
        (bench.model.num_key_value_heads, bench.repeat) = (1, 1);
        for mode in [Mode::Beam, Mode::Draft(Verification::Masks)] {
            let bench = RecommendBench { mode, ..bench.clone() };
            let Some(driver) = Emulator::new(Hardware::Hopper, 1) else { return };
            let driver = Arc::new(driver);
            let report = bench.run_on(&|model| {
                let RandomModel { config, tensors, draft, prompt_tokens } = model;
                let limits = DeviceLimits {
                    prompt_tokens: Some(prompt_tokens),
                    keeps_prefixes: false,
                    ..LIMITS
                };
                let driver = Arc::clone(&driver);
                let engine = CudaEngine::new(driver, config, tensors, draft, &limits);
                Ok(Arc::new(engine.map_err(|error| error.to_string())?).into())
            });
            let (report, here) = (report.unwrap(), bench.run().unwrap());
            assert_eq!((report.device.as_str(), here.device.as_str()), ("emulated Hopper", "cpu"));
            assert!(report.bound.is_none() && report.kv_bytes_planned.is_none());
            assert_eq!(report.weights, WeightFormat::Bf16);
            assert_eq!((report.params, report.flops), (here.params, here.flops));
            assert_eq!((report.prompt_tokens, &report.rows), (here.prompt_tokens, &here.rows));
            assert_eq!(report.draft_params, here.draft_params);
            assert!(report.total_ms > 0.0 && report.kv_bytes_used > 0);
            let text = serde_json::to_value(&report).unwrap();
            assert!(text.get("bound_ms").is_none() && text.get("kv_bytes_planned").is_none());
        }
        let refused = bench.run_on(&|_| Err("no device".to_owned())).unwrap_err();
        assert_eq!(refused.to_string(), "no device");
    }

    #[test]
    fn nothing_to_measure_is_an_error() {
        let says = |bench: RecommendBench| bench.run().unwrap_err().to_string();
        assert!(says(RecommendBench { widths: vec![8, 0, 8], ..bench() }).contains("beam is 0"));
        let few = RecommendBench { widths: vec![8, 8], ..bench() };
        assert!(says(few).contains("2 beam widths were given for 3 levels"));
        assert!(says(RecommendBench { prompt: 3, ..bench() }).contains("shortest has 4"));
        let mut odd = bench();
        odd.model.head_dim = 7;
        assert!(says(odd).contains("even"));
    }
}
