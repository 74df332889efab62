//! Exact constrained beam search over any constraint.
