//! Tokens that spell the codes of catalogs, for slots of semantic IDs.

use std::sync::Arc;

use palmette_catalog::CodeTokens;
use palmette_catalog_live::CatalogView;
use palmette_core::Constraint;
use palmette_grammar::{GrammarConstraint, SlotKind};

use crate::bindings::Bindings;
use crate::error::BindingError;

impl Bindings {
    /// Gives the tokens by which a model spells the codes of a name's catalog, for grammars that
    /// name its `codes`. They matter to no other grammar, so a surface gives them with each
    /// catalog that the model has tokens for.
    #[must_use]
    pub fn code_tokens(
        mut self,
        name: impl Into<String>,
        tokens: impl Into<Arc<CodeTokens>>,
    ) -> Self {
        self.code_tokens.insert(name.into(), Ok(tokens.into()));
        self
    }

    /// Says why a model has no tokens for the codes of a name's catalog, for the error of grammars
    /// that name its `codes`.
    #[must_use]
    pub fn no_code_tokens(mut self, name: impl Into<String>, reason: impl Into<String>) -> Self {
        self.code_tokens.insert(name.into(), Err(reason.into()));
        self
    }

    /// Gives the tokens of each name whose `codes` a grammar asks for: what `tokens_of` finds for
    /// its catalog, or the reason why there are none.
    #[must_use]
    pub fn spelled<T: Into<Arc<CodeTokens>>>(
        self,
        grammar: &GrammarConstraint,
        tokens_of: impl Fn(&CatalogView) -> Result<T, String>,
    ) -> Self {
        let slots = grammar.slots().iter().filter(|slot| slot.kind == SlotKind::Codes);
        slots.fold(self, |bindings, slot| match bindings.view_of(&slot.name).map(&tokens_of) {
            None => bindings,
            Some(Ok(tokens)) => bindings.code_tokens(&*slot.name, tokens),
            Some(Err(reason)) => bindings.no_code_tokens(&*slot.name, reason),
        })
    }

    /// The view of the catalog that a name is bound to, whose codes tokens may spell.
    fn view_of(&self, name: &str) -> Option<&CatalogView> {
        self.sources.get(name)?.fields()?.view()
    }

    /// Refuses tokens that the grammar's vocabulary does not have.
    pub(crate) fn check_code_tokens(
        &self,
        grammar: &GrammarConstraint,
    ) -> Result<(), BindingError> {
        let num_tokens = grammar.num_tokens();
        for slot in grammar.slots().iter().filter(|slot| slot.kind == SlotKind::Codes) {
            let tokens = self.code_tokens.get(&slot.name).and_then(|tokens| tokens.as_ref().ok());
            let tokens = tokens.map_or(0, |tokens| tokens.num_tokens());
            if tokens > num_tokens {
                let slot = slot.label();
                return Err(BindingError::OtherVocabulary { slot, tokens, num_tokens });
            }
        }
        Ok(())
    }
}
