//! Next-item training of the Transformers that Palmette serves.
