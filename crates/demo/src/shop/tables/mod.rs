//! The product types, as rows of `name, price, features, forms, options`.

pub(crate) mod home;
pub(crate) mod kitchen;
pub(crate) mod leisure;
pub(crate) mod outdoor;
pub(crate) mod sport;
