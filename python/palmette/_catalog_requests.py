"""Catalogs that requests of serving engines name: the argument of a request, the sets it asks for, tables of them on a device.

The file that `PALMETTE_CATALOGS` names says which catalogs there are (`palmette.catalogs`), and with `code_tokens` how a model spells
their codes: a list with an entry a level, which is the name of a code's token with `{}` for the code, or `[first, num]` for `num`
tokens in a row, or the list of the codes' tokens.

A request's argument is an object, or its text:

| key | means |
|---|---|
| `catalog` | name of the catalog; may be left out where there is one |
| `filter` | condition that items have to meet |
| `exclude` | ids of items that are not wanted |

and what else the engine takes, with its own meaning.
"""

from __future__ import annotations

import functools
import json
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import palmette
from palmette.catalogs import ENVIRONMENT, settings

if TYPE_CHECKING:
    import torch

    from palmette.torch_live import LiveDeviceTables
    from palmette.torch_tables import EdgeMasks, Tables

ARGUMENT = "palmette"
"""Name of the request's argument."""

KEYS = ("catalog", "filter", "exclude")
"""Keys that every engine takes."""


@dataclass(frozen=True)
class Wish:
    """A request's argument, read but not yet resolved."""

    catalog: str
    filter: str | None
    start: int | None = None


def read_argument(argument: Any, more_keys: tuple[str, ...] = ()) -> Wish | None:
    """Argument of a request, or None if it has none. `more_keys`: those of the engine; `start` is one.

    Raises ValueError that says what is wrong with it.
    """
    keys = KEYS + more_keys
    if argument is None:
        return None
    if isinstance(argument, str):
        try:
            argument = json.loads(argument)
        except json.JSONDecodeError as error:
            raise ValueError(f"the argument {ARGUMENT!r} is not JSON: {error}") from None
    if not isinstance(argument, dict):
        raise ValueError(f"the argument {ARGUMENT!r} is an object with {', '.join(keys)}, not {argument!r:.100}")
    for key in argument:
        if key not in keys:
            raise ValueError(f"the argument {ARGUMENT!r} has {key!r}; it may have {', '.join(keys)}")
    start = argument.get("start")
    if start is not None and (not isinstance(start, int) or isinstance(start, bool) or start < 0):
        raise ValueError(f"'start' is the position of the first code, a number from 0 on, not {start!r:.100}")
    return Wish(catalogs().name(argument.get("catalog")), _condition(argument), start)


def _condition(argument: dict) -> str | None:
    """Filter of a request with what it excludes, as one text, which is what sets are cached by."""
    condition, exclude = argument.get("filter"), argument.get("exclude") or []
    if isinstance(condition, str):
        try:
            condition = json.loads(condition)
        except json.JSONDecodeError as error:
            raise ValueError(f"'filter' is not JSON: {error}") from None
    if not isinstance(exclude, list) or not all(isinstance(one, str) for one in exclude):
        raise ValueError(f"'exclude' is a list of ids, not {exclude!r:.100}")
    if exclude:
        condition = {"must": [] if condition is None else [condition], "exclude": exclude}
    return None if condition is None else json.dumps(condition, sort_keys=True)


@dataclass(frozen=True)
class DeviceItems:
    """The items of one request on a device: the catalog's tables as they were when it began, and which edges lead to its items.

    `masks` is None where all items are meant. `num_tokens` is one more than the greatest token of a code.
    """

    tables: Tables
    masks: EdgeMasks | None
    num_tokens: int


class Entry:
    """A catalog with the tokens that spell its codes, and the sets that requests lately asked for."""

    MAX_SETS = 256
    MAX_MASK_BYTES = 256 << 20
    """Bytes of all edge masks that are kept on a device."""

    def __init__(self, name: str, settings: dict) -> None:
        self._name = name
        self._spelling = settings["code_tokens"]
        self._reader = palmette.LiveReader.open(settings["live"]) if "live" in settings else None
        if self._reader is not None:
            self._newest = self._reader.snapshot
        else:
            catalog = palmette.Catalog.open(settings["path"])
            self._newest = lambda: catalog
        self._catalog: Any = None
        self._tables: dict[str, tuple[Any, Any]] = {}
        self._masks: OrderedDict[tuple[str, int | None, str], EdgeMasks] = OrderedDict()
        # The number of each item's semantic ID in the tables; of a live catalog each segment has its own.
        self._leaves: np.ndarray | None = None
        self._tokens: list | None = None
        self._sets: OrderedDict[str, Any] = OrderedDict()
        self._constraints: OrderedDict[str | None, palmette.CatalogConstraint] = OrderedDict()

    def _refresh(self) -> None:
        newest = self._newest()
        if self._catalog is None or newest.generation != self._catalog.generation:
            self._catalog = newest
            self._sets.clear()
            self._constraints.clear()

    def items(self, condition: str) -> palmette.ItemSet:
        """Items that meet a condition.

        Raises ValueError if the condition is wrong, or if none does.
        """
        self._refresh()
        return _kept(self._sets, condition, self.MAX_SETS, lambda: self._matching(self._catalog, condition))

    def _matching(self, catalog: palmette.Catalog, condition: str) -> palmette.ItemSet:
        found = catalog.filter(json.loads(condition))
        if not len(found):
            raise ValueError(f"no item of the catalog {self._name!r} meets {condition:.200}")
        return found

    def constraint(self, condition: str | None, tokenizer: Callable[[], Any]) -> palmette.CatalogConstraint:
        """Constraint of the items that meet a condition; `tokenizer` is called only where tokens are named."""
        self._refresh()
        if condition is None:
            return _kept(self._constraints, None, self.MAX_SETS, lambda: self._spelled(tokenizer))
        items = self.items(condition)
        whole = self.constraint(None, tokenizer)
        return _kept(self._constraints, condition, self.MAX_SETS, lambda: whole.filtered(items))

    @property
    def is_live(self) -> bool:
        """Whether its items come and go while it is read."""
        return self._reader is not None

    def on_device(self, condition: str | None, tokenizer: Callable[[], Any], device: torch.device | str) -> DeviceItems:
        """The items that meet a condition, on a device, as the catalog is now.

        The first call builds the tables; of a live catalog later ones upload what changed. Raises ValueError as `items` does, and for
        items of several lengths.
        """
        place = str(device)
        tables, whole = self._on_device(tokenizer, place)
        if condition is None:
            return DeviceItems(tables, None, whole.num_tokens)
        key = (place, whole.catalog.generation, condition)
        if key not in self._masks:
            items = self._matching(whole.catalog, condition)
            self._masks[key] = (
                tables.edge_masks_of_items(_numbers(items))
                if self._leaves is None
                else tables.edge_masks_of_leaves(self._leaves[_numbers(items)])
            )
            while len(self._masks) > 1 and self._mask_bytes() > self.MAX_MASK_BYTES:
                self._masks.popitem(last=False)
        self._masks.move_to_end(key)
        return DeviceItems(tables, self._masks[key], whole.num_tokens)

    def _on_device(self, tokenizer: Callable[[], Any], place: str) -> tuple[Any, Any]:
        """The newest tables, and the constraint of all their items."""
        from palmette.torch_live import LiveDeviceTables
        from palmette.torch_tables import device_tables

        whole = self.constraint(None, tokenizer)
        if self._reader is None:
            if place not in self._tables:
                self._tables[place] = device_tables(whole, place), whole
                if self._leaves is None:
                    codes = whole.catalog.codes()
                    columns = [tokens[codes[:, level]] for level, tokens in enumerate(whole.code_tokens)]
                    self._leaves = self._tables[place][0].host.leaves_of(np.stack(columns, axis=1))
            return self._tables[place]
        if place not in self._tables:
            self._tables[place] = LiveDeviceTables(self._reader, place, code_tokens=self._tokens), None
        live: LiveDeviceTables = self._tables[place][0]
        now = live.refresh()
        return now, now.constraint

    def _mask_bytes(self) -> int:
        return sum(level.nbytes for masks in self._masks.values() for level in masks)

    def _spelled(self, tokenizer: Callable[[], Any]) -> palmette.CatalogConstraint:
        if self._tokens is None:
            sizes = self._catalog.codes_per_level
            if len(self._spelling) != len(sizes):
                raise ValueError(
                    f"catalog {self._name!r} has {len(sizes)} levels, and 'code_tokens' {len(self._spelling)}: give an entry a level"
                )
            self._tokens = [_level_tokens(one, num, tokenizer) for one, num in zip(self._spelling, sizes)]
        return self._catalog.constraint(self._tokens)


def _numbers(items: palmette.ItemSet) -> np.ndarray:
    """Numbers of a set's items, as its pickle has them."""
    _, (_, numbers) = items.__reduce__()
    return numbers


def _kept(kept: OrderedDict, key: Any, limit: int, make: Callable[[], Any]) -> Any:
    """Value of a key, made where it is not kept; the least lately used goes."""
    if key not in kept:
        kept[key] = make()
        if len(kept) > limit:
            kept.popitem(last=False)
    kept.move_to_end(key)
    return kept[key]


def _level_tokens(spelled: Any, num_codes: int, tokenizer: Callable[[], Any]) -> Any:
    """Tokens of a level's codes: `(first, num)`, or one a code, -1 for a code that has none."""
    if isinstance(spelled, str):
        words = tokenizer().get_vocab()
        return np.array([words.get(spelled.format(code), -1) for code in range(num_codes)], np.int32)
    return tuple(spelled) if len(spelled) == 2 and num_codes != 2 else np.array(spelled, np.int32)


class Catalogs:
    """Catalogs of this process, by name; each is opened when a request first asks for it."""

    def __init__(self, entries: dict[str, dict]) -> None:
        # The others are for grammars alone.
        self._settings = {name: one for name, one in entries.items() if "code_tokens" in one}
        if not self._settings:
            raise ValueError(f"no catalog of {ENVIRONMENT} has 'code_tokens', by which a model spells its items; there are {', '.join(entries)}")
        self._entries: dict[str, Entry] = {}

    def name(self, asked: Any) -> str:
        """Name of the catalog that a request means.

        Raises ValueError if there is none of that name.
        """
        known = ", ".join(sorted(self._settings))
        if asked is None:
            if len(self._settings) != 1:
                raise ValueError(f"'catalog' says which catalog is meant: one of {known}")
            return next(iter(self._settings))
        if not isinstance(asked, str) or asked not in self._settings:
            raise ValueError(f"there is no catalog {asked!r:.100}; there are {known}")
        return asked

    def entry(self, name: str) -> Entry:
        if name not in self._entries:
            self._entries[name] = Entry(name, self._settings[name])
        return self._entries[name]


@functools.cache
def catalogs() -> Catalogs:
    """Catalogs that the environment names.

    Raises ValueError if it names none.
    """
    entries = settings()
    if not entries:
        raise ValueError(f"this server has no catalogs: set {ENVIRONMENT} to a file that names them")
    return Catalogs(entries)
