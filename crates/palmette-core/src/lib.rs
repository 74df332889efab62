//! Token ids, token masks and the constraint contract every Palmette engine implements.
