"""vLLM: structured outputs by Palmette's grammars, and items of a catalog by a logits processor.

**Grammars.** Installed beside vLLM, the package adds an entry point that does nothing until it is asked to, because a
server should not change on installation. Set `PALMETTE_VLLM_BACKEND` and start vLLM as ever:

    PALMETTE_VLLM_BACKEND=xgrammar vllm serve MODEL

The value names the backend of vLLM's closed list that Palmette takes the place of: `xgrammar` (what `auto`, the default,
tries first), `guidance` (with `--structured-outputs-config '{"backend": "guidance"}'`), or both with a comma. Requests
do not change. The check in front of the engine is replaced too, so that all that Palmette can enforce is accepted, and
what it cannot is refused before the request runs. A text is whole within its request's tokens, or the request is refused with the
number that it takes; `"vllm_xargs": {"palmette_finish": "cut"}` lets a text break off.

**Catalogs.** `--logits-processors palmette.vllm:CatalogLogitsProcessor`, see there.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from palmette.vllm.backend import PalmetteBackend, PalmetteGrammar
    from palmette.vllm.catalogs import CatalogLogitsProcessor

__all__ = ["ENVIRONMENT", "CatalogLogitsProcessor", "PalmetteBackend", "PalmetteGrammar", "register"]

ENVIRONMENT = "PALMETTE_VLLM_BACKEND"
"""Environment variable that names the backends of vLLM that Palmette takes the place of."""


def register() -> None:
    """Entry point of the group `vllm.general_plugins`: takes the place of the backends that the environment names.

    Raises ValueError for a name that is not `guidance` or `xgrammar`; vLLM then does not start.
    """
    names = [name.strip() for name in os.environ.get(ENVIRONMENT, "").split(",") if name.strip()]
    if names:
        # Only then: every process of every vLLM beside this package comes here.
        from palmette.vllm.backend import replace

        replace(names)


def __getattr__(name: str) -> Any:
    if name in ("PalmetteBackend", "PalmetteGrammar"):
        from palmette.vllm import backend

        return getattr(backend, name)
    if name == "CatalogLogitsProcessor":
        from palmette.vllm.catalogs import CatalogLogitsProcessor

        return CatalogLogitsProcessor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
