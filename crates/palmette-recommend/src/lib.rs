//! From a history of items to recommended items: prompt, model, catalog and beam search put together.
