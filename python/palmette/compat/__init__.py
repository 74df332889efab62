"""Names of other packages over Palmette's classes, so that a program changes by one import.

| instead of | import |
|---|---|
| `import xgrammar` | `from palmette.compat import xgrammar` |
| `import llguidance` | `from palmette.compat import llguidance` |

What these packages do and Palmette does not raises `NotImplementedError` with the reason; nothing is left out in silence.
"""

from __future__ import annotations

import importlib
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    if name in ("llguidance", "xgrammar"):
        return importlib.import_module(f"palmette.compat.{name}")
    raise AttributeError(f"module 'palmette.compat' has no attribute {name!r}")
