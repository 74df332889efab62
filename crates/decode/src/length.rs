//! Lengths of generated sequences: the rule for one that would be longer, and how it held.

/// Rule for sequences that would take more tokens than they may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LengthRule {
    /// A longer sequence is cut off.
    #[default]
    Cut,
    /// A sequence ends in time, or does not begin: of a constraint that knows [ways to the
    /// end](palmette_core::Constraint::fewest_tokens), it is whole within its tokens, end tokens
    /// left out. Of others it is cut off.
    Promised,
}

/// Report of how the rule for its length held in a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LengthReport {
    /// The rule that held: [`Cut`](LengthRule::Cut) where another was asked for, and no way to the
    /// end was known at the beginning.
    pub rule: LengthRule,
    /// Tokens in the place of one that was drawn, and that left no way to the end in time.
    pub steered: usize,
}
