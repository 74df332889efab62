//! Calibration: the cost model of a recommender, fitted to requests of several sizes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use palmette_decode::run_on;
use palmette_recommend::{History, Mode, RecommendError, Recommender, Request, Worker};
use palmette_serve_schedule::{CostModel, Shape};

use super::micros;
use super::work::shape_of;

/// Time after which no further size is begun: a server is ready within a second. The model of the
/// cost is linear in what is left out, and is corrected by what requests take.
const MOST: Duration = Duration::from_millis(350);

/// Times requests of one thread, the smallest first, and fits their cost: three lengths of history
/// by up to three widths, the better of two runs each, of one once the time is over.
pub(crate) fn calibrate(
    recommender: &Arc<Recommender>,
    model: u32,
    beam_width: usize,
) -> Result<CostModel, RecommendError> {
    let view = recommender.view()?;
    let most = recommender.format().max_history_items;
    let items: Vec<u64> = view.view().numbers().take(most.max(1)).collect();
    if items.is_empty() {
        return Ok(CostModel::default());
    }
    let history: Vec<u64> = items.iter().copied().cycle().take(most).collect();
    let mut lengths = vec![most / 8, most / 3, most];
    lengths.dedup();
    let mut widths = vec![8, 32, beam_width];
    widths.sort_unstable();
    widths.dedup();
    // Lengths are what counts.
    let fields = recommender.prompts().sample_fields();
    let began = Instant::now();
    let mut measured: Vec<(Shape, _)> = Vec::new();
    let mut worker = Worker::new(Arc::clone(recommender), 1);
    for width in widths {
        for &length in &lengths {
            // The widest at the longest history is what an extrapolation would miss most.
            let is_last = width == beam_width && length == most;
            if measured.len() >= 3 && !is_last && began.elapsed() > MOST {
                continue;
            }
            let request = Request {
                beam_width: width,
                // The model of the cost is that of whole beams; what a probe saves is learnt from
                // requests.
                mode: Mode::Beam,
                include_seen: true,
                fields: Some(&fields),
                view: Some(&view),
                ..Request::new(History::Numbers(&history[..length]), 10.min(width))
            };
            let planned = recommender.planned(&request, 1)?;
            let num_items = view.view().num_items();
            let shape = shape_of(recommender, &request, &planned, model, length, num_items);
            let mut best = Duration::MAX;
            let runs = if measured.len() >= 3 && began.elapsed() > MOST { 1 } else { 2 };
            for _ in 0..runs {
                worker.prepare(&request)?;
                let began = Instant::now();
                worker.recommend(&request, &mut run_on)?;
                best = best.min(began.elapsed());
            }
            measured.push((shape, micros(best)));
        }
    }
    Ok(CostModel::fit(&measured))
}
