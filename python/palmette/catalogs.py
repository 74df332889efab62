"""Catalogs of the process by the names that grammars call them.

Engines whose requests carry a schema and nothing else (vLLM, SGLang) take the sets of its names from here: a request is written
with the catalog as it is when it begins, and filters stand in the schema
(`"x-catalog": {"name": "shop", "filter": {…}}`). Register them before the first request, in the process that compiles grammars:

    palmette.catalogs.register("shop", palmette.LiveReader.open("shop/live"))

or name a file in the environment, `PALMETTE_CATALOGS=catalogs.json`, that says which there are:

    {"shop": {"live": "shop/live"}, "icd": {"path": "icd.palm"}}

`path` is the file of a catalog or lexicon, `live` the directory of a live catalog. What else an entry has is for others
(`palmette.vllm.catalogs`).
"""

from __future__ import annotations

import functools
import json
import os
import threading
from typing import Any, TypeAlias

from palmette._palmette import (
    Catalog,
    CompiledGrammar,
    ItemSet,
    Lexicon,
    LiveCatalog,
    LiveReader,
    Substrings,
)

__all__ = ["ENVIRONMENT", "Source", "bound", "names", "register", "settings", "unregister"]

ENVIRONMENT = "PALMETTE_CATALOGS"
"""Environment variable with the path of the file that says which catalogs there are."""

Source: TypeAlias = Catalog | ItemSet | LiveCatalog | LiveReader | Lexicon | Substrings | list[str]
"""What a name may stand for."""

_LOCK = threading.Lock()
_REGISTERED: dict[str, Source] = {}
_OPENED: dict[tuple[str, str], Source] = {}


def register(name: str, source: Source) -> None:
    """Gives a name its set, in place of the one that it had and of one that the environment names.

    A live catalog is taken as it is when a request begins.
    """
    if not name:
        raise ValueError("a catalog needs a name")
    with _LOCK:
        _REGISTERED[name] = source


def unregister(name: str) -> None:
    """Lets go of the set that was registered for a name; KeyError where there is none."""
    with _LOCK:
        del _REGISTERED[name]


def names() -> list[str]:
    """The names that stand for something, ascending."""
    with _LOCK:
        return sorted({*_REGISTERED, *settings()})


def settings() -> dict[str, dict[str, Any]]:
    """Entries of the file that the environment names, by name; empty where it names none.

    ValueError for an entry without `path` or `live`, or with both.
    """
    path = os.environ.get(ENVIRONMENT)
    return _settings_of(path) if path else {}


@functools.cache
def _settings_of(path: str) -> dict[str, dict[str, Any]]:
    with open(path, encoding="utf-8") as file:
        entries = json.load(file)
    for name, one in entries.items():
        if not isinstance(one, dict) or ("path" in one) == ("live" in one):
            raise ValueError(f"catalog {name!r} needs 'path' or 'live'; it has {one!r:.200}")
    return entries


def bound(compiled: CompiledGrammar) -> CompiledGrammar:
    """The grammar with the registered sets under its names; itself where it has none.

    GrammarError for a name that nothing is registered for, or where no text is left.
    """
    wanted = compiled.names
    if not wanted:
        return compiled
    sources = {name: source for name in wanted if (source := _find(name)) is not None}
    return compiled.bind(**sources)


def _find(name: str) -> Source | None:
    with _LOCK:
        if name in _REGISTERED:
            return _REGISTERED[name]
        entry = settings().get(name)
        if entry is None:
            return None
        key = ("live", entry["live"]) if "live" in entry else ("path", entry["path"])
        if key not in _OPENED:
            _OPENED[key] = LiveReader.open(key[1]) if key[0] == "live" else _open_file(key[1])
        return _OPENED[key]


def _open_file(path: str) -> Source:
    with open(path, "rb") as file:
        magic = file.read(8)
    return Lexicon.open(path) if magic.startswith(b"PALMLEX") else Catalog.open(path)
