//! Forms of draft heads: the equations that they follow.

use serde::{Deserialize, Serialize};

/// Equations that a draft head follows: the published ones, or an ablation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DraftForm {
    /// Input from which a level's probabilities are made.
    pub input: DraftInput,
    /// Transition of the state. Without meaning where the input has no state.
    pub transition: DraftTransition,
}

/// Input from which a level's probabilities are made: the x of `softmax(W x)`.
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
    /// `h₀` at every level, as independent heads for several tokens ahead (MTP) have it: neither
    /// placeholders nor a state.
    Prompt,
}

/// Transition of the state over a chosen code.
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
    /// Name on command lines and in files.
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
    /// Name on command lines and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rnn => "rnn",
            Self::Add => "add",
        }
    }
}

impl DraftForm {
    /// True if h₁ … h_L are read, so that the prompt needs placeholders.
    pub fn has_placeholders(self) -> bool {
        matches!(self.input, DraftInput::Both | DraftInput::Placeholder)
    }

    /// True if there is a state, so that a level knows what was chosen before.
    pub fn has_state(self) -> bool {
        matches!(self.input, DraftInput::Both | DraftInput::State)
    }

    /// True if transitions have weights.
    pub fn has_transitions(self) -> bool {
        self.has_state() && self.transition == DraftTransition::Rnn
    }
}
