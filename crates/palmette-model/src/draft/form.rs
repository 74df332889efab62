//! Which equations a head follows.

use serde::{Deserialize, Serialize};

/// Which equations a draft head follows: the published ones, or one of their ablations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DraftForm {
    /// What a level's probabilities are made from.
    pub input: DraftInput,
    /// How the state moves on. Without meaning where the input has no state.
    pub transition: DraftTransition,
}

/// What a level's probabilities are made from: the x of `softmax(W x)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DraftInput {
    /// `h_l + s_l`
    #[default]
    Both,
    /// `h_l`: levels do not know what was chosen before. NEZHA-1 of the paper's table 4.
    Placeholder,
    /// `s_l`: no placeholders. NEZHA-2.
    State,
    /// `h₀` at every level, as independent heads for several tokens ahead (MTP) have it: neither placeholders nor a state.
    Prompt,
}

/// How the state moves over a chosen code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DraftTransition {
    /// `tanh(A s + B e + b)`
    #[default]
    Rnn,
    /// `s + e`. NEZHA-3.
    Add,
}

impl DraftInput {
    /// Its name on command lines and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Both => "both",
            Self::Placeholder => "placeholder",
            Self::State => "state",
            Self::Prompt => "prompt",
        }
    }
}

impl DraftTransition {
    /// Its name on command lines and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rnn => "rnn",
            Self::Add => "add",
        }
    }
}

impl DraftForm {
    /// Whether h₁ … h_L are read, so that the prompt needs placeholders.
    pub fn has_placeholders(self) -> bool {
        matches!(self.input, DraftInput::Both | DraftInput::Placeholder)
    }

    /// Whether there is a state, so that a level knows what was chosen before.
    pub fn has_state(self) -> bool {
        matches!(self.input, DraftInput::Both | DraftInput::State)
    }

    /// Whether transitions have weights.
    pub fn has_transitions(self) -> bool {
        self.has_state() && self.transition == DraftTransition::Rnn
    }
}
