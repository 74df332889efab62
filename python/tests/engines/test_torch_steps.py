"""Level steps kept by shape: replayed, compiled, bounded, and done without where they fail."""

from __future__ import annotations

import logging
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: level steps are untested")

import palmette  # noqa: E402
from palmette import torch_steps  # noqa: E402
from palmette.torch_steps import LevelSteps  # noqa: E402
from palmette.torch_tables import DeviceBeams, DeviceTables, decode, device_tables  # noqa: E402
from reference import DEVICE  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)
    torch_steps._say_once.cache_clear()


class Recorder:
    """What a graph does, by running the step again: it reads its inputs' places and writes its outputs' places."""

    def __init__(self) -> None:
        self.captured = self.replayed = 0

    def __call__(self, step: Callable[[], Any]) -> tuple[Any, Callable[[], None]]:
        self.captured += 1
        outputs = step()

        def replay() -> None:
            self.replayed += 1
            for place, found in zip(outputs, step(), strict=True):
                place.copy_(found)

        return outputs, replay


def make_tables(steps: LevelSteps | str) -> tuple[Any, DeviceTables]:
    codes = np.random.default_rng(1).integers(0, 12, size=(300, 3))
    constraint = palmette.Catalog.build(codes).constraint([(1, 12), (13, 12), (25, 12)])
    return constraint, device_tables(constraint, DEVICE, steps=steps)


def searched(tables: DeviceTables, seed: int, requests: int, width: int, masks: Any = None) -> DeviceBeams:
    generator = torch.Generator().manual_seed(seed)

    def logits(level: int, tokens: Any, parents: Any) -> torch.Tensor:
        rows = requests if tokens is None else len(tokens)
        return torch.randn((rows, 37), generator=generator).to(DEVICE)

    return decode(logits, tables, requests, width, masks)


def check_same(ours: DeviceBeams, theirs: DeviceBeams) -> None:
    assert torch.equal(ours.valid, theirs.valid)
    for name in ("tokens", "scores", "semantic_ids"):
        assert torch.equal(getattr(ours, name)[ours.valid], getattr(theirs, name)[theirs.valid])


def test_replayed_steps_choose_what_plain_ones_choose() -> None:
    recorder = Recorder()
    constraint, captured = make_tables(LevelSteps("graph", recorder=recorder))
    _, plain = make_tables("plain")
    few = constraint.filtered(constraint.catalog.items_with_ids(constraint.catalog.ids()[::9]))
    for inference in (True, False, True):
        with torch.inference_mode(inference):
            for seed in range(4):
                for filtered in ((), (few,), (few, None)):
                    masks = [each.edge_masks(*filtered) if filtered else None for each in (captured, plain)]
                    for requests, width in ((2, 5), (2, 30)):
                        check_same(
                            searched(captured, seed, requests, width, masks[0]),
                            searched(plain, seed, requests, width, masks[1]),
                        )
    # A shape is captured once: three kinds of masks, two widths, three levels.
    assert recorder.captured == len(captured.steps) == 18 and recorder.replayed == 3 * 4 * 18


def test_kept_shapes_are_bounded(monkeypatch: Any) -> None:
    recorder = Recorder()
    _, tables = make_tables(LevelSteps("graph", max_shapes=4, recorder=recorder))
    for width in (3, 5, 3, 5, 3):
        searched(tables, 1, 1, width)
        assert len(tables.steps) <= 4
    # Three levels of two widths do not fit, so that each search captures again.
    assert recorder.captured > 6
    monkeypatch.setattr(torch_steps, "MAX_INPUT_BYTES", 3000)
    searched(tables, 1, 1, 9)
    assert tables.steps._nbytes() <= 3000


def test_inputs_that_are_too_large_run_as_they_are_and_are_said_once(
    monkeypatch: Any, caplog: Any
) -> None:
    recorder = Recorder()
    _, tables = make_tables(LevelSteps("graph", recorder=recorder))
    monkeypatch.setattr(torch_steps, "MAX_INPUT_BYTES", 500)
    for _ in range(3):
        check_same(searched(tables, 1, 1, 4), searched(make_tables("plain")[1], 1, 1, 4))
    assert recorder.captured == 1, "the first level's logits are small"
    assert len(caplog.records) == 1 and "at most 500 are copied" in caplog.text
    assert tables.steps.failure is None


@pytest.mark.parametrize("mode", ["graph", "compile"])
def test_a_failure_is_named_once_and_done_without(mode: str, monkeypatch: Any, caplog: Any) -> None:
    def fails(*_: Any) -> Any:
        raise RuntimeError("no such driver\nmore lines")

    monkeypatch.setattr(torch_steps, "compiled", fails)
    _, tables = make_tables(LevelSteps(mode, recorder=fails))
    _, plain = make_tables("plain")
    with caplog.at_level(logging.WARNING):
        for seed in range(3):
            check_same(searched(tables, seed, 2, 7), searched(plain, seed, 2, 7))
    assert len(caplog.records) == 1
    assert f"mode '{mode}': RuntimeError: no such driver" in caplog.text and "more lines" not in caplog.text
    assert tables.steps.failure == "RuntimeError: no such driver" and len(tables.steps) == 0


def test_a_step_that_is_wrong_itself_raises_what_is_its_own() -> None:
    steps = LevelSteps("graph", recorder=Recorder())

    def step(given: torch.Tensor) -> Any:
        raise ValueError("its own")

    with pytest.raises(ValueError, match="its own"):
        steps.run("key", step, torch.zeros(2))


@pytest.mark.skipif(DEVICE != "cpu", reason="graphs are captured there")
def test_graphs_that_are_asked_for_without_a_device_are_done_without(caplog: Any) -> None:
    _, tables = make_tables("graph")
    for seed in range(2):
        check_same(searched(tables, seed, 1, 4), searched(make_tables("plain")[1], seed, 1, 4))
    assert tables.steps.failure and len(caplog.records) == 1 and "mode 'graph'" in caplog.text


def test_graphs_are_for_devices_alone() -> None:
    _, tables = make_tables("auto")
    searched(tables, 1, 1, 4)
    assert len(tables.steps) == (0 if DEVICE == "cpu" else 3) and tables.steps.failure is None


def test_steps_of_many_shapes_compile(monkeypatch: Any) -> None:
    """By the compiler's front alone: each shape is one code object, so that none falls back."""
    whole = torch.compile
    monkeypatch.setattr(torch, "compile", lambda step, **more: whole(step, **more, backend="eager"))
    _, tables = make_tables("compile")
    _, plain = make_tables("plain")
    torch._dynamo.reset()
    for width in range(3, 16):
        check_same(searched(tables, width, 1, width), searched(plain, width, 1, width))
    assert tables.steps.failure is None and len(tables.steps) == 39


def test_threads_share_captured_steps() -> None:
    recorder = Recorder()
    _, tables = make_tables(LevelSteps("graph", recorder=recorder))
    _, plain = make_tables("plain")
    problems: list[BaseException] = []

    def run(seed: int) -> None:
        try:
            for more in range(5):
                check_same(searched(tables, seed + more, 2, 9), searched(plain, seed + more, 2, 9))
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=run, args=(10 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems and recorder.captured == 3


def test_wrong_settings_are_named() -> None:
    with pytest.raises(ValueError, match="'fast'; it is one of 'auto', 'plain', 'graph', 'compile'"):
        make_tables("fast")
    with pytest.raises(ValueError, match="max_shapes is 0"):
        LevelSteps(max_shapes=0)


def test_tables_are_pickled_without_what_was_captured() -> None:
    _, tables = make_tables(LevelSteps("graph", 7, recorder=Recorder()))
    searched(tables, 1, 1, 4)
    again = pickle.loads(pickle.dumps(tables.steps))
    assert (again.mode, again.max_shapes, len(again)) == ("graph", 7, 0)
