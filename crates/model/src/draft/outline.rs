//! Outline of a head: equations, codes and width, without weights.

use super::form::DraftForm;

/// The tokens that a draft head says: row `r` of level `l` is token `levels[l].0 + r`, of
/// `levels[l].1` rows.
///
/// The codes that they spell, where they do, are the prompts' to say; nothing that a head computes
/// depends on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftShape {
    /// First token and number of tokens of each level.
    pub levels: Vec<(u32, u32)>,
}

/// Outline of a draft head: what is known of it wherever it is computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftOutline {
    /// Equations that it follows.
    pub form: DraftForm,
    /// The codes it spells.
    pub shape: DraftShape,
    /// D: width of the decoder's hidden states.
    pub width: usize,
}

impl DraftOutline {
    /// Rows that follow the prompt.
    pub fn num_placeholders(&self) -> usize {
        if self.form.has_placeholders() { self.shape.levels.len() } else { 0 }
    }

    /// Hidden states that it reads: after the prompt, and at each placeholder.
    pub fn num_hidden(&self) -> usize {
        1 + self.num_placeholders()
    }

    /// True if the choice of this level moves the state by weights.
    pub fn has_transition(&self, level: usize) -> bool {
        self.form.has_transitions() && level + 1 < self.shape.levels.len()
    }

    /// Number of parameters.
    pub fn num_parameters(&self) -> usize {
        let (d, levels) = (self.width, &self.shape.levels);
        let heads: usize = levels.iter().map(|&(_, codes)| codes as usize * d).sum();
        let moves = (0..levels.len()).filter(|&level| self.has_transition(level)).count();
        self.num_placeholders() * d + heads + moves * (2 * d * d + d)
    }

    /// Floating-point operations of a row's products at a level: the state's move there, and the
    /// logits.
    pub fn operations_of_row(&self, level: usize) -> u64 {
        let moved = level.checked_sub(1).is_some_and(|before| self.has_transition(before));
        let moved = if moved { self.width * self.width } else { 0 };
        2 * (moved + self.shape.levels[level].1 as usize * self.width) as u64
    }
}
