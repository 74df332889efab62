"""Errors of XGrammar's names. They are RuntimeErrors there, and ours are ValueErrors: these are both."""

import palmette


class DeserializeFormatError(RuntimeError):
    """A serialised text that does not describe what is to be made of it."""


class DeserializeVersionError(RuntimeError):
    """A serialised text of another version."""


class InvalidJSONError(RuntimeError, ValueError):
    """A text that is not JSON; its message begins with the words by which XGrammar's is known."""

    def __str__(self) -> str:
        return f"Invalid JSON error: {super().__str__()}"


class InvalidStructuralTagError(RuntimeError, ValueError):
    """A structural tag that is refused; its message begins with the words by which XGrammar's is known."""

    def __str__(self) -> str:
        return f"Invalid structural tag error: {super().__str__()}"


class GrammarRefused(RuntimeError, ValueError):
    """A grammar, schema or expression that is refused; `__cause__` is Palmette's error, with its place."""


class refusals:
    """Context in which Palmette's errors become the given one."""

    def __init__(self, kind: type[Exception] = GrammarRefused) -> None:
        self._kind = kind

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind, error, trace) -> None:
        if isinstance(error, palmette.Error):
            raise self._kind(str(error)) from error
