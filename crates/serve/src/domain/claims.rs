//! Claims on names of catalogs: one making or deletion of a name at a time.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use crate::problem::{Kind, Problem};

/// Names of catalogs that are being made or deleted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claims(Arc<Mutex<BTreeSet<String>>>);

/// The sole right to make or delete a catalog of a name.
#[derive(Debug)]
pub(crate) struct Claim {
    claims: Claims,
    name: String,
}

impl Claims {
    pub(crate) fn claim(&self, name: &str) -> Result<Claim, Problem> {
        let is_new = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
        match is_new {
            true => Ok(Claim { claims: self.clone(), name: name.to_owned() }),
            false => Err(Problem::new(
                Kind::Conflict,
                format!("catalog {name:?} is being made or deleted; repeat when that is done"),
            )),
        }
    }
}

impl Claim {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.claims.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.name);
    }
}
