"""Recommendations for everyone with Daft.

    pip install daft palmette
    python python/examples/daft_frames.py --model shop/model --catalog shop.palm --histories users.parquet --out recs
"""

from __future__ import annotations

import argparse
import time

import daft
import pyarrow as pa
from daft import DataType, Series

from palmette import BatchRecommender

ANSWER = DataType.struct(
    {
        "user": DataType.string(),
        "items": DataType.list(DataType.string()),
        "scores": DataType.list(DataType.float32()),
        "codes": DataType.list(DataType.list(DataType.uint32())),
        "skipped": DataType.uint32(),
        "error": DataType.string(),
    }
)


@daft.cls
class Recommend:
    """An object of each process, with the model; its rows are answered on all processors."""

    def __init__(self, model: str, catalog: str, k: int, beam_width: int) -> None:
        self.answer = BatchRecommender(model, catalog, k=k, beam_width=beam_width, unknown="skip")

    @daft.method.batch(return_dtype=ANSWER)
    def __call__(self, user: Series, history: Series) -> pa.Array:
        answers = self.answer(pa.table({"user": user.to_arrow(), "history": history.to_arrow()}))
        return answers.to_struct_array().combine_chunks()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("model", "catalog", "histories", "out"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--beam-width", type=int, default=128)
    options = parser.parse_args()

    recommend = Recommend(options.model, options.catalog, options.k, options.beam_width)
    began = time.perf_counter()
    users = daft.read_parquet(options.histories)
    answers = users.select(recommend(users["user"], users["history"]).alias("answer"))
    answers.select(daft.col("answer").unnest()).write_parquet(options.out)
    print(f"{time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
