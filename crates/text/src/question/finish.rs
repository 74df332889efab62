//! The member `finish` of questions and of answers: a rule for lengths, and how it held.

use palmette_decode::{LengthReport, LengthRule};
use serde::{Deserialize, Serialize};

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
    /// none does.
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

impl From<LengthReport> for FinishReport {
    fn from(report: LengthReport) -> Self {
        let LengthReport { rule, steered, leaning } = report;
        let (rule, steered, leaning) = match rule {
            LengthRule::Promised => (FinishMember::Promised, Some(steered), None),
            LengthRule::Gentle => (FinishMember::Gentle, Some(steered), Some(leaning)),
            LengthRule::Cut => (FinishMember::Cut, None, None),
        };
        Self { rule, steered, leaning }
    }
}
