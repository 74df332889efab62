//! A decoder on a device, as the engine of searches.
//!
//! Weights, pages and activations are the engine's; its readings are requests that
//! [meet](crate::meeting) in its passes. Memory is counted before it is taken: what the weights,
//! the activations and the readings' own do not need becomes pages of keys and values.

use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock};

use palmette_core::TokenId;
use palmette_model::draft::{DraftOutline, DraftTensors};
use palmette_model::{
    DeviceUse, Engine, ModelConfig, ModelTensors, PromptUse, Reading, ReadingShape, SequenceStore,
    SequencesError, SequencesOptions, SessionError, WarningListener,
};

use crate::catalog::{CatalogCounts, CatalogMemory, CatalogStore};
use crate::draft::DraftWeights;
use crate::error::CudaError;
use crate::meeting::{Meeting, PassCounts, Shared};
use crate::pages::{PageCounts, Pages};
use crate::plan::{
    CHUNK_ROWS, DeviceLimits, DeviceWeights, DraftSizes, MOST_PASSES, Memory, PAGE, Plan,
    ReadingPlan,
};
use crate::reading::CudaReading;
use crate::sequences::CudaSequences;
use crate::sizes::Sizes;
use crate::slots::Slots;
use crate::weights::{Weights, planned};
use crate::{DeviceError, Driver, KernelSet, Region, RegionPlan, Stream};

/// A model on a device.
#[derive(Debug)]
pub struct CudaEngine {
    pub(crate) shared: Arc<Shared>,
    pub(crate) meeting: Arc<Meeting>,
    pub(crate) catalogs: CatalogStore,
}

impl CudaEngine {
    /// Uploads the model of a Hugging Face directory, and the draft head that is given.
    ///
    /// # Errors
    /// When the files are not those of a model that the kernels compute, or the device fails or has
    /// not the memory.
    pub fn load(
        driver: Arc<dyn Driver>,
        dir: &Path,
        draft: Option<DraftTensors>,
        limits: &DeviceLimits,
    ) -> Result<Self, CudaError> {
        let config = ModelConfig::read(&dir.join("config.json"))?;
        let tensors = ModelTensors::open(dir, &config)?;
        Self::new(driver, config, tensors, draft, limits)
    }

    /// Uploads a model's tensors, and those of its draft head.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn new(
        driver: Arc<dyn Driver>,
        config: ModelConfig,
        tensors: ModelTensors,
        draft: Option<DraftTensors>,
        limits: &DeviceLimits,
    ) -> Result<Self, CudaError> {
        let kernels = KernelSet::of_capability(driver.describe().capability);
        Self::with_kernels(driver, config, tensors, draft, limits, kernels)
    }

    /// Uploads a model and takes a set of kernels by name, to check one against the other.
    ///
    /// # Errors
    /// As [`load`](Self::load), and when the device has no such kernels.
    pub fn with_kernels(
        driver: Arc<dyn Driver>,
        config: ModelConfig,
        tensors: ModelTensors,
        draft: Option<DraftTensors>,
        limits: &DeviceLimits,
        kernels: KernelSet,
    ) -> Result<Self, CudaError> {
        let sizes = Sizes::of(&config)?;
        if limits.weights == DeviceWeights::Int8 {
            sizes.check_int8(config.architecture.family)?;
        }
        let outline = draft.as_ref().map(DraftTensors::outline);
        if let Some(outline) = outline {
            DraftWeights::check(outline, &config)?;
        }
        let mut plans = vec![planned(&config, &sizes, limits.weights, outline)];
        plans.extend(outline.map(DraftWeights::planned));
        let positions = config.max_position_embeddings;
        let mut plan = Plan::new(sizes, limits, positions, outline.map(DraftSizes::of));
        let free = driver.free_bytes()?;
        let limit = limits.memory.unwrap_or(free / 10 * 9).min(free);
        plan.pages = pages(&plan, &plans, limit)?;
        plans.extend(plan.regions().ok_or(too_many(&plan))?);
        let mut regions = driver.regions(&plans)?.into_iter();
        let mut region = || regions.next().ok_or(DeviceError::Foreign("no region"));
        let (of_model, form) = (region()?, limits.weights);
        let draft = draft.map(|tensors| Ok::<_, DeviceError>((tensors, region()?))).transpose()?;
        let weights = Weights::upload(&*driver, &config, &sizes, form, tensors, draft, of_model)?;
        let memory = Memory::new(regions.collect());
        let memory = memory.ok_or(DeviceError::Foreign("other regions"))?;
        // What memory held at first may be no number, and 0 times that is none either. What earlier
        // prompts leave is finite, and has weight 0.
        driver.clear(Stream::Compute, &memory.values)?;
        driver.finish(&driver.record(Stream::Compute)?)?;
        let multiprocessors = driver.describe().multiprocessors;
        let pages = Pages::new(plan.pages, limits.keeps_prefixes);
        let slots = Slots::new(plan.slots);
        let shared = Arc::new(Shared {
            driver,
            multiprocessors,
            kernels,
            config,
            weights,
            plan,
            memory,
            pages,
            slots,
            counts: Mutex::default(),
            failure: OnceLock::new(),
            reading_bytes: AtomicU64::new(0),
        });
        let meeting = Arc::new(Meeting::start(Arc::clone(&shared))?);
        let catalogs = CatalogStore::new(Arc::clone(&shared));
        Ok(Self { shared, meeting, catalogs })
    }

    /// Catalogs that searches have put beside the model, and the searches that ran there.
    pub fn catalog_counts(&self) -> CatalogCounts {
        self.catalogs.counts()
    }

    fn reading_plan(&self, shape: &ReadingShape<'_>) -> Result<ReadingPlan, SessionError> {
        let (prompt, passes) = (shape.max_prompt_tokens, shape.beams.len());
        let (plan, max) = (&self.shared.plan, self.shared.config.max_position_embeddings);
        if prompt.saturating_add(passes) > max {
            return Err(SessionError::TooManyPositions { prompt, passes, max });
        }
        if prompt > plan.prompt {
            return Err(SessionError::PromptTooLong { tokens: prompt, max: plan.prompt });
        }
        if shape.draft_rows > 0 {
            let draft = plan.draft.ok_or(SessionError::NoDraftHere)?;
            return Ok(ReadingPlan::of_draft(&plan.sizes, shape.draft_rows, draft));
        }
        if passes > MOST_PASSES {
            return Err(SessionError::TooManyPasses { pass: passes, max: MOST_PASSES });
        }
        let beams = shape.beams.iter().copied().max().unwrap_or(0);
        if beams > plan.merged {
            return Err(SessionError::TooManyBeams { beams, max: plan.merged });
        }
        Ok(ReadingPlan::new(&plan.sizes, beams, shape.width, passes))
    }
}

/// Pages that what is left of the memory holds: at least those of the longest prompt.
fn pages(plan: &Plan, weights: &[RegionPlan], limit: u64) -> Result<usize, DeviceError> {
    let regions = plan.regions().ok_or(too_many(plan))?;
    let readings = plan.readings().ok_or(too_many(plan))?;
    let all = weights.iter().chain(&regions).chain(&readings);
    // Regions begin at multiples of some bytes.
    let others = all.map(|region| region.bytes as u64).sum::<u64>() + (64 << 10);
    let pages = limit.saturating_sub(others) / plan.page_bytes() as u64;
    if (pages as usize) < plan.prompt_pages() {
        let mut plans = weights.to_vec();
        plans.extend(
            Plan { pages: plan.prompt_pages(), ..plan.clone() }.regions().unwrap_or_default(),
        );
        plans.extend(readings);
        // Their tables are known when they are searched.
        plans.push(RegionPlan { name: "catalogs, of which none is given yet", bytes: 0 });
        return Err(DeviceError::OutOfMemory { plans, free: limit });
    }
    // Pages are numbered by i32, places within them too.
    Ok((pages as usize).min(i32::MAX as usize / PAGE))
}

fn too_many(plan: &Plan) -> DeviceError {
    DeviceError::Uncountable { rows: plan.rows, requests: plan.requests, prompt: plan.prompt }
}

impl Engine for CudaEngine {
    fn config(&self) -> &ModelConfig {
        &self.shared.config
    }

    fn num_parameters(&self) -> usize {
        let (s, config) = (&self.shared.plan.sizes, &self.shared.config);
        let (d, has) = (s.hidden, &config.architecture);
        let norms = 2 * d + if has.query_key_norms { 2 * s.head_width } else { 0 };
        let biases = if has.query_key_value_biases { s.qkv_width() } else { 0 };
        let matrices = d * (s.qkv_width() + s.query_width() + 3 * s.inner);
        let embeddings = if config.tie_word_embeddings { 1 } else { 2 } * s.vocab * d;
        embeddings + d + s.layers * (norms + biases + matrices)
    }

    fn weight_bytes(&self) -> usize {
        self.shared.weights.bytes()
    }

    fn draft_head(&self) -> Option<&DraftOutline> {
        self.shared.weights.draft.as_ref().map(DraftWeights::outline)
    }

    fn shares_passes(&self) -> bool {
        true
    }

    fn failure(&self) -> Option<String> {
        self.shared.failure.get().cloned()
    }

    fn device_use(&self) -> Option<DeviceUse> {
        let (shared, bytes) = (&*self.shared, |region: &Region| region.bytes() as u64);
        let PassCounts { passes, requests, prompt_rows, beam_rows } = shared.pass_counts();
        let PageCounts { used, kept, all, found_tokens, .. } = shared.pages.counts();
        let memory = &shared.memory;
        let kept_apart = [&memory.keys, &memory.values, &memory.own].map(bytes);
        let others = memory.all().into_iter().map(bytes).sum::<u64>();
        let CatalogCounts { catalogs, refused, .. } = self.catalogs.counts();
        let of_catalog = |of: &CatalogMemory| (of.table_bytes + of.filter_bytes) as u64;
        let catalog_bytes = catalogs.iter().map(of_catalog).sum();
        let mut bytes = vec![
            ("weights", shared.weights.bytes() as u64),
            ("pages", kept_apart[0] + kept_apart[1]),
            ("beams", kept_apart[2]),
            ("activations", others - kept_apart.iter().sum::<u64>()),
            ("catalogs", catalog_bytes),
        ];
        let draft = shared.weights.draft.as_ref();
        bytes.extend(draft.map(|draft| ("draft_head", draft.bytes() as u64)));
        Some(DeviceUse {
            device: shared.driver.describe().name,
            passes,
            requests,
            prompt_rows,
            beam_rows,
            found_tokens,
            used_pages: used as u64,
            kept_pages: kept as u64,
            pages: all as u64,
            catalogs: catalogs.len() as u64,
            refused_catalogs: refused as u64,
            bytes,
        })
    }

    fn prompt_use(&self) -> Option<PromptUse> {
        let PageCounts { used, kept, all, found_tokens, evicted } = self.shared.pages.counts();
        Some(PromptUse {
            found_tokens,
            computed_tokens: self.shared.pass_counts().prompt_rows,
            kept_pages: (used + kept) as u64,
            pages: all as u64,
            evicted_pages: evicted,
            bytes: 0,
        })
    }

    fn known_prompt_tokens(&self, prompt: &[TokenId]) -> usize {
        self.shared.pages.known_tokens(prompt, 1)
    }

    fn on_warning(&self, listener: WarningListener) {
        self.catalogs.on_warning(listener);
    }

    /// A reading's own memory, its slots and the pages that it is promised.
    fn planned_bytes(&self, shape: &ReadingShape<'_>, _: usize) -> Result<usize, SessionError> {
        let (own, plan) = (self.reading_plan(shape)?, &self.shared.plan);
        let (prompt, beams) = (shape.max_prompt_tokens, shape.beams.iter().sum::<usize>());
        let pages = prompt.div_ceil(PAGE).checked_mul(plan.page_bytes());
        let slots = beams.checked_mul(plan.slot_bytes());
        let all = || own.bytes()?.checked_add(pages?)?.checked_add(slots?);
        all().ok_or(SessionError::PlanTooLarge { prompt, beams, bytes: None })
    }

    fn open(
        self: Arc<Self>,
        shape: &ReadingShape<'_>,
        _: usize,
    ) -> Result<Box<dyn Reading>, SessionError> {
        let plan = self.reading_plan(shape)?;
        Ok(Box::new(CudaReading::open(self, plan, shape)?))
    }

    fn sequence_rows(&self) -> usize {
        CHUNK_ROWS.min(self.shared.plan.rows)
    }

    /// The logits of a row each, and the pages that are promised.
    fn planned_sequence_bytes(&self, options: &SequencesOptions) -> Result<usize, SequencesError> {
        let plan = &self.shared.plan;
        let SequencesOptions { max_sequences, max_tokens, .. } = options.at_least_one();
        let own = ReadingPlan::new(&plan.sizes, max_sequences, 0, 0).region_bytes();
        let pages = max_tokens.div_ceil(PAGE).checked_mul(plan.page_bytes());
        let all = || own?.checked_add(pages?);
        let (sequences, tokens) = (max_sequences, max_tokens);
        all().ok_or(SequencesError::PlanTooLarge { sequences, tokens })
    }

    fn open_sequences(
        self: Arc<Self>,
        options: SequencesOptions,
    ) -> Result<Box<dyn SequenceStore>, SequencesError> {
        let (shared, meeting) = (Arc::clone(&self.shared), Arc::clone(&self.meeting));
        Ok(Box::new(CudaSequences::open(shared, meeting, options)?))
    }
}
