//! `--mode`, `--verify`, `--probe` and `--prove-width`: how items are found.

use std::num::NonZeroUsize;

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use palmette_recommend::{Mode, ModeName, RecommendQuestion, Verification};

/// Options of finding items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args)]
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
    /// With --mode proven: width of the second search [default: eight times that of the beam]
    #[arg(long, value_name = "N")]
    prove_width: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ModeArg {
    /// Beam search with the model, a pass for each level
    Beam,
    /// Beam search, and where its answer is not proven to be that of scoring every item, a wider
    /// one for what may be missing
    Proven,
    /// Beam search with the model's draft head, one pass in all; `palmette-train draft` trains
    /// heads
    Draft,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
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
        let of_question = match question.mode {
            ModeName::Draft => Some(ModeArg::Draft),
            ModeName::Proven => Some(ModeArg::Proven),
            ModeName::Auto | ModeName::Beam | ModeName::Probed => None,
        };
        let mode = self.mode.or(of_question);
        ensure!(
            self.prove_width.is_none() || mode == Some(ModeArg::Proven),
            "--prove-width is the width of a second search: give --mode proven with it"
        );
        match (mode, self.verify, self.probe) {
            _ if self == Self::default() => return Ok(()),
            (Some(ModeArg::Beam | ModeArg::Proven) | None, Some(_), _) => {
                bail!("--verify is about drafts: give --mode draft with it")
            }
            (Some(ModeArg::Proven), None, Some(_)) => {
                bail!("--probe is about --mode beam: the first search of --mode proven has its own")
            }
            (Some(ModeArg::Proven), None, None) => {
                question.mode = ModeName::Proven;
                question.probe_width = None;
                question.prove_width = self.prove_width.or(question.prove_width);
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
        let is_proven = self.mode == Some(ModeArg::Proven);
        ensure!(
            self.prove_width.is_none() || is_proven,
            "--prove-width is the width of a second search: give --mode proven with it"
        );
        if is_proven {
            ensure!(self.verify.is_none(), "--verify is about drafts: give --mode draft with it");
            ensure!(
                self.probe.is_none(),
                "--probe is about --mode beam: the first search of --mode proven has its own"
            );
            let beam = widths.iter().copied().max().unwrap_or(1);
            let Some(width) = self.prove_width else {
                return Ok(Mode::Proven(Mode::prove_width(beam)));
            };
            let wider = NonZeroUsize::new(width).filter(|wider| wider.get() > beam);
            return wider.map(Mode::Proven).with_context(|| {
                format!(
                    "--prove-width {width} is no wider than the beam of {beam} before it: give more"
                )
            });
        }
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
        Mode::Proven(_) => "proven",
        Mode::Draft(Verification::Masks) => "draft, verified by masks",
        Mode::Draft(Verification::Keys) => "draft, verified by keys",
        Mode::Draft(Verification::None) => "draft, not verified",
    }
}

/// Width of the search that goes first; 0 for none.
pub(crate) fn probe_width(mode: Mode) -> usize {
    match mode {
        Mode::Probed(width) => width.get(),
        Mode::Auto | Mode::Beam | Mode::Proven(_) | Mode::Draft(_) => 0,
    }
}
