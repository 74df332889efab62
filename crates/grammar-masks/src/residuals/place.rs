//! Places within tokens, at which lexemes begin.

use palmette_grammar_parser::recognizer::ContextId;
use palmette_grammar_regex::expressions::ExprId;

use super::Residuals;
use super::layer_states::LayerId;
use super::lexemes::LexemeId;
use super::node_answer::QuerySubject;
use super::residual_id::ResidualId;
use super::suffix_trie::SuffixId;
use super::token_effect::Exceptions;
use crate::TerminalId;

/// The exceptions of one of the tries of suffixes after a residual.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ExceptionsId {
    pub(super) residual: ResidualId,
    /// A number into the tries of suffixes.
    pub(super) suffixes: u32,
}

impl Residuals {
    /// The exceptions.
    pub(super) fn except(&self, id: ExceptionsId) -> &Exceptions {
        let effect = self.residual(id.residual).effect.get().expect("where they were found");
        effect.suffixes[id.suffixes as usize].except.as_ref().expect("it has some")
    }
}

/// A place in a trie of suffixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    pub(super) suffix: SuffixId,
    /// Tokens that do not count.
    pub(super) except: Option<ExceptionsId>,
    /// Condition that earlier lexemes put on the text from here.
    pub(super) condition: ExprId,
    /// Residual of a lexeme that comes first; only before the first byte of tokens.
    pub(super) before: Option<LexemeId>,
    /// The context of the lexeme that begins here, where there are contexts and reductions have
    /// begun that wait for the lexeme; else that of the topmost state.
    pub(super) context: Option<ContextId>,
    /// State of the layer between lexer and parser.
    pub(super) layer: LayerId,
    /// Terminal of the lexeme before it, if that was dropped and two of them in a row are always
    /// one, so that it need not begin again.
    pub(super) follows: Option<TerminalId>,
}

impl Place {
    /// Place before the first byte of all tokens.
    pub(super) const FRONT: Self = Self {
        suffix: SuffixId::WHOLE,
        except: None,
        condition: ExprId::ALL,
        before: None,
        context: None,
        layer: LayerId::NONE,
        follows: None,
    };

    pub(super) fn is_front(self) -> bool {
        self.suffix == SuffixId::WHOLE
    }

    pub(super) fn asked(self) -> QuerySubject {
        if self.is_front() { QuerySubject::Front } else { QuerySubject::Within }
    }

    pub(super) fn at(self, suffix: SuffixId) -> Self {
        Self { suffix, ..self }
    }

    /// Place at which a lexeme has ended that puts a condition on the text from here.
    pub(super) fn after_lexeme(self, suffix: SuffixId, condition: ExprId) -> Self {
        Self { suffix, condition, before: None, context: None, ..self }
    }
}
