//! `outlines-core` over the cases that `palmette bench grammar` measures.

use anyhow::bail;
use grammar_peer_cases::cases::Kind;
use grammar_peer_cases::{Compiled, Engine, Walk};
use outlines_core::index::Index;
use outlines_core::json_schema;
use outlines_core::primitives::StateId;
use outlines_core::vocabulary::Vocabulary;

fn main() -> anyhow::Result<()> {
    grammar_peer_cases::main(|vocabulary| {
        let mut tokens = Vocabulary::new(vocabulary.end);
        for (id, token) in vocabulary.tokens.iter().enumerate() {
            if let Some(token) = token {
                tokens.try_insert(token.clone(), id as u32)?;
            }
        }
        let words = vocabulary.tokens.len().div_ceil(32);
        Ok(Box::new(Outlines { vocabulary: tokens, end: vocabulary.end, words }) as Box<dyn Engine>)
    })
}

struct Outlines {
    vocabulary: Vocabulary,
    end: u32,
    words: usize,
}

impl Engine for Outlines {
    fn end(&self) -> u32 {
        self.end
    }

    fn compile(&self, kind: Kind, grammar: &str) -> anyhow::Result<Box<dyn Compiled + '_>> {
        if kind != Kind::JsonSchema {
            bail!("only JSON Schema is read: a Lark grammar is no regular expression");
        }
        let regex = json_schema::regex_from_str(grammar, None, None)?;
        let index = Index::new(&regex, &self.vocabulary)?;
        Ok(Box::new(OutlinesCompiled { index, end: self.end, words: self.words }))
    }
}

struct OutlinesCompiled {
    index: Index,
    end: u32,
    words: usize,
}

impl Compiled for OutlinesCompiled {
    fn start(&self) -> Box<dyn Walk + '_> {
        let state = self.index.initial_state();
        Box::new(OutlinesWalk { index: &self.index, end: self.end, state, mask: vec![0; self.words] })
    }
}

struct OutlinesWalk<'i> {
    index: &'i Index,
    end: u32,
    state: StateId,
    mask: Vec<u32>,
}

impl Walk for OutlinesWalk<'_> {
    fn allows(&mut self, token: u32) -> bool {
        self.mask.fill(0);
        for &token in self.index.allowed_tokens_iter(&self.state).into_iter().flatten() {
            self.mask[token as usize / 32] |= 1 << (token % 32);
        }
        self.mask[token as usize / 32] >> (token % 32) & 1 == 1
    }

    fn commit(&mut self, token: u32) -> bool {
        debug_assert_ne!(token, self.end);
        match self.index.next_state(&self.state, &token) {
            Some(state) => {
                self.state = state;
                true
            }
            None => false,
        }
    }
}
