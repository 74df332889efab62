//! `--mode`, `--verify` and `--probe`: how items are found.

use std::num::NonZeroUsize;

use anyhow::{bail, ensure};
use clap::{Args, ValueEnum};
use palmette_recommend::{Mode, ModeName, RecommendQuestion, Verification};

/// Options of finding items.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ModeArgs {
    /// Method of finding items [default: beam]
    #[arg(long, value_enum, value_name = "MODE")]
    mode: Option<ModeArg>,
    /// With --mode draft: how what the head says is held to the catalog [default: masks]
    #[arg(long, value_enum, value_name = "HOW")]
    verify: Option<VerifyArg>,
    /// With --mode beam: width of a search that goes first, so that the wide one need not search
    /// what cannot beat the items it found; they are the same as without. 0 for none [default: half
    /// more than the items asked for and at least 16, where every level of the beam is eight times
    /// as wide]
    #[arg(long, value_name = "N")]
    probe: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ModeArg {
    /// Beam search with the model, a pass for each level
    Beam,
    /// Beam search with the model's draft head, one pass in all; `palmette-train draft` trains
    /// heads
    Draft,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum VerifyArg {
    /// The catalog's masks at every level; finds as many items as there are
    Masks,
    /// A free search, and a look-up of whole semantic IDs at the last level; may find fewer
    Keys,
    /// Not at all: what is no item is left out of the answer
    None,
}

impl ModeArgs {
    /// Sets the members of a question that these options give.
    ///
    /// # Errors
    /// When options exclude each other; whether a probe fits the beam is for the question's check.
    pub(crate) fn fill(self, question: &mut RecommendQuestion) -> anyhow::Result<()> {
        let of_question = (question.mode == ModeName::Draft).then_some(ModeArg::Draft);
        match (self.mode.or(of_question), self.verify, self.probe) {
            _ if self.mode.is_none() && self.verify.is_none() && self.probe.is_none() => {
                return Ok(());
            }
            (Some(ModeArg::Beam) | None, Some(_), _) => {
                bail!("--verify is about drafts: give --mode draft with it")
            }
            (Some(ModeArg::Draft), _, Some(_)) => {
                bail!("--probe is about --mode beam: a draft head has no wide passes")
            }
            (Some(ModeArg::Draft), verify, None) => {
                let verify = verify.map(VerifyArg::verification).or(question.verify);
                question.set_mode(Mode::Draft(verify.unwrap_or_default()));
            }
            (Some(ModeArg::Beam) | None, None, probe) => {
                question.set_mode(Mode::Auto);
                question.probe_width = probe;
            }
        }
        Ok(())
    }

    /// The mode for `k` items from beams of these widths, one a level.
    ///
    /// # Errors
    /// When a verification is named where nothing is drafted, or a probe where nothing is searched
    /// by the decoder or that could not go first.
    pub(crate) fn mode(self, widths: &[usize], k: usize) -> anyhow::Result<Mode> {
        if self.mode != Some(ModeArg::Draft) {
            ensure!(self.verify.is_none(), "--verify is about drafts: give --mode draft with it");
            let Some(asked) = self.probe else { return Ok(Mode::Auto) };
            let Some(probe) = NonZeroUsize::new(asked) else { return Ok(Mode::Beam) };
            ensure!(
                asked >= k,
                "--probe {asked} finds fewer than the {k} items asked for: give {k} or more, or 0 for none"
            );
            if let Some(narrowest) = widths.iter().copied().min() {
                ensure!(
                    asked < narrowest,
                    "--probe {asked} is no narrower than the beam of {narrowest} after it: give less, or 0 for none"
                );
            }
            return Ok(Mode::Probed(probe));
        }
        ensure!(
            self.probe.is_none(),
            "--probe is about --mode beam: a draft head has no wide passes"
        );
        let verify = self.verify.map_or_else(Verification::default, VerifyArg::verification);
        Ok(Mode::Draft(verify))
    }
}

impl VerifyArg {
    fn verification(self) -> Verification {
        match self {
            Self::Masks => Verification::Masks,
            Self::Keys => Verification::Keys,
            Self::None => Verification::None,
        }
    }
}

/// The mode as documents spell it.
pub(crate) fn name(mode: Mode) -> &'static str {
    match mode {
        Mode::Auto | Mode::Beam | Mode::Probed(_) => "beam",
        Mode::Draft(Verification::Masks) => "draft, verified by masks",
        Mode::Draft(Verification::Keys) => "draft, verified by keys",
        Mode::Draft(Verification::None) => "draft, not verified",
    }
}

/// Width of the search that goes first; 0 for none.
pub(crate) fn probe_width(mode: Mode) -> usize {
    match mode {
        Mode::Probed(width) => width.get(),
        Mode::Auto | Mode::Beam | Mode::Draft(_) => 0,
    }
}
