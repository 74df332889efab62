"""Compilation of requests' grammars inside a serving engine, within a budget.

A server reads grammars of strangers. Each is compiled under limits, of which `steps` bounds the time: a step is a piece of work of some to
some hundred nanoseconds, and since steps are counted and no clock is read, all ranks of a server refuse the same grammars. A grammar beyond them is refused to
its request, with the limit and the variable that raises it.

| variable | means |
|---|---|
| `PALMETTE_COMPILE_LIMITS` | limits as JSON (`palmette.types.Limits`) beside or in place of those below: `{"steps": 1000000000}` |
| `PALMETTE_GRAMMAR_CACHE` | folder through which the processes of a machine share masks of grammars; none unless it is set |

Each process compiles a grammar for itself, since all ranks need it and none would be sooner for another's; what masks take to find out
beyond that is found by one of them (`palmette.Compiler`). Whoever can write the folder decides what masks allow, so none is chosen unasked.
"""

from __future__ import annotations

import json
import logging
import os
from typing import TYPE_CHECKING, cast

from palmette._palmette import CompiledGrammar, Compiler, Grammar, LimitExceeded, Vocabulary

if TYPE_CHECKING:
    from palmette.types import Limits

logger = logging.getLogger(__name__)

LIMITS_ENVIRONMENT = "PALMETTE_COMPILE_LIMITS"
"""Environment variable with the limits of requests' grammars."""

FOLDER_ENVIRONMENT = "PALMETTE_GRAMMAR_CACHE"
"""Environment variable with the folder of masks that processes share."""

REQUEST_LIMITS: Limits = {"steps": 100_000_000}
"""Limits of a request's grammar, unless the environment says otherwise: seconds of work, where most grammars take milliseconds."""

CACHE_BYTES = 1 << 30
"""Memory of the grammars that a compiler keeps."""


def compile_limits() -> Limits:
    """Limits of requests' grammars: those of this module, with what the environment says.

    Raises ValueError for a text that is no object of whole numbers; names are checked where they are used.
    """
    text = os.environ.get(LIMITS_ENVIRONMENT)
    if not text:
        return cast("Limits", dict(REQUEST_LIMITS))
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{LIMITS_ENVIRONMENT} is not JSON: {error}") from None
    is_sound = isinstance(found, dict) and all(type(value) is int and value >= 0 for value in found.values())
    if not is_sound:
        raise ValueError(f'{LIMITS_ENVIRONMENT} is an object of whole numbers, such as {{"steps": 1000000000}}, not {text:.200}')
    return cast("Limits", REQUEST_LIMITS | found)


def checked(grammar: Grammar, limits: Limits) -> None:
    """Reads a grammar under limits, without compiling it.

    Raises ValueError: GrammarError for one that is wrong, LimitExceeded for one that takes too much.
    """
    try:
        grammar.check(limits=limits)
    except LimitExceeded as error:
        raise with_way_out(error, limits) from error


def with_way_out(error: LimitExceeded, limits: Limits) -> LimitExceeded:
    """The error of a request's grammar that exceeds a limit, with what raises it."""
    raised = LimitExceeded(
        f"{error}; a request's grammar is compiled within {json.dumps(limits)}: make it smaller, or start the server with greater "
        f"limits ({LIMITS_ENVIRONMENT})"
    )
    raised.limit = error.limit
    return raised


class RequestCompiler:
    """Compiler of one engine's requests over one vocabulary. Threads share it.

    A folder that cannot be used is logged, and masks are then not shared. Raises ValueError for limits that there are not; the
    engine then does not start.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.limits = compile_limits()
        folder = os.environ.get(FOLDER_ENVIRONMENT) or None
        try:
            self._compiler = Compiler(vocabulary, cache_bytes=CACHE_BYTES, limits=self.limits, folder=folder)
        except OSError as error:
            logger.warning("%s=%s: %s; masks are not shared between processes", FOLDER_ENVIRONMENT, folder, error)
            self._compiler = Compiler(vocabulary, cache_bytes=CACHE_BYTES, limits=self.limits)

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary."""
        return self._compiler.vocabulary

    def compile(self, grammar: Grammar) -> CompiledGrammar:
        """The grammar, compiled once as long as it is kept.

        Raises ValueError, of which LimitExceeded says how limits are raised.
        """
        try:
            return self._compiler.compile(grammar)
        except LimitExceeded as error:
            raise with_way_out(error, self.limits) from error
        finally:
            for report in self._compiler.take_reports():
                logger.warning("%s", report)
