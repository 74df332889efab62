"""Kernels on callers' arrays, over an emulated device whose memory is host memory; with torch's tensors too, where torch is."""

import importlib.util

import numpy as np
import pytest

import palmette

cuda = pytest.importorskip("palmette.cuda", reason="this build has no kernels for devices", exc_type=ImportError)

emulated = pytest.mark.skipif(
    not cuda.CudaDevice.IS_EMULATED, reason="this build has no emulated device (feature cuda-emulator)"
)
LIBRARIES = ["numpy", *(["torch"] if importlib.util.find_spec("torch") else [])]
libraries = pytest.mark.parametrize("library", LIBRARIES)


def to(library, array):
    """An array of NumPy in a library."""
    if library == "numpy":
        return array
    import torch

    return torch.from_numpy(array)


def back(array):
    return array if isinstance(array, np.ndarray) else array.detach().numpy()


def masked(logits, bitmask, pairs):
    """The plain definition: of each row, what its mask allows stays."""
    want = logits.copy()
    bits = np.unpackbits(bitmask.view(np.uint8), axis=1, bitorder="little").astype(bool)
    allowed = np.zeros((len(bitmask), logits.shape[1]), bool)
    columns = min(bits.shape[1], logits.shape[1])
    allowed[:, :columns] = bits[:, :columns]
    for row, mask in pairs:
        want[row, ~allowed[mask]] = -np.inf
    return want


def random_masks(rng, rows, words):
    bitmask = rng.integers(-(2**31), 2**31, (rows, words)).astype(np.int32)
    bitmask[rng.random((rows, words)) < 0.3] = 0
    bitmask[rng.random((rows, words)) < 0.3] = -1
    return bitmask


@emulated
@libraries
@pytest.mark.parametrize("rows, tokens, words", [(1, 1, 1), (3, 32, 1), (4, 333, 11), (5, 2100, 60), (2, 70, 9)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_masks_are_those_of_the_processor(library, rows, tokens, words, dtype):
    rng = np.random.default_rng(rows)
    logits = rng.normal(size=(rows, tokens)).astype(dtype)
    bitmask = random_masks(rng, rows, words)
    want = masked(logits, bitmask, [(row, row) for row in range(rows)])
    on_processor = palmette.numpy.apply_bitmask_(logits.copy(), bitmask)
    assert want.tobytes() == on_processor.tobytes()
    given = to(library, logits.copy())
    assert cuda.apply_bitmask(given, to(library, bitmask)) is given
    assert back(given).tobytes() == want.tobytes()


@emulated
@libraries
def test_rows_are_numbers_or_a_tensor_and_what_lies_between_rows_stays(library):
    rng = np.random.default_rng(1)
    whole = rng.normal(size=(6, 100)).astype(np.float32)
    masks = random_masks(rng, 6, 5)
    chosen = [4, 0, 4]
    want = whole.copy()
    want[:, 3:93] = masked(whole[:, 3:93], masks[:, 1:4].copy(), [(row, row) for row in chosen])
    for rows in (chosen, to(library, np.array([4, 9, 0, -1, 6], np.int32))):
        given = to(library, whole.copy())
        cuda.apply_bitmask(given[:, 3:93], to(library, masks)[:, 1:4], rows)
        assert back(given).tobytes() == want.tobytes()
    # Without rows there is nothing to do.
    cuda.apply_bitmask(to(library, whole[:0]), to(library, masks[:0]))
    # One row of both.
    given = to(library, whole[2].copy())
    cuda.apply_bitmask(given, to(library, masks[2].copy()))
    assert back(given).tobytes() == masked(whole, masks, [(2, 2)])[2].tobytes()


@emulated
def test_bfloat16_of_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(2)
    logits, masks = rng.normal(size=(3, 75)).astype(np.float32), random_masks(rng, 3, 2)
    given = torch.from_numpy(logits).to(torch.bfloat16)
    want = palmette.torch.apply_bitmask_(given.clone(), torch.from_numpy(masks))
    # A parameter's memory is that of its values.
    cuda.apply_bitmask(torch.nn.Parameter(given), torch.from_numpy(masks))
    assert torch.equal(given.view(torch.int16), want.view(torch.int16))


def dictionary_of(library, *arguments):
    return cuda.MaskDictionary(*arguments, device="cpu" if library == "torch" else None)


@emulated
@libraries
def test_masks_by_number_are_those_that_matchers_fill(library, vocabulary, schema):
    """Along random texts of two grammars, beside rows without one; under room for few masks all are dropped now and then."""
    rng = np.random.default_rng(3)
    other = palmette.Grammar.from_regex("(ab|c)*x").compile(vocabulary)
    width = vocabulary.num_tokens + 40
    for capacity in (1000, 4):
        dictionary = dictionary_of(library, width, capacity)
        matchers = [schema.matcher(), other.matcher(), None, schema.matcher(), other.matcher(ends=[5])]
        out = to(library, np.full(7, 9, np.int32))
        distinct = set()
        for _ in range(12):
            bitmask = np.zeros((len(matchers), dictionary.words.shape[1]), np.int32)
            palmette.fill_masks(matchers, bitmask)
            logits = rng.normal(size=(len(matchers), width)).astype(np.float32)
            want = masked(logits, bitmask, [(row, row) for row in (0, 1, 3, 4)])
            given, ids = to(library, logits.copy()), dictionary.ids(matchers)
            assert cuda.bitmask_by_id(given, dictionary, ids) is given
            assert back(given).tobytes() == want.tobytes()
            assert dictionary.ids(matchers, out) is out
            assert back(out).tolist() == [*back(ids).tolist(), -1, -1] and back(out)[2] == -1
            distinct |= {row.tobytes() for row in bitmask[[0, 1, 3, 4]]}
            for row in (0, 1, 3, 4):
                allowed = np.flatnonzero(np.unpackbits(bitmask[row].view(np.uint8), bitorder="little"))
                if len(allowed):
                    matchers[row].commit(int(rng.choice(allowed)))
                else:
                    matchers[row].reset()
        assert len(dictionary) <= capacity
        assert dictionary.generation > 0 if capacity == 4 else len(dictionary) == len(distinct) and dictionary.generation == 0


@emulated
@libraries
def test_numbers_that_no_mask_has_allow_nothing_and_what_is_no_number_is_refused(library, vocabulary, schema):
    width = vocabulary.num_tokens
    dictionary = dictionary_of(library, width, 2)
    logits = to(library, np.zeros((3, width), np.float32))
    cuda.bitmask_by_id(logits, dictionary, to(library, np.array([2, -5, 2**31 - 1], np.int32)))
    assert (back(logits)[[0, 2]] == -np.inf).all() and (back(logits)[1] == 0).all()
    with pytest.raises(ValueError, match=r"ids has the shape \(2,\); give \(3,\), a mask for each row"):
        cuda.bitmask_by_id(logits, dictionary, to(library, np.zeros(2, np.int32)))
    with pytest.raises(TypeError, match="ids has elements of type .*int64; give int32"):
        cuda.bitmask_by_id(logits, dictionary, to(library, np.zeros(3, np.int64)))
    with pytest.raises(TypeError, match="matcher 1 is a str; give a Matcher, or None"):
        dictionary.ids([schema.matcher(), "a"])
    with pytest.raises(ValueError, match=r"out has the shape \(1,\), and there are 2 sequences"):
        dictionary.ids([None, None], to(library, np.zeros(1, np.int32)))
    with pytest.raises(ValueError, match="row 0: a mask over .* tokens takes 2 words, and those here have 1"):
        dictionary_of(library, 32).ids([schema.matcher()])
    with pytest.raises(ValueError, match="0 masks of 1 words"):
        dictionary_of(library, 5, 0)
    one, two, three = (schema.matcher() for _ in range(3))
    two.commit_bytes(b"{")
    three.commit_bytes(b'{"a":')
    with pytest.raises(palmette.LimitExceeded, match="more than 2 distinct masks") as raised:
        dictionary.ids([one, two, three])
    assert raised.value.limit == "capacity"
    assert back(dictionary.ids([two, one, two])).tolist() == [0, 1, 0]


@emulated
@libraries
def test_what_kernels_do_not_take_is_refused_by_name(library):
    logits, masks = np.zeros((3, 64), np.float32), np.zeros((3, 2), np.int32)

    def refuses(error, pattern, logits=logits, masks=masks, rows=None):
        before = np.array(logits, copy=True)
        with pytest.raises(error, match=pattern):
            cuda.apply_bitmask(to(library, logits), masks if isinstance(masks, list) else to(library, masks), rows)
        assert logits.tobytes() == before.tobytes()

    refuses(TypeError, r"logits has elements of type .*float64; give float32, float16 or bfloat16", logits.astype(np.float64))
    refuses(TypeError, r"bitmask has elements of type .*int64; give int32 words", masks=masks.astype(np.int64))
    refuses(ValueError, r"logits have 3 rows and the bitmask has 2; give as many of both", masks=masks[:2])
    refuses(IndexError, r"row 3 of logits and a bitmask with 3 in common", rows=[0, 3])
    refuses(IndexError, r"row -1 of logits", rows=[-1])
    refuses(TypeError, r"rows has elements of type .*int64; give int32", rows=to(library, np.array([1])))
    refuses(ValueError, r"rows have 2 dimensions|give a list", rows=to(library, np.array([[1]], np.int32)))
    refuses(ValueError, r"rows does not lie in one piece", rows=to(library, np.zeros(4, np.int32))[::2])
    refuses(ValueError, r"the rows of logits, of shape \(3, 32\), do not lie in one piece", logits=logits[:, ::2])
    refuses(ValueError, r"logits has the shape \(3, 4, 5\); give a matrix", logits=np.zeros((3, 4, 5), np.float32))
    refuses(TypeError, "bitmask is a list; give a ", masks=[[1, 2]])
    with pytest.raises(TypeError, match="logits are a list; give a torch tensor on a CUDA device"):
        cuda.apply_bitmask([1.0], masks)
    if library == "numpy":
        read_only = logits.copy()
        read_only.flags.writeable = False
        with pytest.raises(ValueError, match="logits is read-only"):
            cuda.apply_bitmask(read_only, masks)
    else:
        import torch

        with pytest.raises(ValueError, match="bitmask is on meta, the logits are on cpu; give both on one device"):
            cuda.apply_bitmask(torch.zeros(3, 64), torch.zeros(3, 2, dtype=torch.int32, device="meta"))


@emulated
def test_there_is_one_emulated_device():
    assert cuda.device() is cuda.device(0) and cuda.device().index == 0
    assert cuda.device().name == "emulated Hopper" and cuda.device().capability == (9, 0)
    with pytest.raises(palmette.cuda.DeviceError, match="there is no cuda:1: the driver knows 1 devices"):
        cuda.device(1)


@pytest.mark.skipif(cuda.CudaDevice.IS_EMULATED, reason="the device is emulated")
def test_a_machine_without_a_driver_is_told_so_and_host_memory_is_refused():
    try:
        assert cuda.device().index == 0
    except cuda.DeviceError as error:
        assert "no NVIDIA driver found: libcuda.so.1 is missing" in str(error) or "cuda:0" in str(error)
    with pytest.raises(ValueError, match="the array is in host memory, and palmette.cuda computes on CUDA devices; palmette.numpy"):
        cuda.apply_bitmask(np.zeros((1, 4), np.float32), np.zeros((1, 1), np.int32))


@pytest.mark.skipif(cuda.CudaDevice.IS_EMULATED, reason="the device is emulated")
def test_tables_and_dictionaries_name_a_driver_that_is_missing():
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a device")
    for make in (lambda: cuda.MaskDictionary(100), lambda: cuda.device_tables(palmette.Catalog.build([[1, 2]]), "cuda:0")):
        with pytest.raises((cuda.DeviceError, RuntimeError), match="no NVIDIA driver found: libcuda.so.1 is missing|Torch not compiled"):
            make()
