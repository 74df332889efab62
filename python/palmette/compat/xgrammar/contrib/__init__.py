"""XGrammar's `contrib`: `hf` is imported on demand, as it needs transformers."""


def __getattr__(name: str):
    if name == "hf":
        import importlib

        return importlib.import_module("palmette.compat.xgrammar.contrib.hf")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
