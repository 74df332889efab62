//! Errors of a lexer's construction and of its steps.

use palmette_grammar_regex::expressions::{CompileErrorKind, Exceeded};

use crate::Interrupted;

/// Error of a lexer that cannot be made, or cannot go on.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct LexerError(Box<Kind>);

#[derive(Debug, thiserror::Error)]
pub(super) enum Kind {
    #[error(
        "terminal {name} matches the empty text, and a lexeme cannot be empty; make what uses it optional instead"
    )]
    EmptyTerminal { name: String },
    #[error("terminal {name}: {why}")]
    Terminal { name: String, why: CompileErrorKind },
    #[error("the lexer: {0}")]
    Exceeded(Exceeded),
    #[error("the lexer has more than max_states = {0} states; raise it or simplify the terminals")]
    States(usize),
    #[error(
        "one step of the lexer took more than max_step_work = {0} units; raise it or simplify the terminals"
    )]
    Step(u64),
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl LexerError {
    /// True when a limit of [`LexerLimits`](super::LexerLimits) is exceeded.
    pub fn is_limit_exceeded(&self) -> bool {
        match &*self.0 {
            Kind::Exceeded(_) | Kind::States(_) | Kind::Step(_) => true,
            Kind::Terminal { why, .. } => {
                matches!(why, CompileErrorKind::Exceeded(_) | CompileErrorKind::Deep(_))
            }
            Kind::EmptyTerminal { .. } | Kind::Interrupted(_) => false,
        }
    }

    /// Interruption that kept the lexer from being finished, if the budget ran out or it was called
    /// off.
    pub fn interrupted(&self) -> Option<Interrupted> {
        match *self.0 {
            Kind::Interrupted(interrupted) => Some(interrupted),
            _ => None,
        }
    }

    /// Variant of the error where the budget is that of one step.
    pub(super) fn or_step(self, max_step_work: u64) -> Self {
        match self.interrupted() {
            Some(_) => Kind::Step(max_step_work).into(),
            None => self,
        }
    }
}

// Its message is in the lexer's own, and so it is no source of that.
impl From<Exceeded> for Kind {
    fn from(exceeded: Exceeded) -> Self {
        Self::Exceeded(exceeded)
    }
}

impl<K: Into<Kind>> From<K> for LexerError {
    fn from(kind: K) -> Self {
        let kind = kind.into();
        // However deep it was met, it says nothing of the terminal at hand.
        Self(Box::new(match kind {
            Kind::Exceeded(Exceeded::Interrupted(interrupted))
            | Kind::Terminal {
                why: CompileErrorKind::Exceeded(Exceeded::Interrupted(interrupted)),
                ..
            } => Kind::Interrupted(interrupted),
            kind => kind,
        }))
    }
}
