//! What can go wrong when a lexer is made or used.

use crate::regex::expressions::{CompileErrorKind, Exceeded};

/// Why a lexer cannot be made, or cannot go on.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct LexerError(Box<Kind>);

#[derive(Debug, thiserror::Error)]
pub(super) enum Kind {
    #[error(
        "terminal {name} matches the empty text, and a lexeme cannot be empty; make what uses it optional instead"
    )]
    EmptyTerminal { name: String },
    #[error("terminal {name}: {source}")]
    Terminal { name: String, source: CompileErrorKind },
    #[error("the lexer: {0}")]
    Exceeded(#[from] Exceeded),
    #[error("the lexer has more than max_states = {0} states; raise it or simplify the terminals")]
    States(usize),
}

impl LexerError {
    /// Whether a limit of [`LexerLimits`](super::LexerLimits) is exceeded.
    pub fn is_limit_exceeded(&self) -> bool {
        match &*self.0 {
            Kind::Exceeded(_) | Kind::States(_) => true,
            Kind::Terminal { source, .. } => {
                matches!(source, CompileErrorKind::Exceeded(_) | CompileErrorKind::Deep(_))
            }
            Kind::EmptyTerminal { .. } => false,
        }
    }
}

impl<K: Into<Kind>> From<K> for LexerError {
    fn from(kind: K) -> Self {
        Self(Box::new(kind.into()))
    }
}
