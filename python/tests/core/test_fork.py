"""Forked children: every public call returns there what it returns in the parent, whatever ran before the fork."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import pickle
import signal
import tempfile
import threading
import time
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import END, PIECES, SCHEMA

import palmette

if not hasattr(os, "fork"):
    pytest.skip("this system does not fork", allow_module_level=True)

#: Seconds after which a child that has not answered is taken to wait for a thread that is not there.
PATIENCE = 60
ROWS = 70_000


class World:
    """One object of each class."""

    def __init__(self, folder: Any, demo: Any, vocabulary: palmette.Vocabulary) -> None:
        self.folder, self.demo, self.vocabulary = folder, demo, vocabulary
        self.grammar = palmette.Grammar.from_json_schema(SCHEMA, whitespace="compact")
        self.compiled = self.grammar.compile(vocabulary)
        self.ahead = palmette.Grammar.from_lark("start: /[a-c]+(x|y)*/").compile(vocabulary, ahead=True)
        self.compiler = palmette.Compiler(vocabulary)
        self.compiler.compile(self.grammar)
        # Its thread may be at work when a test forks.
        self.sharing = palmette.Compiler(vocabulary, folder=folder / "masks")
        self.sharing.compile(self.grammar)
        self.compiled.save(folder / "grammar.palm")
        random = np.random.default_rng(1)
        self.codes = random.integers(0, 64, size=(ROWS, 4))
        self.prices = random.integers(0, 100, size=ROWS)
        self.catalog = palmette.Catalog.build(self.codes, attributes={"price": self.prices})
        self.catalog.save(folder / "catalog.palm")
        self.few = self.catalog.filter({"range": {"price": {"lt": 5}}})
        self.constraint = self.catalog.constraint([(64 * level, 64) for level in range(4)])
        self.static = palmette.Catalog.build(self.codes[:50, :2] % 8)
        self.live = palmette.LiveCatalog.create(folder / "live", palmette.Catalog.build([[1, 2], [3, 0]], ["a", "b"]))
        self.live.keep("first")
        self.live.apply([{"id": "c", "codes": [0, 1], "price": 3}])
        self.reader = palmette.LiveReader.open(folder / "live")
        if demo is not None:
            self.shop = palmette.Catalog.open(demo / "shop.palm")
            self.recommender = palmette.Recommender(demo / "model", self.shop)
            self.answer = self.recommender.recommend(["P0001", "P0060"], k=3)
            self.batch = palmette.BatchRecommender(demo / "model", demo / "shop.palm", k=2)

    def matcher(self) -> palmette.Matcher:
        matcher = self.compiled.matcher()
        matcher.commit(PIECES.index(b'{"'))
        return matcher

    def mask(self, rows: int = 1) -> np.ndarray:
        return palmette.allocate_bitmask(rows, self.vocabulary.num_tokens)

    def beams(self) -> palmette.Beams:
        return palmette.Beams(self.constraint, width=8)

    def histories(self) -> Any:
        arrow = pytest.importorskip("pyarrow")
        return arrow.table({"user": ["u"], "history": [["P0001", "P0060"]]})


def applied(logits: np.ndarray, bitmask: np.ndarray) -> list[float]:
    palmette.numpy.apply_bitmask_(logits, bitmask)
    return logits.tolist()


def filled(w: World, fill: Callable[[np.ndarray], Any], rows: int = 1) -> tuple[Any, list[Any]]:
    bitmask = w.mask(rows)
    return fill(bitmask), bitmask.tolist()


def followed(w: World) -> tuple[Any, ...]:
    follower = palmette.Follower(w.compiled)
    bitmask = w.mask(2)
    follower.advance(np.array([[0, 1], [PIECES.index(b'{"'), 0]]), bitmask, threads=2)
    state = follower.alive, follower.ended, follower.statistics, follower.compiled is w.compiled
    follower.reset()
    return bitmask.tolist(), *state


def searched(w: World) -> tuple[Any, ...]:
    beams, bitmask = w.beams(), palmette.allocate_bitmask(8, 256)
    chance, seen = np.random.default_rng(2), []
    for _ in range(4):
        scores = np.log(chance.dirichlet(np.ones(256), size=beams.num_rows)).astype(np.float32)
        beams.fill_masks(bitmask[: beams.num_rows])
        seen.append([each.tolist() for each in beams.successors()])
        beams.advance(*beams.select(scores))
        seen.append((len(beams), beams.level, beams.width, beams.tokens.tolist(), beams.scores.tolist()))
    return beams.items(), seen, beams.constraint is w.constraint


def moved(w: World) -> tuple[Any, ...]:
    matcher = w.matcher()
    matcher.commit_all([PIECES.index(b"a")])
    matcher.commit_bytes(b'":"x"')
    state = matcher.position, matcher.is_accepting, matcher.is_ended, matcher.ends, matcher.allowed().tolist()
    forced = matcher.fork().forced_tokens(), matcher.forced_bytes(), matcher.try_commit(END), matcher.accepted_prefix([0, 1])
    tree = matcher.accepted_tree([0, 1, END], [-1, 0, -1])
    ending = matcher.fewest_tokens(), matcher.shortest_completion(), matcher.has_way(tokens_needed=9, tokens_left=40)
    matcher.rollback(1)
    matcher.reset()
    return *state, *forced, *tree, *ending, matcher.position, matcher.compiled is w.compiled


def bound(w: World) -> tuple[Any, ...]:
    path = w.folder / f"words-{os.getpid()}.palm"
    palmette.Lexicon(["ab", "b"]).save(path)
    open_grammar = palmette.Grammar.from_gbnf('root ::= <catalog:words> "," <substring:doc>').compile(w.vocabulary)
    made = open_grammar.bind(words=palmette.Lexicon.open(path), doc=palmette.Substrings(["b, b"]))
    matcher = made.matcher()
    matcher.commit_bytes(b"ab,b")
    members = [(m.set, m.field, m.value, m.id, m.span, m.document, m.place) for m in matcher.members()]
    return open_grammar.names, sorted(made.sources), matcher.allowed().tolist(), members


def renamed(w: World) -> tuple[Any, ...]:
    (w.folder / "pieces.json").write_text('["a", "b"]')
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        named, opened = palmette.Vocabulary.named("r50k_base"), palmette.Vocabulary.from_file(w.folder / "pieces.json")
        return named.num_tokens, opened.num_tokens, w.matcher().validate([0, 1])


def written_live(w: World) -> tuple[Any, ...]:
    folder = tempfile.mkdtemp(dir=w.folder)
    palmette.LiveCatalog.create(folder, w.static).close()
    with palmette.LiveCatalog.open(folder) as live:
        return live.apply([{"id": "n", "codes": [1, 1]}]), len(live), live.snapshot().item("n")


def shown(answer: Any) -> list[Any]:
    return [(i.id, i.score, i.boost, i.pinned, i.codes, i.title, i.attributes) for i in answer]


def again(made: Any) -> Any:
    return pickle.loads(pickle.dumps(made))


# Every public call by its name; those of one walk stand together. A child answers them as the parent did.
CALLS: dict[str, Callable[[World], Any]] = {
    "Vocabulary": lambda w: len(palmette.Vocabulary({b"a": 0, b"b": 2}, ends=[1])),
    "Vocabulary.named Vocabulary.from_file Matcher.validate": renamed,
    "Vocabulary.encoding Vocabulary.encode": lambda w: palmette.Vocabulary.encoding("r50k_base").encode("one two"),
    "Vocabulary.from_json": lambda w: palmette.Vocabulary.from_json('["a", "b"]').num_tokens,
    "Vocabulary.open": lambda w: [
        (w.folder / "pieces.json").write_text('["a", "b"]'),
        palmette.Vocabulary.open(w.folder / "pieces.json").num_tokens,
    ],
    "Vocabulary.from_tokenizer": lambda w: palmette.Vocabulary.from_tokenizer(
        types.SimpleNamespace(to_str=lambda: '["a", "b"]'), ends=[]
    ).num_tokens,
    "Vocabulary.from_tiktoken": lambda w: palmette.Vocabulary.from_tiktoken(
        types.SimpleNamespace(_mergeable_ranks={b"a": 0}, _special_tokens={"<e>": 1}, eot_token=1, name="own")
    ).ends,
    "Vocabulary.num_tokens Vocabulary.ends Vocabulary.notes Vocabulary.special_tokens Vocabulary.text Vocabulary.decode": (
        lambda w: [
            *(w.vocabulary.num_tokens, w.vocabulary.ends, w.vocabulary.notes, w.vocabulary.special_tokens),
            *(w.vocabulary.text(0), w.vocabulary.decode([0, 1]), w.vocabulary == again(w.vocabulary)),
        ]
    ),
    "Vocabulary.cache_statistics Vocabulary.clear_cache": lambda w: [
        sorted(w.vocabulary.cache_statistics),
        w.vocabulary.clear_cache(),
        w.vocabulary.cache_statistics["grammars"],
    ],
    "Grammar.from_json_schema Grammar.check Grammar.text Grammar.language Grammar.options": lambda w: [
        *(w.grammar.check(), w.grammar.text, w.grammar.language, w.grammar.options, again(w.grammar) == w.grammar),
    ],
    "Grammar.compile": lambda w: w.grammar.compile(w.vocabulary).matcher().allowed().tolist(),
    "Grammar.from_lark": lambda w: palmette.Grammar.from_lark("start: /[a-d]+/").compile(w.vocabulary).notes,
    "Grammar.from_gbnf": lambda w: palmette.Grammar.from_gbnf('root ::= "a"+').compile(w.vocabulary, ahead=5.0).wait(),
    "Grammar.from_regex": lambda w: palmette.Grammar.from_regex("a*b").compile(w.vocabulary, limits={"steps": 10**9}).notes,
    "Grammar.from_choices": lambda w: palmette.Grammar.from_choices(["a", "b"]).compile(w.vocabulary).notes,
    "Grammar.from_structural_tag": lambda w: palmette.Grammar.from_structural_tag(
        {"type": "structural_tag", "format": {"type": "const_string", "value": "ab"}}
    ).check(),
    "Grammar.from_tools": lambda w: palmette.Grammar.from_tools(
        [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}], "hermes"
    ).language,
    "CompiledGrammar.matcher CompiledGrammar.notes CompiledGrammar.vocabulary CompiledGrammar.grammar CompiledGrammar.num_tokens": (
        lambda w: [
            *(w.compiled.matcher().position, w.compiled.notes, w.compiled.num_tokens),
            *(w.compiled.vocabulary is w.vocabulary, w.compiled.grammar == w.grammar),
        ]
    ),
    " ".join(
        ["Lexicon Lexicon.open Lexicon.save Substrings CompiledGrammar.bind CompiledGrammar.names CompiledGrammar.sources"]
        + ["Matcher.members Member", *(f"Member.{name}" for name in "set field value id span document place".split())]
    ): bound,
    "CompiledGrammar.nbytes": lambda w: w.compiled.nbytes > 0,
    "CompiledGrammar.wait": lambda w: w.ahead.wait(),
    "CompiledGrammar.save load": lambda w: [
        w.compiled.save(w.folder / "again.palm"),
        palmette.load(w.folder / "grammar.palm", w.vocabulary).matcher().allowed().tolist(),
        again(w.compiled).matcher().allowed().tolist(),
    ],
    "Compiler Compiler.compile Compiler.vocabulary": lambda w: [
        palmette.Compiler(w.vocabulary, cache_bytes=1 << 20).vocabulary is w.vocabulary,
        w.compiler.compile(palmette.Grammar.from_regex("x?y")).notes,
    ],
    "Compiler.wait Compiler.take_reports": lambda w: [
        w.sharing.compile(w.grammar).matcher().allowed().tolist(),
        w.sharing.compile(palmette.Grammar.from_json_schema({"type": "array", "items": SCHEMA})).matcher().allowed().tolist(),
        w.sharing.wait(PATIENCE / 2),
        w.sharing.take_reports(),
        sorted(w.sharing.statistics),
    ],
    "Compiler.statistics Compiler.clear": lambda w: [
        w.compiler.compile(w.grammar).notes,
        sorted(w.compiler.statistics),
        w.compiler.clear(),
        w.compiler.statistics["grammars"],
    ],
    "Matcher.fill_mask": lambda w: filled(w, w.matcher().fill_mask),
    "Matcher.fill_next_token_bitmask": lambda w: filled(w, w.ahead.matcher().fill_next_token_bitmask),
    " ".join(
        f"Matcher.{name}"
        for name in ["commit", "commit_all", "commit_bytes", "try_commit", "accepted_prefix", "accepted_tree", "rollback", "reset", "position"]
        + ["is_accepting", "is_ended", "ends", "allowed", "forced_tokens", "forced_bytes", "fewest_tokens", "has_way", "shortest_completion", "fork"]
        + ["compiled"]
    ): moved,
    "Matcher": lambda w: again(w.matcher()).allowed().tolist(),
    "fill_masks": lambda w: filled(w, lambda mask: palmette.fill_masks([w.matcher(), w.ahead.matcher()] * 300, mask), 600),
    "fill_masks_with_drafts": lambda w: filled(
        w, lambda mask: palmette.fill_masks_with_drafts([w.compiled.matcher()], [[PIECES.index(b'{"'), 0, 0]], mask), 4
    ),
    "fill_masks_with_trees": lambda w: filled(
        w, lambda mask: palmette.fill_masks_with_trees([w.compiled.matcher()], [([PIECES.index(b'{"'), 0, 0], [-1, 0, -1])], mask), 4
    ),
    "Follower Follower.advance Follower.alive Follower.ended Follower.statistics Follower.reset Follower.compiled": followed,
    "MaskBuffer MaskBuffer.array MaskBuffer.shape": lambda w: [
        palmette.MaskBuffer(w.mask(2)).shape,
        palmette.MaskBuffer(w.mask(2)).array.tolist(),
    ],
    "apply_bitmask": lambda w: applied(np.zeros((2, 8), np.float32), np.array([[5], [-1]], np.int32)),
    "allocate_bitmask bitmask_words": lambda w: [w.mask().shape, palmette.bitmask_words(33)],
    "Catalog.build": lambda w: palmette.Catalog.build(w.codes, attributes={"price": w.prices}).nbytes,
    "Catalog.from_arrow": lambda w: len(
        palmette.Catalog.from_arrow(pytest.importorskip("pyarrow").table({"id": ["a"] * 1, "codes": [[1, 2]]}))
    ),
    "Catalog.from_parquet": lambda w: [
        pytest.importorskip("pyarrow.feather").write_feather(
            pytest.importorskip("pyarrow").table({"id": ["a"], "codes": [[1, 2]]}), w.folder / "i.arrow", "uncompressed"
        ),
        len(palmette.Catalog.from_parquet(w.folder / "i.arrow")),
    ],
    "Catalog.from_index_json": lambda w: palmette.Catalog.from_index_json({"0": ["<a_1>", "<b_2>"]}).level_prefixes,
    "Catalog.from_static Catalog.to_static": lambda w: palmette.Catalog.from_static(
        *[table for at, table in enumerate(w.static.to_static(dense_lookup_layers=1)[:4]) if at != 2], num_levels=2
    )
    .codes()
    .tolist(),
    "Catalog.open": lambda w: palmette.Catalog.open(w.folder / "catalog.palm").nbytes,
    "Catalog.save": lambda w: w.catalog.save(w.folder / f"catalog-{os.getpid()}.palm"),
    "Catalog.from_bytes Catalog.to_bytes": lambda w: len(again(palmette.Catalog.from_bytes(w.catalog.to_bytes()))),
    "Catalog.num_levels Catalog.codes_per_level Catalog.level_prefixes Catalog.generation Catalog.nbytes": lambda w: [
        *(len(w.catalog), w.catalog.num_levels, w.catalog.codes_per_level, w.catalog.level_prefixes),
        *(w.catalog.generation, w.catalog.nbytes),
    ],
    "Catalog.find Catalog.ids Catalog.codes Catalog.item Catalog.contains_prefix": lambda w: [
        *(w.catalog.find(w.codes[7]), w.catalog.ids([3, 4]), w.catalog.codes()[5].tolist(), w.catalog.item("9")),
        *(w.catalog.contains_prefix(w.codes[:9, :2]).tolist(), w.codes[3].tolist() in w.catalog),
    ],
    "Catalog.filter": lambda w: len(w.catalog.filter({"range": {"price": {"lt": 20}}})),
    "Catalog.cache_statistics Catalog.clear_cache": lambda w: [
        sorted(w.catalog.cache_statistics),
        w.catalog.clear_cache(),
        w.catalog.cache_statistics["filters"],
    ],
    "Catalog.all_items Catalog.items_with_ids": lambda w: [
        len(w.catalog.all_items()),
        w.catalog.items_with_ids(["4", "2"]).ids(),
    ],
    "Catalog.constraint": lambda w: w.catalog.constraint([(64 * n, 64) for n in range(4)], items=w.few).num_tokens,
    "Filter Filter.to_dict": lambda w: palmette.Filter({"exists": "price"}).to_dict(),
    "ItemSet ItemSet.ids ItemSet.nbytes ItemSet.catalog": lambda w: [
        *(len(w.few & w.few), len(w.catalog.all_items() - w.few), w.few == (w.few | w.few), "7" in w.few),
        *(w.few.ids()[:5], w.few.nbytes, w.few.catalog is w.catalog, len(again(w.few))),
    ],
    "CatalogConstraint CatalogConstraint.num_tokens CatalogConstraint.num_levels CatalogConstraint.catalog": lambda w: [
        *(w.constraint.num_tokens, w.constraint.num_levels, w.constraint.catalog is w.catalog),
        *(w.constraint.items, [each.tolist() for each in w.constraint.code_tokens]),
    ],
    "CatalogConstraint.items CatalogConstraint.code_tokens CatalogConstraint.filtered": lambda w: [
        len(again(w.constraint.filtered(w.few)).items),
        len(w.constraint.filtered({"range": {"price": {"lt": 3}}}).items),
    ],
    "CatalogConstraint.successors CatalogConstraint.decode": lambda w: [
        [each.tolist() for each in w.constraint.successors(np.array([[3], [5]]))],
        w.constraint.decode(w.codes[:2] + 64 * np.arange(4)),
    ],
    "CatalogConstraint.fill_masks": lambda w: filled(
        w, lambda _: w.constraint.fill_masks(np.array([[3], [5]]), palmette.allocate_bitmask(2, 256))
    ),
    " ".join(
        ["Beams", *(f"Beams.{name}" for name in "constraint width level num_rows tokens scores successors".split())]
        + [f"Beams.{name}" for name in "fill_masks select advance items".split()]
    ): searched,
    "LiveCatalog LiveCatalog.create LiveCatalog.open LiveCatalog.close": lambda w: written_live(w),
    "LiveReader LiveReader.open": lambda w: len(palmette.LiveReader.open(w.folder / "live")),
    "LiveReader.snapshot LiveReader.kept LiveReader.refresh LiveReader.generation": lambda w: [
        *(w.reader.snapshot().find([0, 1]), len(w.reader.kept("first")), w.reader.refresh(), w.reader.generation),
        *(len(w.reader), repr(w.reader)),
    ],
    "Recommender Recommender.catalog": lambda w: len(palmette.Recommender(w.demo / "model", w.shop).catalog),
    "Recommender.recommend Recommendation Recommendation.id Recommendation.score Recommendation.boost": lambda w: shown(
        w.recommender.recommend(["P0001", "P0060"], k=4, filter={"exists": "brand"})
    ),
    "Recommendation.pinned Recommendation.codes Recommendation.title Recommendation.attributes": lambda w: shown(w.answer),
    "Recommender.recommend_batch": lambda w: [
        shown(one) for one in w.recommender.recommend_batch([["P0001"], ["P0060"]] * 4, k=2, threads=3)
    ],
    "Recommender.recommend_table AnswerTable": lambda w: len(w.recommender.recommend_table(w.histories(), k=2)),
    "Answer Answer.unknown Answer.history_used Answer.generation Answer.thought Answer.explanations Answer.levels": lambda w: [
        *(len(w.answer), w.answer[0].id, w.answer.unknown, w.answer.history_used, w.answer.generation),
        *(w.answer.thought, w.answer.explanations, w.answer.levels),
    ],
    "Answer.proven Answer.missed_at_most": lambda w: [w.answer.proven, w.answer.missed_at_most],
    "Answer.cursor": lambda w: w.answer.cursor,
    "BatchRecommender BatchRecommender.recommender": lambda w: w.batch(w.histories()).select(["items"]).to_pylist(),
    "run_command": lambda w: palmette._palmette.run_command(["palmette", "catalog", "stats", str(w.folder / "catalog.palm")]),
}

#: Calls that one process alone may make: a child is told so.
OF_THE_PARENT: dict[str, Callable[[World], Any]] = {
    "LiveCatalog.apply": lambda w: w.live.apply([{"id": "d", "codes": [0, 2]}]),
    "LiveCatalog.snapshot": lambda w: w.live.snapshot(),
    "LiveCatalog.generation": lambda w: w.live.generation,
    "LiveCatalog.keep": lambda w: w.live.keep(),
    "LiveCatalog.widen": lambda w: w.live.widen([9, 9]),
    "LiveCatalog.forget": lambda w: w.live.forget(1),
    "LiveCatalog.rollback": lambda w: w.live.rollback(1),
}


@pytest.fixture(scope="module")
def world(tmp_path_factory, vocabulary, request):
    try:
        demo = request.getfixturevalue("demo")
    except pytest.skip.Exception:
        demo = None
    made = World(tmp_path_factory.mktemp("fork"), demo, vocabulary)
    # All of it, before any child is forked.
    for name, call in CALLS.items():
        answered(made, name, call)
    return made


def answered(world: World, name: str, call: Callable[[World], Any]) -> Any:
    if world.demo is None and any(word in name for word in ("Recommend", "Answer")):
        pytest.skip("this build has no demonstration to export")
    return call(world)


def in_child(call: Callable[[], Any]) -> Any:
    """What a call returns in a forked child, or the exception that it raises there."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(PATIENCE)
        try:
            answer = (True, call())
        except BaseException as error:  # noqa: BLE001
            answer = (False, f"{type(error).__name__}: {error}")
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(pickle.dumps(answer))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        content = pipe.read()
    status = os.waitpid(pid, 0)[1]
    assert status == 0, f"the child ended with status {status}: it waits for a thread that it does not have"
    returned, answer = pickle.loads(content)
    if not returned:
        raise RuntimeError(answer)
    return answer


@pytest.mark.parametrize("name", CALLS)
def test_a_call_in_a_forked_child(world, name):
    call = CALLS[name]
    expected = answered(world, name, call)
    assert in_child(lambda: call(world)) == expected


@pytest.mark.parametrize("name", OF_THE_PARENT)
def test_what_one_process_may_do_is_refused_in_a_child(world, name):
    with pytest.raises(RuntimeError, match="CatalogError: the live catalog was opened before this process was forked"):
        in_child(lambda: OF_THE_PARENT[name](world))
    assert in_child(lambda: (repr(world.live), world.live.close())) == ("<LiveCatalog of another process>", None)
    assert world.live.snapshot().find([0, 1]) == ["c"]


def test_every_public_call_is_tried():
    tried = {name for names in [*CALLS, *OF_THE_PARENT] for name in names.split()}
    public = {"run_command", "apply_bitmask"}
    for name in palmette.__all__:
        made = getattr(palmette, name)
        if not isinstance(made, type):
            public |= {name} if callable(made) else set()
        elif not issubclass(made, Exception):
            public |= {f"{name}.{each}" for each in vars(made) if not each.startswith("_")}
    assert public - tried == set()


def test_a_fork_amid_work_of_other_threads(world):
    """Threads fill masks, compile and filter all the while: whatever they hold, a child's calls return."""
    stop = threading.Event()

    def busy(number: int) -> None:
        while not stop.is_set():
            pattern = f"[a-d]{{1,{number}}}(x|y){{{time.monotonic_ns() % 97}}}"
            compiled = palmette.Grammar.from_regex(pattern).compile(world.vocabulary)
            palmette.fill_masks([compiled.matcher()] * 50, world.mask(50))
            world.catalog.filter({"range": {"price": {"lt": number}}})

    def child() -> Any:
        compiled = palmette.Grammar.from_regex("[a-d]+x").compile(world.vocabulary)
        palmette.fill_masks([compiled.matcher()] * 50, world.mask(50))
        return len(world.catalog.filter({"range": {"price": {"lt": 50}}}))

    threads = [threading.Thread(target=busy, args=(number,)) for number in range(2, 5)]
    for thread in threads:
        thread.start()
    try:
        assert {in_child(child) for _ in range(20)} == {int((world.prices < 50).sum())}
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_a_child_of_a_child(world):
    filters = [{"range": {"price": {"lt": 5 * n}}} for n in range(3)]
    expected = [len(world.catalog.filter(each)) for each in filters]

    def child() -> Any:
        here = [len(world.catalog.filter(each)) for each in filters]
        return here, in_child(lambda: [len(world.catalog.filter(each)) for each in filters])

    assert in_child(child) == (expected, expected)


def test_a_reader_in_a_child_sees_what_comes_later(world):
    folder = world.folder / "followed"
    with palmette.LiveCatalog.create(folder, world.static) as live:
        reader = palmette.LiveReader.open(folder)
        ready, go = os.pipe()

        def child() -> Any:
            before = reader.generation
            os.read(ready, 1)
            deadline = time.monotonic() + PATIENCE / 2
            while reader.generation == before and time.monotonic() < deadline:
                time.sleep(0.01)
            return reader.generation - before, reader.snapshot().item("late")["codes"]

        def write() -> None:
            live.apply([{"id": "late", "codes": [7, 7]}])
            os.write(go, b".")

        timer = threading.Timer(0.3, write)
        timer.start()
        assert in_child(child) == (1, [7, 7])
        timer.join()


def squared(number: int) -> int:
    return len(WORLD.catalog.filter({"range": {"price": {"lt": number}}}))


WORLD: Any = None


def test_pools_of_processes(world):
    """As workers of `concurrent.futures` and `multiprocessing` use what their parent made."""
    global WORLD
    WORLD = world
    context = multiprocessing.get_context("fork")
    expected = [squared(number) for number in range(6)]
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        assert list(pool.map(squared, range(6), timeout=PATIENCE)) == expected
        packed = pool.submit(again, world.compiled).result(PATIENCE)
        assert packed.matcher().allowed().tolist() == world.compiled.matcher().allowed().tolist()
    with context.Pool(2) as pool:
        assert pool.map_async(squared, range(6)).get(PATIENCE) == expected
