//! `glrmask` over the cases that `palmette bench grammar` measures.

use anyhow::anyhow;
use grammar_peer_cases::cases::Kind;
use grammar_peer_cases::{Compiled, Engine, Walk};

fn main() -> anyhow::Result<()> {
    grammar_peer_cases::main(|vocabulary| {
        let tokens = vocabulary.tokens.iter().enumerate();
        let tokens = tokens.filter_map(|(id, token)| Some((id as u32, token.clone()?)));
        let words = vocabulary.tokens.len().div_ceil(32);
        Ok(Box::new(Glrmask {
            vocabulary: glrmask::Vocab::new(tokens.collect::<Vec<_>>()),
            end: vocabulary.end,
            words,
        }) as Box<dyn Engine>)
    })
}

struct Glrmask {
    vocabulary: glrmask::Vocab,
    end: u32,
    words: usize,
}

impl Engine for Glrmask {
    fn end(&self) -> u32 {
        self.end
    }

    fn compile(&self, kind: Kind, grammar: &str) -> anyhow::Result<Box<dyn Compiled + '_>> {
        let grammar = match kind {
            Kind::JsonSchema => glrmask::Grammar::from_json_schema(grammar),
            Kind::Lark => glrmask::Grammar::from_lark(grammar),
        };
        let constraint = grammar
            .and_then(|grammar| grammar.compile(&self.vocabulary))
            .map_err(|error| anyhow!("{error}"))?;
        Ok(Box::new(GlrmaskCompiled { constraint, end: self.end, words: self.words }))
    }
}

struct GlrmaskCompiled {
    constraint: glrmask::Constraint,
    end: u32,
    words: usize,
}

impl Compiled for GlrmaskCompiled {
    fn start(&self) -> Box<dyn Walk + '_> {
        let words = self.words.max(self.constraint.mask_len());
        Box::new(GlrmaskWalk { state: self.constraint.start(), mask: vec![u32::MAX; words], end: self.end })
    }
}

struct GlrmaskWalk<'c> {
    state: glrmask::ConstraintState<'c>,
    mask: Vec<u32>,
    end: u32,
}

impl Walk for GlrmaskWalk<'_> {
    fn allows(&mut self, token: u32) -> bool {
        if token == self.end {
            return self.state.is_accepting();
        }
        self.state.fill_mask(&mut self.mask);
        self.mask[token as usize / 32] >> (token % 32) & 1 == 1
    }

    fn commit(&mut self, token: u32) -> bool {
        self.state.commit_token(token)
    }
}
