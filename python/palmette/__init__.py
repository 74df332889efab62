"""Language models that write only what is valid: items of a catalog, texts of a grammar."""

from ._palmette import (
    Catalog,
    CatalogConstraint,
    CatalogError,
    Error,
    Filter,
    FilterError,
    ItemSet,
    RecommendError,
)

__all__ = [
    "Catalog",
    "CatalogConstraint",
    "CatalogError",
    "Error",
    "Filter",
    "FilterError",
    "ItemSet",
    "RecommendError",
]
