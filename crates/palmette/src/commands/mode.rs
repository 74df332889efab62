//! `--mode` and `--verify`: how items are found.

use anyhow::ensure;
use clap::{Args, ValueEnum};
use palmette_recommend::{Mode, Verification};

/// How items are found.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ModeArgs {
    /// How items are found
    #[arg(long, value_enum, value_name = "MODE", default_value_t = ModeArg::Beam)]
    mode: ModeArg,
    /// With --mode draft: how what the head says is held to the catalog [default: masks]
    #[arg(long, value_enum, value_name = "HOW")]
    verify: Option<VerifyArg>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ModeArg {
    /// Beam search with the model, a pass for each level
    Beam,
    /// Beam search with the model's draft head, one pass in all; `palmette-train draft` trains heads
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
    /// # Errors
    /// When a verification is named where nothing is drafted.
    pub(crate) fn mode(self) -> anyhow::Result<Mode> {
        if self.mode == ModeArg::Beam {
            ensure!(self.verify.is_none(), "--verify is about drafts: give --mode draft with it");
            return Ok(Mode::Beam);
        }
        Ok(Mode::Draft(match self.verify {
            None | Some(VerifyArg::Masks) => Verification::Masks,
            Some(VerifyArg::Keys) => Verification::Keys,
            Some(VerifyArg::None) => Verification::None,
        }))
    }
}

/// The mode as documents spell it.
pub(crate) fn name(mode: Mode) -> &'static str {
    match mode {
        Mode::Beam => "beam",
        Mode::Draft(Verification::Masks) => "draft, verified by masks",
        Mode::Draft(Verification::Keys) => "draft, verified by keys",
        Mode::Draft(Verification::None) => "draft, not verified",
    }
}
