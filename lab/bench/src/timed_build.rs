//! Building an engine against the clock.

use std::time::Instant;

use crate::bench::Progress;
use crate::engines::Engine;
use crate::generate::GeneratedItems;
use crate::machine::process_cpu_s;

/// An engine and what it took to build.
pub(crate) struct Built<E> {
    pub(crate) engine: E,
    pub(crate) cpu_s: Option<f64>,
    pub(crate) wall_s: f64,
}

/// Feeds all rows to an engine. Time goes from a row's arrival to the finished engine; making rows
/// is left out.
pub(crate) fn build<E>(
    items: &GeneratedItems,
    mut builder: E::Builder,
    pool: Option<&rayon::ThreadPool>,
    progress: &mut dyn Progress,
) -> Result<Built<E>, String>
where
    E: Engine + Send,
    E::Builder: Send,
{
    let mut watch = Stopwatch { cpu_s: process_cpu_s().map(|_| 0.0), wall_s: 0.0 };
    let levels = items.shape().levels;
    progress.begin(&format!("{}: rows", E::NAME), items.shape().items as u64);
    items.for_each_block(|rows| {
        watch.time(|| rows.chunks_exact(levels).for_each(|codes| E::push(&mut builder, codes)));
        progress.advance((rows.len() / levels) as u64);
    });
    progress.begin(&format!("{}: sort and index", E::NAME), 1);
    let engine = watch.time(|| match pool {
        Some(pool) => pool.install(|| E::build(builder)),
        None => E::build(builder),
    })?;
    progress.advance(1);
    Ok(Built { engine, cpu_s: watch.cpu_s, wall_s: watch.wall_s })
}

/// Sums of the times that pieces of work took.
struct Stopwatch {
    /// `None` where the system does not say.
    cpu_s: Option<f64>,
    wall_s: f64,
}

impl Stopwatch {
    fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let (cpu, wall) = (process_cpu_s(), Instant::now());
        let result = work();
        self.wall_s += wall.elapsed().as_secs_f64();
        let parts = self.cpu_s.zip(cpu).zip(process_cpu_s());
        self.cpu_s = parts.map(|((sum, from), to)| sum + to - from);
        result
    }
}
