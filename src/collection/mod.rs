//! L3: what a collection is: what its name means, how it is made, and whose it is.

pub(crate) mod acronym;
pub(crate) mod create;
pub(crate) mod name;
pub(crate) mod prompt;
pub(crate) mod rights;
