//! Calibration: the cost model of a recommender, fitted to requests of several sizes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use palmette_decode::run_on;
use palmette_recommend::{
    History, KnownPrompt, Mode, PromptFields, RecommendError, Recommender, Request, SpelledView,
    Worker,
};
use palmette_serve_schedule::{CostModel, Micros, Work};

use super::micros;
use super::work::shape_of;

/// Time after which no further size is begun: a server is ready within a second. The model of the
/// cost is linear in what is left out, and is corrected by what requests take.
const MOST: Duration = Duration::from_millis(350);

/// Times requests of one thread, the smallest first, and fits their cost: three lengths of history
/// by up to three widths, the better of two runs each, of one once the time is over. Where passes
/// are shared, batches of up to `batch_jobs` requests too.
pub(crate) fn calibrate(
    recommender: &Arc<Recommender>,
    model: u32,
    beam_width: usize,
    batch_jobs: usize,
) -> Result<CostModel, RecommendError> {
    let view = recommender.view()?;
    let most = recommender.format().max_history_items;
    let items: Vec<u64> = view.view().numbers().take(most.max(1)).collect();
    if items.is_empty() {
        return Ok(CostModel::default());
    }
    let asked = Asking {
        // Lengths are what counts.
        fields: recommender.prompts().sample_fields(),
        view: Arc::clone(&view),
        items,
        next: AtomicUsize::new(0),
    };
    let mut lengths = vec![most / 8, most / 3, most];
    lengths.dedup();
    let mut widths = vec![8, 32, beam_width];
    widths.sort_unstable();
    widths.dedup();
    let num_items = view.view().num_items();
    let prompt = |length| KnownPrompt { tokens: recommender.about_prompt_tokens(length), known: 0 };
    let began = Instant::now();
    let mut measured: Vec<(Work, Micros)> = Vec::new();
    let mut worker = Worker::new(Arc::clone(recommender), 1);
    for &width in &widths {
        for &length in &lengths {
            // The widest at the longest history is what an extrapolation would miss most.
            let is_last = width == beam_width && length == most;
            if measured.len() >= 3 && !is_last && began.elapsed() > MOST {
                continue;
            }
            let mut best = Duration::MAX;
            let mut work = Work::default();
            let runs = if measured.len() >= 3 && began.elapsed() > MOST { 1 } else { 2 };
            for _ in 0..runs {
                let history = asked.history(length);
                let request = asked.request(&history, width);
                let planned = recommender.planned(&request, 1)?;
                let shape =
                    shape_of(recommender, &request, &planned, model, prompt(length), num_items);
                work = Work::of(&shape);
                worker.prepare(&request)?;
                let began = Instant::now();
                worker.recommend(&request, &mut run_on)?;
                best = best.min(began.elapsed());
            }
            measured.push((work, micros(best)));
        }
    }
    if recommender.engine().shares_passes() {
        let length = lengths.get(1).copied().unwrap_or(most);
        for jobs in [2, 4, 8, 16].into_iter().filter(|&jobs| jobs <= batch_jobs) {
            if jobs > 2 && began.elapsed() > 2 * MOST {
                break;
            }
            let mut work = Work::default();
            let mut batch = Vec::new();
            for _ in 0..jobs {
                let history = asked.history(length);
                let request = asked.request(&history, beam_width);
                let planned = recommender.planned(&request, 1)?;
                work.add(&shape_of(
                    recommender,
                    &request,
                    &planned,
                    model,
                    prompt(length),
                    num_items,
                ));
                let mut worker = Worker::new(Arc::clone(recommender), 1);
                worker.prepare(&request)?;
                batch.push((worker, history));
            }
            let began = Instant::now();
            thread::scope(|scope| {
                let answer = |(mut worker, history): (Worker, Vec<u64>)| {
                    worker.recommend(&asked.request(&history, beam_width), &mut run_on).map(drop)
                };
                let runs: Vec<_> =
                    batch.into_iter().map(|of| scope.spawn(move || answer(of))).collect();
                runs.into_iter().try_for_each(|run| {
                    run.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                })
            })?;
            measured.push((work, micros(began.elapsed())));
        }
    }
    Ok(CostModel::fit(&measured))
}

/// Requests to time.
struct Asking {
    fields: PromptFields,
    view: Arc<SpelledView>,
    items: Vec<u64>,
    next: AtomicUsize,
}

impl Asking {
    /// A history that begins otherwise each time: what an engine keeps of one is of no use to the
    /// next.
    fn history(&self, length: usize) -> Vec<u64> {
        let first = self.next.fetch_add(1, Ordering::Relaxed) % self.items.len();
        self.items.iter().copied().cycle().skip(first).take(length).collect()
    }

    fn request<'a>(&'a self, history: &'a [u64], width: usize) -> Request<'a> {
        Request {
            beam_width: width,
            // The model of the cost is that of whole beams; what a probe saves is learnt from
            // requests.
            mode: Mode::Beam,
            include_seen: true,
            // The cost of what is computed; and what is kept is for users.
            remember: false,
            fields: Some(&self.fields),
            view: Some(&self.view),
            ..Request::new(History::Numbers(history), 10.min(width))
        }
    }
}
