//! `llguidance` over the cases that `palmette bench grammar` measures.

use std::sync::Arc;

use anyhow::anyhow;
use grammar_peer_cases::cases::Kind;
use grammar_peer_cases::{Compiled, Engine, Walk};
use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie};

fn main() -> anyhow::Result<()> {
    grammar_peer_cases::main(|vocabulary| {
        let words: Vec<Vec<u8>> =
            vocabulary.tokens.iter().map(|token| token.clone().unwrap_or_default()).collect();
        let info = TokRxInfo::new(words.len() as u32, vocabulary.end);
        let env: TokEnv = Arc::new(ApproximateTokEnv::new(TokTrie::from(&info, &words)));
        let mut factory = ParserFactory::new_simple(&env)?;
        factory.quiet();
        Ok(Box::new(Llguidance { factory, end: vocabulary.end }) as Box<dyn Engine>)
    })
}

struct Llguidance {
    factory: ParserFactory,
    end: u32,
}

impl Engine for Llguidance {
    fn end(&self) -> u32 {
        self.end
    }

    fn compile(&self, kind: Kind, grammar: &str) -> anyhow::Result<Box<dyn Compiled + '_>> {
        let grammar = match kind {
            Kind::JsonSchema => TopLevelGrammar::from_json_schema(serde_json::from_str(grammar)?),
            Kind::Lark => TopLevelGrammar::from_lark(grammar.to_owned()),
        };
        let matcher = Matcher::new(self.factory.create_parser(grammar));
        if let Some(error) = matcher.get_error() {
            return Err(anyhow!(error));
        }
        Ok(Box::new(LlguidanceCompiled { matcher }))
    }
}

struct LlguidanceCompiled {
    matcher: Matcher,
}

impl Compiled for LlguidanceCompiled {
    fn start(&self) -> Box<dyn Walk + '_> {
        Box::new(LlguidanceWalk { matcher: self.matcher.deep_clone() })
    }
}

struct LlguidanceWalk {
    matcher: Matcher,
}

impl Walk for LlguidanceWalk {
    fn allows(&mut self, token: u32) -> bool {
        self.matcher.compute_mask_or_eos().is_ok_and(|mask| mask.is_allowed(token))
    }

    fn commit(&mut self, token: u32) -> bool {
        self.matcher.consume_token(token).is_ok()
    }
}

