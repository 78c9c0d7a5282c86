//! Variables of this backend that have another value until a scope ends, also where an error unwinds it.

use std::cell::Cell;
use std::thread::LocalKey;

/// While this lives, a variable has another value.
#[must_use]
pub(crate) struct Scoped<T: Copy + 'static> {
    variable: &'static LocalKey<Cell<T>>,
    outer: T,
}

impl<T: Copy + 'static> Scoped<T> {
    pub(crate) fn set(variable: &'static LocalKey<Cell<T>>, value: T) -> Self {
        Self { variable, outer: variable.replace(value) }
    }
}

impl<T: Copy + 'static> Drop for Scoped<T> {
    fn drop(&mut self) {
        self.variable.set(self.outer);
    }
}
