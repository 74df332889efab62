"""Recommendations for everyone with Ray Data: an actor a processor, each with the model.

    pip install 'ray[data]' palmette
    python python/examples/ray_data.py --model shop/model --catalog shop.palm --histories users.parquet --out recs

Leave a processor to the reading tasks: with as many actors as processors, the actors wait for rows and the rows for a processor.
"""

from __future__ import annotations

import argparse
import time

import ray

from palmette import BatchRecommender


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("model", "catalog", "histories", "out"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--actors", type=int, default=2)
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--beam-width", type=int, default=128)
    options = parser.parse_args()

    ray.init(num_cpus=options.actors + 1, include_dashboard=False, log_to_driver=False)
    began = time.perf_counter()
    recommendations = ray.data.read_parquet(options.histories).map_batches(
        BatchRecommender,
        fn_constructor_args=(options.model, options.catalog),
        fn_constructor_kwargs={"k": options.k, "beam_width": options.beam_width, "threads": 1, "unknown": "skip"},
        batch_format="pyarrow",
        # Between too few for an actor to be worth a call, and too many to be shared out evenly at the end.
        batch_size=1024,
        compute=ray.data.ActorPoolStrategy(size=options.actors),
        num_cpus=1,
    )
    recommendations.write_parquet(options.out)
    print(f"{time.perf_counter() - began:.1f} s")
    ray.shutdown()


if __name__ == "__main__":
    main()
