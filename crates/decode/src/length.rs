//! Lengths of generated sequences: the rule for one that would be longer, and how it held.

/// Rule for sequences that would take more tokens than they may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LengthRule {
    /// A longer sequence is cut off.
    #[default]
    Cut,
    /// A sequence ends in time, or does not begin: of a constraint that knows [ways to the
    /// end](palmette_core::Constraint::fewest_tokens), it is whole within its tokens, end tokens
    /// left out, and not before as many as it must have. Of others it is cut off.
    Promised,
    /// A sequence ends as promised, and leans to its end before it has to: some of the tokens that
    /// it may have, and need not, are a reserve for the end, and logits of tokens that take of it
    /// are lowered. With tokens to spare it is the one that is promised.
    Gentle,
}

/// Report of how the rule for its length held in a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LengthReport {
    /// The rule that held: [`Cut`](LengthRule::Cut) where another was asked for, and no way to the
    /// end was known at the beginning.
    pub rule: LengthRule,
    /// Tokens in the place of one that was drawn, and that left no way to the end in time.
    pub steered: usize,
    /// Tokens that were drawn from logits that [lean](LengthRule::Gentle) to the end.
    pub leaning: usize,
}

/// The greatest number below one that there is no way for, so that there is one of at least as many
/// tokens: found by halves.
///
/// # Errors
/// Arguments of `has_way`.
pub fn greatest_least<E>(
    below: usize,
    mut has_way: impl FnMut(usize) -> Result<bool, E>,
) -> Result<usize, E> {
    let (mut can, mut cannot) = (0, below);
    while can + 1 < cannot {
        let middle = can.midpoint(cannot);
        match has_way(middle)? {
            true => can = middle,
            false => cannot = middle,
        }
    }
    Ok(can)
}

/// Pace of a sequence that leans to its end.
///
/// Tokens that are left are *needed* where the shortest way takes them, the others are *slack*. A
/// token takes slack where more are needed after it than would be after the next on that
/// way: within a string a word takes one, the quote none, and an element of a list takes what must
/// be in it.
///
/// A reserve of the slack is for the end. The first token of it costs next to nothing, each further
/// one costs more, up to [`MAX_NATS`] for the last, and a token costs what it takes of it.
///
/// The reserve is the greater of two: slack in the proportion to what is needed that it had at the
/// beginning, but no more than [`OWN_TOKENS`] for each token; and the [last share](LAST_SHARE) of
/// all slack. By the first a long value leaves room for those that must come after it, by the
/// second a list ends before it is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Slack for each needed token, at the beginning.
    ratio: f32,
    last: f32,
}

/// Slack that is kept for each needed token, at most.
const OWN_TOKENS: f32 = 1.0;

/// Share of the slack that the end of every sequence is in.
const LAST_SHARE: f32 = 0.25;

/// Cost of the last token of the slack, in nats.
const MAX_NATS: f32 = 8.0;

impl Pace {
    /// The pace of a sequence that takes `needed` tokens and may take `max_tokens`.
    pub(crate) fn new(needed: usize, max_tokens: usize) -> Self {
        let slack = max_tokens.saturating_sub(needed) as f32;
        let ratio = (slack / needed.max(1) as f32).min(OWN_TOKENS);
        Self { ratio, last: slack * LAST_SHARE }
    }

    /// The costs of tokens where so many are needed and left; `None` where there is plenty.
    pub(crate) fn costs(self, needed: usize, left: usize) -> Option<TokenCosts> {
        let slack = left.saturating_sub(needed) as f32;
        let reserve = self.last.max(self.ratio * needed as f32);
        // Above, one would have to take as much as the reserve at once, and is not looked for.
        (slack < 2.0 * reserve).then_some(TokenCosts { reserve, slack })
    }
}

/// Costs of tokens by what they take of the slack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenCosts {
    reserve: f32,
    slack: f32,
}

impl TokenCosts {
    /// Nats that a token loses which takes so many of the slack.
    pub(crate) fn nats(self, taken: usize) -> f32 {
        let lack = |slack: f32| (self.reserve - slack).max(0.0);
        let (before, after) = (lack(self.slack), lack(self.slack - taken as f32));
        MAX_NATS * (after * after - before * before) / (2.0 * self.reserve)
    }
}
