"""Language models that write only what is valid: items of a catalog, texts of a grammar."""
