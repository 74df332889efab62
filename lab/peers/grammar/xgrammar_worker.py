"""XGrammar over the cases that `palmette bench grammar` measures: a JSON line for each (worker.py)."""

import torch
import xgrammar

import worker


class XGrammar:
    def __init__(self, tokens, end):
        torch.set_num_threads(1)
        info = xgrammar.TokenizerInfo(tokens, vocab_type=xgrammar.VocabType.RAW, vocab_size=len(tokens), stop_token_ids=[end])
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self.mask = xgrammar.allocate_token_bitmask(1, len(tokens))

    def compile(self, schema):
        # strict_mode would close objects and arrays that the schema leaves open.
        return self.compiler.compile_json_schema(schema, strict_mode=False)

    def size(self, compiled):
        return compiled.memory_size_bytes

    def start(self, compiled):
        self.matcher = xgrammar.GrammarMatcher(compiled)

    def fill(self):
        self.matcher.fill_next_token_bitmask(self.mask)

    def allows(self, token):
        return bool(int(self.mask[0, token // 32]) >> (token % 32) & 1)

    def commit(self, token):
        return self.matcher.accept_token(token)


if __name__ == "__main__":
    worker.main(XGrammar, __doc__)
