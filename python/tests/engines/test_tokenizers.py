"""Text cut by a tokenizer of transformers: other threads go on meanwhile."""

from __future__ import annotations

import threading
import time

import pytest

pytest.importorskip("transformers", reason="transformers is not installed: its tokenizers are not tried")

import palmette  # noqa: E402
from unzipped import small_tokenizer  # noqa: E402


def test_the_interpreter_is_free_while_text_is_cut() -> None:
    tokenizer = small_tokenizer()
    vocabulary = palmette.Vocabulary.from_tokenizer(tokenizer)
    text = 'true, false, 12 and {"more": [1, 2, 3]}. ' * 20_000
    gaps, stop = [0.0], threading.Event()

    def tick() -> None:
        last = time.monotonic()
        while not stop.is_set():
            time.sleep(0.001)
            gaps.append(time.monotonic() - last)
            last = time.monotonic()

    ticking = threading.Thread(target=tick)
    ticking.start()
    begun = time.monotonic()
    tokens = vocabulary.encode(text)
    took = time.monotonic() - begun
    stop.set()
    ticking.join()
    assert tokens == tokenizer.encode(text, add_special_tokens=False)
    assert took < 0.1 or max(gaps) < took / 2, (took, max(gaps))
