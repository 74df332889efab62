"""SGLang: grammar backend `palmette`.

Installed beside SGLang, the package registers the backend by SGLang's own plugin group, which adds a choice and changes
nothing else. Ask for it when the server is started:

    python -m sglang.launch_server --model-path MODEL --grammar-backend palmette

Requests with `json_schema`, `regex`, `ebnf` and `structural_tag` work as before. With `--reasoning-parser`, the grammar
begins after the reasoning, as with SGLang's own backends. A text is whole within its request's `max_new_tokens`, or the request is
refused before the first, unless its `custom_params` say `{"palmette_finish": "cut"}`.

**Beam search** over the items of catalogs begins where `PALMETTE_CATALOGS` names them, see `palmette.sglang.beams`.
"""

from __future__ import annotations

import os

from sglang.srt.constrained.base_grammar_backend import register_grammar_backend

from palmette.catalogs import ENVIRONMENT
from palmette.sglang.backend import ANY_JSON, PalmetteBackend, PalmetteGrammar, create_backend

__all__ = ["ANY_JSON", "NAME", "PalmetteBackend", "PalmetteGrammar", "create_backend", "register"]

NAME = "palmette"
"""Name of the backend in `--grammar-backend`."""


def register() -> None:
    """Entry point of the group `sglang.srt.plugins`: adds the choice `palmette` of `--grammar-backend`, and where the environment
    names catalogs, beam search over their items."""
    from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES, add_grammar_backend_choices

    if NAME not in GRAMMAR_BACKEND_CHOICES:
        add_grammar_backend_choices([NAME])
    register_grammar_backend(NAME, create_backend)
    if os.environ.get(ENVIRONMENT):
        # Only then: its hooks are looked up in modules that every process would import.
        from palmette.sglang import beams

        beams.register()
