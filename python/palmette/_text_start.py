"""The boundary between prompt and text, seen from outside, for loops that do not say where it is."""

from __future__ import annotations

import threading

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]


class WatchedLoop:
    """Where the text begins in the rows that a decoding loop shows call by call.

    The first call shows the prompt. A later call is the same loop's if it has the same prompts and each of its rows, but for its
    last token, is a row of the call before or the beginning of one (a rollback). Anything else, and any other thread, is an
    error: it may be another prompt, and which it is cannot be told.
    """

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self.reset()

    def reset(self) -> None:
        """Forgets the prompt: the next call shows another."""
        self._prompt: Rows | None = None
        self._last: Rows = np.zeros((0, 0), np.int64)
        self._thread = 0

    def text(self, rows: Rows) -> Rows:
        """The tokens behind the prompt, int64 [rows, tokens]."""
        if self._prompt is None:
            self._prompt, self._thread = rows.copy(), threading.get_ident()
        if self._thread != threading.get_ident():
            raise self.error("it is called by two threads")
        length = self._prompt.shape[1]
        if len(rows) != len(self._prompt):
            raise self.error(f"it was called with {len(self._prompt)} rows, and now with {len(rows)}")
        if rows.shape[1] < length or not np.array_equal(rows[:, :length], self._prompt):
            raise self.error(f"the rows do not begin with the prompt of {length} tokens that its first call showed")
        text = rows[:, length:]
        self._check_continues(text)
        self._last = text.copy()
        return text

    def _check_continues(self, text: Rows) -> None:
        known = text[:, : max(text.shape[1] - 1, 0)]
        shown = {row.tobytes() for row in np.ascontiguousarray(self._last[:, : known.shape[1]])}
        if known.shape[1] and not all(row.tobytes() in shown for row in np.ascontiguousarray(known)):
            raise self.error(f"a row with {text.shape[1]} tokens after the prompt goes on from none of the call before")

    def error(self, what: str) -> ValueError:
        """The error of a call that may belong to another text."""
        return ValueError(
            f"this {self._owner} follows one text, and {what}: make one a request, call reset() between texts, "
            "or give prompt_length="
        )
