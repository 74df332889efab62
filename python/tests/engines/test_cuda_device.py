"""`palmette.cuda` on a CUDA device: streams, captured graphs, and the beams of torch's tables. `tests/core` has all else, emulated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import palmette

torch = pytest.importorskip("torch", reason="torch is not installed: kernels are not launched from it")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device: tests/core runs the kernels over an emulated one", allow_module_level=True)
cuda = pytest.importorskip("palmette.cuda", reason="this build has no kernels for devices", exc_type=ImportError)
if cuda.CudaDevice.IS_EMULATED:
    pytest.skip("the device of this build is emulated", allow_module_level=True)

DEVICE = "cuda:0"


def random_masks(rows: int, words: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    masks = rng.integers(-(2**31), 2**31, (rows, words)).astype(np.int32)
    masks[rng.random((rows, words)) < 0.3] = 0
    return torch.from_numpy(masks)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_masks_are_those_of_the_processor_on_any_stream_and_in_graphs(dtype: torch.dtype) -> None:
    logits, masks = torch.randn(17, 4099).to(dtype), random_masks(17, 129, 1)
    want = palmette.torch.apply_bitmask_(logits.clone(), masks)
    on_device, places = masks.to(DEVICE), logits.to(DEVICE)
    assert torch.equal(cuda.apply_bitmask(places.clone(), on_device).cpu(), want)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        given = logits.to(DEVICE, non_blocking=True)
        cuda.apply_bitmask(given, on_device)
        back = given.cpu()
    assert torch.equal(back, want)
    ids = torch.arange(17, dtype=torch.int32, device=DEVICE)
    dictionary = cuda.MaskDictionary(129 * 32, 17, DEVICE)
    dictionary.words.copy_(on_device)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        cuda.bitmask_by_id(places, dictionary, ids)
    for order in (torch.arange(17), torch.arange(16, -1, -1)):
        places.copy_(logits)
        ids.copy_(order)
        graph.replay()
        assert torch.equal(places.cpu(), palmette.torch.apply_bitmask_(logits.clone(), masks[order]))


def test_levels_choose_the_beams_of_torch_tables_in_graphs_too() -> None:
    from palmette.torch_tables import device_tables
    from palmette.torch_tables import select as select_by_gathers

    rng = np.random.default_rng(2)
    codes = rng.integers(0, 300, (20_000, 4))
    brands = [["ash", "birch"][number] for number in rng.integers(0, 2, len(codes))]
    catalog = palmette.Catalog.build(codes, [f"i{number}" for number in range(len(codes))], {"brand": brands})
    constraint = catalog.constraint([(7 + 300 * level, 300) for level in range(4)], 1300)
    ash = {"must": [{"match": {"brand": "ash"}}]}
    by_kernels, by_gathers = cuda.device_tables(constraint, DEVICE), device_tables(constraint, DEVICE)
    for filters in (None, [constraint.filtered(ash)], [constraint.filtered(ash), None, None]):
        of_kernels = None if filters is None else by_kernels.filter(*filters)
        of_gathers = None if filters is None else by_gathers.edge_masks(*filters)
        rows = [torch.randn(3 * (1 if level == 0 else 50), 1300, device=DEVICE) for level in range(4)]
        rows = [torch.log_softmax(each, dim=-1) for each in rows]

        def search() -> list[Any]:
            beams, levels = by_kernels.start(3, 50), []
            for each in rows:
                beams = cuda.select(each, beams, by_kernels, of_kernels, is_log_probs=True)
                levels.append(beams)
            return levels

        plain = search()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            captured = search()
        graph.replay()
        nodes, scores = by_gathers.start(3), torch.zeros(3, 1, device=DEVICE)
        for level, found in enumerate(zip(plain, captured)):
            parents, tokens, nodes, scores = select_by_gathers(by_gathers, level, rows[level], nodes, scores, 50, of_gathers)
            for beams in found:
                there = beams.valid
                assert torch.equal(beams.scores, scores)
                assert torch.equal(beams.parents[there], parents[there])
                assert torch.equal(beams.tokens[..., -1][there], tokens[there])
    logits = [torch.randn(3 * (1 if level == 0 else 50), 1300, device=DEVICE) for level in range(4)]
    normalised = iter(torch.log_softmax(each, dim=-1) for each in logits)
    raw = iter(logits)
    one = cuda.decode(lambda *_: next(raw), by_kernels, 3, 50)
    other = cuda.decode(lambda *_: next(normalised), by_kernels, 3, 50)
    assert torch.allclose(one.scores, other.scores, atol=1e-4)


def test_host_memory_and_other_types_are_refused() -> None:
    logits, masks = torch.zeros(2, 64, device=DEVICE), torch.zeros(2, 2, dtype=torch.int32)
    with pytest.raises(ValueError, match="bitmask is on cpu, the logits are on cuda:0"):
        cuda.apply_bitmask(logits, masks)
    with pytest.raises(ValueError, match="the array is on cpu, and palmette.cuda computes on CUDA devices; palmette.torch"):
        cuda.apply_bitmask(logits.cpu(), masks)
    with pytest.raises(TypeError, match="logits has elements of type torch.float64"):
        cuda.apply_bitmask(logits.double(), masks.to(DEVICE))
    with pytest.raises(TypeError, match="bitmask is a ndarray; give a torch tensor on cuda:0"):
        cuda.apply_bitmask(logits, masks.numpy())
