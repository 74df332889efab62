//! Pages of a device's keys and values: those of `palmette-model`, of the kernels' 64 tokens.

pub(crate) use palmette_model::PageCounts;

use crate::plan::PAGE;

pub(crate) type Pages = palmette_model::Pages<PAGE>;
pub(crate) type PageChain = palmette_model::PageChain<PAGE>;
pub(crate) type Reservation = palmette_model::Reservation<PAGE>;
