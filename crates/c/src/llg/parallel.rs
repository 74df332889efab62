//! Masks of many constraints, on several threads, at once or while the caller goes on.

use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use palmette_core::{Constraint, mask};
use palmette_grammar::{BatchFiller, BatchRow, MaskBudget};

use super::constraint::{LlgConstraint, goes_on};
use crate::arguments::{array_mut, invalid};
use crate::border;
use crate::error::{Error, Status};

/// A constraint and the place of its mask.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LlgConstraintStep {
    /// The constraint; null is passed over.
    pub constraint: *mut LlgConstraint,
    /// The place of the mask.
    pub mask_dest: *mut u32,
    /// Bytes of that.
    pub mask_byte_len: usize,
}

/// A function that is called when work is done.
pub type LlgCallback = Option<extern "C" fn(user_data: *const c_void)>;

/// Threads that all calls share, one call after another.
static FILLER: Mutex<Option<BatchFiller>> = Mutex::new(None);

/// The steps of a call, and what is told when they are done.
struct Work {
    steps: Vec<LlgConstraintStep>,
    user_data: *const c_void,
    done: LlgCallback,
}

// SAFETY: the interface demands that constraints, places and the argument are left alone until the
// callback, and that the callback may come on any thread.
unsafe impl Send for Work {}

/// The row of a step, where it has a place for one; an error otherwise, of the constraint.
///
/// # Safety
/// The place has as many bytes as it says.
unsafe fn row<'a>(step: &LlgConstraintStep) -> Result<&'a mut [u32], Error> {
    let length = step.mask_byte_len;
    if !length.is_multiple_of(4) {
        return Err(invalid(format!("mask_byte_len is {length}, which is no multiple of 4")));
    }
    // SAFETY: the caller's promise.
    unsafe { array_mut(step.mask_dest, length / 4, "mask_dest") }
}

impl Work {
    /// # Safety
    /// Constraints and places are alive, and nobody else has them.
    unsafe fn fill(&self) -> Result<(), Error> {
        let mut shared = FILLER.lock().unwrap_or_else(PoisonError::into_inner);
        let filler = match &mut *shared {
            Some(filler) => filler,
            none => {
                let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
                let made = BatchFiller::new(threads);
                let made =
                    made.map_err(|error| Error::new(Status::LimitExceeded, error.to_string()))?;
                none.insert(made)
            }
        };
        let (mut constraints, mut rows) = (Vec::new(), Vec::new());
        for step in &self.steps {
            // SAFETY: null, or alive and nobody else's.
            let Some(constraint) = (unsafe { step.constraint.as_mut() }) else { continue };
            // SAFETY: the caller's promise.
            let placed = constraint.run_with(|| unsafe { row(step) });
            if let Some(row) = placed.filter(|_| constraint.matcher.is_some()) {
                constraints.push(constraint);
                rows.push(row);
            }
        }
        let tasks: Vec<_> = constraints
            .iter()
            .zip(&mut rows)
            .filter_map(|(of, row)| {
                let matcher = of.matcher.as_ref()?;
                Some((BatchRow::new(&matcher.constraint, &matcher.state), &mut **row))
            })
            .collect();
        let failed = filler.fill_each(tasks, &MaskBudget::unlimited());
        let mut failed = failed.into_iter().peekable();
        for (at, (constraint, row)) in constraints.into_iter().zip(rows).enumerate() {
            let failure = failed.next_if(|failure| failure.row == at);
            constraint.run(|constraint| {
                failure.map_or(Ok(()), |failure| Err(Error::from(failure.kind)))?;
                let matcher = constraint.matcher()?;
                let ends = matcher.constraint.ends();
                let is_stop = !goes_on(row, ends);
                if is_stop {
                    // Who samples anyway ends the text.
                    let num_tokens = matcher.constraint.num_tokens();
                    ends.iter()
                        .filter(|end| end.index() < num_tokens)
                        .for_each(|&end| mask::insert(row, end));
                }
                constraint.is_stopped = is_stop;
                Ok(())
            });
        }
        Ok(())
    }

    /// # Safety
    /// As [`fill`](Self::fill).
    unsafe fn run(self) {
        // SAFETY: the caller's promise.
        let filled = border::ask(None, || unsafe { self.fill() }.err());
        if let Some(error) = filled {
            for step in &self.steps {
                // SAFETY: null, or alive and nobody else's.
                if let Some(constraint) = unsafe { step.constraint.as_mut() } {
                    let (status, message) = (error.status(), error.message().to_owned());
                    constraint.run(|_| Err(Error::new(status, message)));
                }
            }
        }
        if let Some(done) = self.done {
            done(self.user_data);
        }
    }
}

impl LlgConstraint {
    /// Runs what needs nothing of the constraint; an error stays.
    fn run_with<T>(&mut self, work: impl FnOnce() -> Result<T, Error>) -> Option<T> {
        let mut answer = None;
        self.run(|_| {
            answer = Some(work()?);
            Ok(())
        });
        answer
    }
}

/// Computes masks of several constraints: before it returns where there is no callback, else on
/// threads of its own, until the callback. Errors are those of the constraints.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_par_compute_mask(
    steps: *const LlgConstraintStep,
    n_steps: usize,
    user_data: *const c_void,
    done_cb: LlgCallback,
) {
    // SAFETY: the caller's promise. Null steps are none.
    let steps = unsafe { crate::arguments::array(steps, n_steps, "steps") };
    let steps = steps.unwrap_or_default().to_vec();
    let work = Work { steps, user_data, done: done_cb };
    if done_cb.is_none() {
        // SAFETY: the caller's promise.
        return unsafe { work.run() };
    }
    let shared = std::sync::Arc::new(Mutex::new(Some(work)));
    let taken = std::sync::Arc::clone(&shared);
    let run = move || {
        let work = taken.lock().unwrap_or_else(PoisonError::into_inner).take();
        // SAFETY: the caller's promise.
        work.into_iter().for_each(|work| unsafe { work.run() });
    };
    let thread = std::thread::Builder::new().name("llg-masks".to_owned());
    if thread.spawn(run.clone()).is_err() {
        // Without another thread it is done on this one.
        run();
    }
}
