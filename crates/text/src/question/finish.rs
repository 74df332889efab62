//! The member `finish` of questions and of answers: a rule for lengths, and how it held.

use palmette_decode::{LengthReport, LengthRule};
use serde::{Deserialize, Serialize};

use crate::sequence::TextEnd;

/// Rule for an answer that would take more tokens than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum FinishMember {
    /// Whole within its tokens, or refused before the first where none is.
    Promised,
    /// Promised, and leaning to the end before it has to end.
    Gentle,
    /// Cut off.
    Cut,
}

/// Report of how an answer's rule for its length held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FinishReport {
    /// The rule that held: `cut` where no way to the end was found, so that the answer might break
    /// off.
    pub rule: FinishMember,
    /// Tokens that stand where the model's own would have left no way to the end in time; 0 where
    /// none does. Of a text that was searched it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steered: Option<usize>,
    /// Tokens that were drawn from logits that lean to the end, of a `gentle` one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaning: Option<usize>,
}

impl From<FinishMember> for LengthRule {
    fn from(finish: FinishMember) -> Self {
        match finish {
            FinishMember::Promised => Self::Promised,
            FinishMember::Gentle => Self::Gentle,
            FinishMember::Cut => Self::Cut,
        }
    }
}

impl FinishReport {
    /// The report of a text; `None` where its length has no rule.
    pub fn of(text: &TextEnd) -> Option<Self> {
        let LengthReport { rule, steered, leaning } = text.length?;
        let (rule, steered, leaning) = match rule {
            LengthRule::Promised => (FinishMember::Promised, Some(steered), None),
            LengthRule::Gentle => (FinishMember::Gentle, Some(steered), Some(leaning)),
            LengthRule::Cut => (FinishMember::Cut, None, None),
        };
        // A search draws no tokens.
        let steered = steered.filter(|_| text.score.is_none());
        Some(Self { rule, steered, leaning })
    }
}
