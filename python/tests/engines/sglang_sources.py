"""SGLang's coordinator of beam searches where SGLang's kernels are not: of what it imports, three modules need them.

Of those, the reasons why requests end are SGLang's own source; the rest are names that the coordinator passes on.
"""

from __future__ import annotations

import ast
import importlib
import sys
import types
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

import sglang
import torch

SOURCES = Path(sglang.__path__[0]) / "srt"


def of_source(file: str, names: tuple[str, ...], **known: Any) -> dict[str, Any]:
    """Functions and classes of SGLang's by name, out of a file that imports kernels."""
    tree = ast.parse((SOURCES / file).read_text())
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in names]
    assert [node.name for node in found] == [name for name in sorted(names, key=[node.name for node in found].index)]
    space = {"torch": torch, "__name__": f"sources of {file}"} | known
    exec(compile(ast.Module(found, []), file, "exec"), space)
    return {name: space[name] for name in names}


class RelayPayload(NamedTuple):
    """The tokens that a step relays to the next."""

    bonus_tokens: torch.Tensor


def coordinator() -> Any:
    """The module `sglang.srt.beam_search.coordinator`."""
    name = "sglang.srt.beam_search.coordinator"
    try:
        return importlib.import_module(name)
    except (ImportError, RuntimeError, AttributeError):
        pass
    reasons = ("BaseFinishReason", "FINISH_MATCHED_TOKEN", "FINISH_LENGTH", "FINISH_ABORT")
    from typing import List, Optional, Union

    known = {"List": List, "Optional": Optional, "Union": Union, "HTTPStatus": HTTPStatus, "Any": Any}
    members = {
        "sglang.srt.layers.dp_attention": {"is_dp_attention_enabled": lambda: False},
        "sglang.srt.managers.overlap_utils": {"FutureMap": object, "RelayPayload": RelayPayload},
        "sglang.srt.managers.schedule_batch": of_source("managers/schedule_batch.py", reasons, **known)
        | {"Req": object, "ScheduleBatch": object},
    }
    for module, names in members.items():
        sys.modules[module] = types.ModuleType(module)
        vars(sys.modules[module]).update(names)
    return importlib.import_module(name)
