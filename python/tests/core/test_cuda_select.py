"""Levels of beam search by kernels, over an emulated device: what the definition finds, and what torch's tables find, to the bit."""

import itertools

import numpy as np
import pytest
from catalogs import shop
from test_cuda import back, emulated, libraries, to

import palmette

cuda = pytest.importorskip("palmette.cuda", reason="this build has no kernels for devices", exc_type=ImportError)
pytestmark = emulated


def tables_of(library, source):
    return cuda.device_tables(source, "cpu" if library == "torch" else None)


def selected(trie, log_probs, beams, width):
    """The definition: all continuations that there are, by score, then beam, then token."""
    found = []
    for beam, (prefix, score) in enumerate(beams):
        for token in sorted(trie.get(prefix, ())):
            total = np.float32(score) + np.float32(log_probs[beam, token])
            if total > -np.inf:
                found.append((-total, beam, token))
    return [(beam, token, -total) for total, beam, token in sorted(found)[:width]]


def searched(library, tables, tries, num_tokens, widths, rng, filter=None, values=None):
    """A search level by level beside the definition; the tokens and scores of the last."""
    requests = len(tries)
    beams = tables.start(requests, widths)
    want = [[((), np.float32(0))] for _ in tries]
    for level in range(tables.num_levels):
        rows = beams.scores.shape[1]
        log_probs = rng.normal(size=(requests * rows, num_tokens)).astype(np.float32) - 3
        if values is not None:
            log_probs = rng.choice(np.array(values, np.float32), (requests * rows, num_tokens))
        beams = cuda.select(to(library, log_probs), beams, tables, filter, is_log_probs=True)
        assert beams.level == level + 1
        tokens, scores, parents = back(beams.tokens), back(beams.scores), back(beams.parents)
        assert tokens.dtype == parents.dtype == np.int64 and scores.dtype == np.float32
        assert (back(beams.bad_rows) == 0).all() and (back(beams.valid) == (scores > -np.inf)).all()
        for request in range(requests):
            of_request = log_probs[request * rows : (request + 1) * rows]
            found = selected(tries[request], of_request, want[request], widths[level])
            count = len(found)
            want[request] = [((*want[request][beam][0], token), total) for beam, token, total in found]
            assert parents[request, :count].tolist() == [beam for beam, _, _ in found]
            assert tokens[request, :count].tolist() == [list(prefix) for prefix, _ in want[request]]
            assert scores[request, :count].tolist() == [total for _, _, total in found]
            assert (scores[request, count:] == -np.inf).all()
            assert not tokens[request, count:].any() and not parents[request, count:].any()
    return want


# A filter's brand and bound of the price, by request; None: all items.
FILTERS = [(None,), (("ash", 50.0),), (("ash", 90.0), None, ("cedar", 0.0))]


@libraries
@pytest.mark.parametrize("filters", FILTERS, ids=["all", "one", "a request each"])
@pytest.mark.parametrize("values", [None, [-1.0, -2.0], [-1.0], [3.0, -1.0, 0.5], [-0.5, -np.inf, np.nan, -0.0, 0.0]], ids=["all differ", "ties", "equal", "rising", "none"])
def test_levels_are_those_of_the_definition(library, filters, values):
    rng = np.random.default_rng(len(filters))
    for seed, (items, levels, size) in enumerate([(60, 3, 6), (300, 2, 33), (1, 4, 3)]):
        made = shop(seed, items, levels, size, tables=False)
        tables = tables_of(library, made.constraint())
        conditions = [each and made.matching(*each) for each in filters]
        asked = [each and each[0] for each in conditions]
        filter = None if asked == [None] else tables.filter(*asked)
        requests = 3
        tries = [made.trie(conditions[n % len(conditions)] and conditions[n % len(conditions)][1]) for n in range(requests)]
        for widths in ([5, 9, 4, 7][:levels], [70] * levels):
            searched(library, tables, tries, made.num_tokens, widths, rng, filter, values)


@libraries
def test_filters_in_all_their_forms_are_one(library):
    made = shop(5, 80, 3, 6, tables=False)
    condition, allowed = made.matching("birch", 70.0)
    constraint = made.constraint()
    tables = tables_of(library, constraint)
    of_filtered = tables_of(library, constraint.filtered(condition))
    forms = [condition, palmette.Filter(condition), made.catalog.filter(condition), constraint.filtered(condition)]
    found = [
        searched(library, tables, [made.trie(allowed)], made.num_tokens, [8] * 3, np.random.default_rng(1), tables.filter(form))
        for form in forms
    ]
    found.append(searched(library, of_filtered, [made.trie(allowed)], made.num_tokens, [8] * 3, np.random.default_rng(1)))
    # Of a constraint's own items those that a filter has too; none are added.
    under = of_filtered.filter(made.catalog.filter({"must": [{"range": {"price": {"lt": 30}}}]}))
    both = {item for item, price in zip(made.ids, made.prices) if item in allowed and price < 30}
    searched(library, of_filtered, [made.trie(both)], made.num_tokens, [8] * 3, np.random.default_rng(1), under)
    assert all(one == found[0] for one in found)


@libraries
def test_a_live_catalog_is_searched_as_it_was_and_shares_what_stays(library, tmp_path):
    rng = np.random.default_rng(8)
    made = shop(7, 120, 3, 8, tables=False)
    tokens = [(3 + level * 8, 8) for level in range(3)]
    live = palmette.LiveCatalog.create(tmp_path / "live", made.catalog)
    before = tables_of(library, live.snapshot().constraint(tokens, made.num_tokens))
    live.apply([{"delete": "item3"}, {"delete": "item4"}, {"id": "new", "codes": [7, 7, 7], "brand": "ash", "price": 1.0}])
    moment = live.snapshot()
    now = before.refreshed(moment.constraint(tokens, made.num_tokens))
    assert now.generation == moment.generation > before.generation
    searched(library, before, [made.trie()], made.num_tokens, [11, 11, 30], rng)
    left = set(made.ids) - {"item3", "item4"}
    trie = made.trie(left)
    new = made.spelled([7, 7, 7])
    for level, token in enumerate(new):
        trie.setdefault(new[:level], set()).add(token)
    searched(library, now, [trie, trie], made.num_tokens, [11, 11, 30], rng)
    cheap = {item for item, price in zip(made.ids, made.prices) if price < 40 and item in left}
    trie = made.trie(cheap)
    for level, token in enumerate(new):
        trie.setdefault(new[:level], set()).add(token)
    searched(library, now, [trie], made.num_tokens, [20] * 3, rng, now.filter({"must": [{"range": {"price": {"lt": 40}}}]}))
    live.close()


@libraries
def test_logits_are_normalised_over_all_tokens_and_codes_of_a_catalog_are_tokens(library):
    rng = np.random.default_rng(4)
    made = shop(3, 200, 3, 16)
    tables = tables_of(library, made.catalog)
    given = []

    def logits(level, tokens, parents):
        rows = 2 if tokens is None else len(tokens)
        assert (tokens is None) == (parents is None) == (level == 0)
        assert tokens is None or tuple(parents.shape) == (2, rows // 2)
        given.append(rng.normal(size=(rows, 40)).astype(np.float32) * 4)
        return to(library, given[-1])

    beams = cuda.decode(logits, tables, 2, [7, 9, 12])
    of_codes = {}
    for codes, level in itertools.product(made.codes, range(3)):
        of_codes.setdefault(tuple(codes[:level]), set()).add(codes[level])
    for request in range(2):
        want = [((), 0.0)]
        for level, width in enumerate([7, 9, 12]):
            rows = given[level].reshape(2, -1, 40)[request].astype(np.float64)
            log_probs = rows - np.log(np.exp(rows).sum(axis=1, keepdims=True))
            found = sorted(
                ((score + log_probs[beam, token], (*prefix, token)) for beam, (prefix, score) in enumerate(want) for token in of_codes[prefix]),
                reverse=True,
            )
            want = [(prefix, score) for score, prefix in found[:width]]
        assert back(beams.tokens)[request].tolist() == [list(prefix) for prefix, _ in want]
        assert np.allclose(back(beams.scores)[request], [score for _, score in want], atol=1e-4)


def test_torch_tables_choose_the_same_to_the_bit():
    torch = pytest.importorskip("torch")
    from palmette.torch_tables import device_tables
    from palmette.torch_tables import select as select_by_gathers

    rng = np.random.default_rng(6)
    for seed, (items, levels, size) in enumerate([(500, 3, 12), (2000, 2, 64), (40, 4, 5)]):
        made = shop(seed, items, levels, size, tables=False)
        constraint = made.constraint()
        filtered = [constraint.filtered(made.matching("ash", bound)[0]) for bound in (80.0, 10.0)]
        by_kernels, by_gathers = cuda.device_tables(constraint, "cpu"), device_tables(constraint, "cpu")
        for filters, values in itertools.product([None, filtered, filtered[:1]], [None, [-1.0, -2.0, -np.inf]]):
            of_kernels = None if filters is None else by_kernels.filter(*filters)
            of_gathers = None if filters is None else by_gathers.edge_masks(*filters)
            beams = by_kernels.start(2, [13] * levels)
            nodes, scores = by_gathers.start(2), torch.zeros(2, 1)
            for level in range(levels):
                shape = (2 * beams.scores.shape[1], made.num_tokens)
                log_probs = torch.from_numpy(rng.normal(size=shape).astype(np.float32))
                if values is not None:
                    log_probs = torch.from_numpy(rng.choice(np.array(values, np.float32), shape))
                beams = cuda.select(log_probs, beams, by_kernels, of_kernels, is_log_probs=True)
                parents, tokens, nodes, scores = select_by_gathers(by_gathers, level, log_probs, nodes, scores, 13, of_gathers)
                assert torch.equal(beams.scores.view(torch.int32), scores.view(torch.int32))
                there = beams.valid
                assert torch.equal(beams.parents[there], parents[there])
                assert torch.equal(beams.tokens[..., -1][there], tokens[there])


@libraries
def test_rows_that_are_no_distribution_have_no_continuation_and_are_counted(library):
    made = shop(2, 50, 2, 8, tables=False)
    tables = tables_of(library, made.constraint())
    logits = np.zeros((2, made.num_tokens), np.float32)
    logits[1, 0] = np.nan
    beams = cuda.select(to(library, logits), tables.start(2, [3, 3]), tables)
    assert back(beams.bad_rows).tolist() == [0, 1]
    assert back(beams.valid).tolist() == [[True] * 3, [False] * 3]
    beams = cuda.select(to(library, np.zeros((6, made.num_tokens), np.float32)), beams, tables)
    assert back(beams.valid).any(axis=1).tolist() == [True, False]


@libraries
def test_what_kernels_do_not_search_is_refused_by_name(library):
    made = shop(1, 40, 2, 8, tables=False)
    tables = tables_of(library, made.constraint())
    logits = to(library, np.zeros((3, made.num_tokens), np.float32))
    start = tables.start(3, [4, 4])

    def refuses(error, pattern, logits=logits, beams=start, filter=None):
        with pytest.raises(error, match=pattern):
            cuda.select(logits, beams, tables, filter)

    refuses(TypeError, "logits has elements of type .*float64; give float32, such as logits.float", to(library, np.zeros((3, 99))))
    refuses(ValueError, r"logits has the shape \(2, \d+\); give \(3, \d+\), a row for each beam of each request", logits[:2])
    refuses(ValueError, "logits does not lie in one piece; give a contiguous one", to(library, np.zeros((3, 2 * made.num_tokens), np.float32))[:, ::2])
    refuses(ValueError, r"logits are a matrix", logits[0])
    refuses(ValueError, "columns of logits: 10; the kernels search a column for each code", to(library, np.zeros((3, 10), np.float32)))
    refuses(TypeError, r"filter is a dict; tables.filter\(…\) puts filters on the device", filter={"must": []})
    refuses(ValueError, "filters: 2; the kernels search with one filter for all requests, or one a request", filter=tables.filter(None, None))
    refuses(ValueError, "filters of other tables", filter=tables_of(library, made.constraint()).filter(None))
    refuses(ValueError, "beam width: 5000; the kernels search 1 to 4,096 beams", beams=tables.start(3, 5000))
    whole = cuda.select(to(library, np.zeros((12, made.num_tokens), np.float32)), cuda.select(logits, start, tables), tables)
    refuses(ValueError, "the beams are whole: all 2 levels were searched; tables.start begins another search", beams=whole)
    refuses(ValueError, r"positions has the shape|scores has the shape|states has the shape", to(library, np.zeros((12, 99), np.float32)), cuda.Beams(whole.tokens[:, :, :1], whole.scores, whole.parents, (4, 4), whole.positions[:2], whole.states))
    with pytest.raises(ValueError, match="beam widths .* give one number from 1, or one a level"):
        tables.start(3, [1, 2, 3])
    with pytest.raises(ValueError, match="no filters: give one for all requests"):
        tables.filter()
    with pytest.raises(ValueError, match="of another catalog"):
        tables.filter(shop(2).constraint())
    with pytest.raises(TypeError, match="tables are made of a Catalog or a CatalogConstraint, not of a str"):
        tables_of(library, "shop")
    with pytest.raises(ValueError, match="the tokens of level 0 are no run"):
        tables_of(library, shop(1).constraint())
    ragged = palmette.Catalog.build([[1, 2], [3]], ids=["a", "b"])
    with pytest.raises(ValueError, match='item "b" has 1 codes of 2'):
        tables_of(library, ragged)
    assert cuda.select(logits[:0], tables.start(0, 2), tables).scores.shape == (0, 2)
