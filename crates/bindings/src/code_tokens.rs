//! Tokens that spell the codes of catalogs, for slots of semantic IDs.

use std::sync::Arc;

use palmette_catalog::{CodeTokens, Filter};
use palmette_catalog_members::{CatalogFields, CodeSet};
use palmette_core::Constraint;
use palmette_grammar::{GrammarConstraint, Slot, SlotKind};

use crate::error::BindingError;
use crate::sources::{Bindings, slot_filter};

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
        self.code_tokens.insert(name.into(), tokens.into());
        self
    }

    /// The semantic IDs of a slot's items under its own filter and the request's.
    pub(crate) fn code_set(
        &self,
        slot: &Slot,
        fields: &CatalogFields,
        given: Option<&Filter>,
    ) -> Result<CodeSet, BindingError> {
        let unspelled =
            || BindingError::NoCodeTokens { slot: slot.label(), name: slot.name.clone() };
        let tokens = self.code_tokens.get(&slot.name).ok_or_else(unspelled)?;
        let filter = slot_filter(given, slot)?;
        fields.codes(filter.as_ref(), tokens).map_err(|error| {
            let error = Box::new(error);
            BindingError::Field { slot: slot.label(), name: slot.name.clone(), error }
        })
    }

    /// Refuses tokens that the grammar's vocabulary does not have.
    pub(crate) fn check_code_tokens(
        &self,
        grammar: &GrammarConstraint,
    ) -> Result<(), BindingError> {
        let num_tokens = grammar.num_tokens();
        for slot in grammar.slots().iter().filter(|slot| slot.kind == SlotKind::Codes) {
            let tokens = self.code_tokens.get(&slot.name).map_or(0, |tokens| tokens.num_tokens());
            if tokens > num_tokens {
                let slot = slot.label();
                return Err(BindingError::OtherVocabulary { slot, tokens, num_tokens });
            }
        }
        Ok(())
    }
}
