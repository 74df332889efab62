"""MaskForge over the cases that `palmette bench grammar` measures: a JSON line for each (worker.py)."""

from maskforge import _native

import worker


class MaskForge:
    def __init__(self, tokens, end):
        # A token without bytes of its own is none to a text.
        decoded = [token or None for token in tokens]
        decoded[end] = None
        vocabulary = _native.PyVocabulary.from_id_ordered_tokens(decoded, end, len(tokens))
        self.vocabulary = _native.CompiledVocabulary.from_vocabulary(vocabulary)
        self.mask = bytearray(4 * ((self.vocabulary.mask_vocab_size() + 31) // 32))

    def compile(self, schema):
        # A cache of its own for each, as the others have none.
        return _native.Compiler.without_cache().compile_json_schema(schema).bind(self.vocabulary)

    def size(self, compiled):
        return None

    def start(self, compiled):
        self.session = compiled.start_session()

    def fill(self):
        self.session.write_mask(self.mask)

    def allows(self, token):
        return bool(self.mask[token // 8] >> (token % 8) & 1)

    def commit(self, token):
        self.session.advance(token)
        return True


if __name__ == "__main__":
    worker.main(MaskForge, __doc__)
