//! Histories, the leave-one-out split, ranking metrics and the floors recommenders are measured against.
