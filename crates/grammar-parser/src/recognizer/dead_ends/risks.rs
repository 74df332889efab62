//! Risks: terminals with ends after which some stack may have no completion, by context.

use hashbrown::HashMap;

use super::places::{ConditionId, Places};
use super::pushdown::{Control, Demand};
use crate::lr::{StateId, Tables};
use crate::recognizer::contexts::{ContextId, Contexts};
use crate::{TerminalId, TerminalSet};

/// Risks by context: the terminals with ends after which not every stack is safe.
#[derive(Debug)]
pub(super) struct Risks(HashMap<ContextId, Vec<Risk>>);

/// A terminal in a context.
#[derive(Debug)]
pub(super) struct Risk {
    pub(super) terminal: TerminalId,
    pub(super) is_ignored: bool,
    /// Ascending.
    pub(super) unsafe_ends: Vec<ConditionId>,
    pub(super) has_safe_ends: bool,
}

impl Risks {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn of_all(places: &Places, ignored: &TerminalSet) -> Self {
        let mut by_context: HashMap<ContextId, Vec<Risk>> = HashMap::new();
        for place in places.all() {
            let risks = by_context.entry(place.context).or_default();
            for &(terminal, condition) in &*place.ends {
                let is_ignored = ignored.contains(terminal);
                let is_safe = match is_ignored {
                    true => places.at(condition, place.context).is_some_and(|at| at.is_safe),
                    false => places.is_safe_after(terminal, condition),
                };
                let at = risks.iter().position(|risk| risk.terminal == terminal);
                let at = at.unwrap_or_else(|| {
                    let (unsafe_ends, has_safe_ends) = (Vec::new(), false);
                    risks.push(Risk { terminal, is_ignored, unsafe_ends, has_safe_ends });
                    risks.len() - 1
                });
                match is_safe {
                    true => risks[at].has_safe_ends = true,
                    false => risks[at].unsafe_ends.push(condition),
                }
            }
        }
        for risks in by_context.values_mut() {
            risks.retain(|risk| !risk.unsafe_ends.is_empty());
            risks.sort_unstable_by_key(|risk| risk.terminal);
            for risk in risks {
                risk.unsafe_ends.sort_unstable();
                risk.unsafe_ends.dedup();
            }
        }
        by_context.retain(|_, risks| !risks.is_empty());
        Self(by_context)
    }

    pub(super) fn of(&self, context: ContextId) -> &[Risk] {
        self.0.get(&context).map_or(&[], |risks| risks)
    }

    /// Questions about stacks.
    pub(super) fn questions(
        &self,
        tables: &Tables,
        contexts: &Contexts,
    ) -> Vec<(Control, StateId)> {
        let mut questions = Vec::new();
        for state in tables.states().filter(|&state| tables.sole_reduction(state).is_none()) {
            for risk in self.of(contexts.of(state)) {
                if !risk.is_ignored {
                    questions.push((Control::Before(risk.terminal, Demand::Safe), state));
                }
                for &condition in &risk.unsafe_ends {
                    let after = Demand::Condition(condition);
                    let control = match risk.is_ignored {
                        true => Control::Between(after),
                        false => Control::Before(risk.terminal, after),
                    };
                    questions.push((control, state));
                }
            }
        }
        questions
    }
}
