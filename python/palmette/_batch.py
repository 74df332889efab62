"""Recommendations for everyone, inside an engine that has the histories as tables."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

from palmette._palmette import Catalog, LiveReader, Recommender
from palmette.types import ArrowTable

if TYPE_CHECKING:
    import pyarrow as pa
    from typing import Unpack

    from palmette.types import RecommendQuestion


class BatchRecommender:
    """A function from tables of histories to tables of recommendations: for Ray Data, Daft, Spark, or a loop of one's own.

    It is made where the job is described and called where it runs: a pickle has paths and options alone, and each process loads
    model and catalog at its first call. Threads may share it. The interpreter is free while it answers.

    A row's answer depends on that row, the model, the catalog and the options: neither on the rows around it nor on how a table is cut
    into batches. So the directory of a live catalog, which would be read at another generation by each process, goes with the
    ``generation`` to read, one that is kept (``palmette catalog live keep``).

    ``question`` has the keywords of `Recommender.recommend`. ``unknown_items``: items of a history that the catalog never had are left
    out and counted, or the row's ``error``. ``threads``: rows answered at once, by default as many as there are processors; 1 where
    the engine runs a process a processor. Rules of validity need a ``now``.
    """

    def __init__(
        self,
        model_dir: str | os.PathLike[str],
        catalog: str | os.PathLike[str],
        *,
        k: int = 10,
        threads: int | None = None,
        generation: int | str | None = None,
        layout: str | None = None,
        user_column: str | None = None,
        item_column: str | None = None,
        history_column: str | None = None,
        time_column: str | None = None,
        target_column: str | None = None,
        list_separator: str | None = None,
        **question: Unpack[RecommendQuestion],
    ) -> None:
        self._files = (os.fspath(model_dir), os.fspath(catalog), generation)
        self._wishes: dict[str, Any] = {
            "k": k,
            "threads": threads,
            "layout": layout,
            "user_column": user_column,
            "item_column": item_column,
            "history_column": history_column,
            "time_column": time_column,
            "target_column": target_column,
            "list_separator": list_separator,
            **question,
        }
        self._recommender: Recommender | None = None
        self._loading, self._process = threading.Lock(), os.getpid()

    @property
    def recommender(self) -> Recommender:
        """The model over the catalog, loaded when it is first asked for."""
        if self._process != os.getpid():
            # A forked child: the thread that held the lock, if one did, is the parent's.
            self._loading, self._process = threading.Lock(), os.getpid()
        with self._loading:
            if self._recommender is None:
                model_dir, catalog, generation = self._files
                self._recommender = Recommender(model_dir, _open(catalog, generation))
            return self._recommender

    def __call__(self, table: pa.Table | pa.RecordBatch | ArrowTable) -> pa.Table:
        """Answers each row of a table: a row each, in their order.

        The columns that are read are told by their names, as in files (docs/file-formats.md): the list of items in ``history`` or
        ``items``, the user in ``user_id`` or ``user``, or by the options; others are not read, which a `UserWarning` says. Those of
        the answers are the command's: ``user``,
        ``items``, ``scores``, ``codes``, ``proven``, ``missed_at_most``, ``skipped``, ``error``. A row that cannot be answered has the reason in ``error`` and null
        lists; an empty history is answered, a null one is an error, a null user stays null.

        Raises ``ValueError`` for a table without such columns, and `palmette.RecommendError` where no row could be answered.
        """
        import pyarrow as pa

        if isinstance(table, pa.RecordBatch):
            table = pa.Table.from_batches([table])
        return pa.table(self.recommender.recommend_table(table, **self._wishes))

    def __getstate__(self) -> dict[str, Any]:
        return {"_files": self._files, "_wishes": self._wishes}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _recommender=None, _loading=threading.Lock(), _process=os.getpid())

    def __repr__(self) -> str:
        model_dir, catalog, _ = self._files
        return f"BatchRecommender({model_dir!r}, {catalog!r}, k={self._wishes['k']})"


def _open(catalog: str, generation: int | str | None) -> Catalog:
    is_live = os.path.isdir(catalog)
    if is_live and generation is None:
        raise ValueError(
            f"{catalog} is a live catalog, of which each process would read another generation: name the one to read (generation=…), "
            "which `palmette catalog live keep` keeps"
        )
    if not is_live and generation is not None:
        raise ValueError(f"generation is for the directory of a live catalog; {catalog} is a file")
    return LiveReader.open(catalog).kept(generation) if is_live else Catalog.open(catalog)
