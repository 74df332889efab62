"""Recommendations for everyone with Spark: `mapInArrow`, the model loaded once a Python worker.

    pip install pyspark palmette
    spark-submit python/examples/spark_map_in_arrow.py --model shop/model --catalog shop.palm --histories users.parquet --out recs

Model and catalog are read by every worker: put them where all of them have the path.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from palmette import BatchRecommender

#: Spark has no unsigned integers, so codes are left out; `skipped` fits in its int.
COLUMNS = "user string, items array<string>, scores array<float>, skipped int, error string"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("model", "catalog", "histories", "out"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--beam-width", type=int, default=128)
    options = parser.parse_args()

    # Each task is a process with one processor.
    recommend = BatchRecommender(options.model, options.catalog, k=options.k, beam_width=options.beam_width, unknown="skip", threads=1)

    def answer(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            answers = recommend(batch).select(["user", "items", "scores", "skipped", "error"])
            skipped = answers["skipped"].cast(pa.int32())
            yield from answers.set_column(3, "skipped", skipped).to_batches()

    spark = SparkSession.builder.appName("palmette").getOrCreate()
    spark.read.parquet(options.histories).mapInArrow(answer, COLUMNS).write.mode("overwrite").parquet(options.out)
    spark.stop()


if __name__ == "__main__":
    main()
