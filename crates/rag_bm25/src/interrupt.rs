//! Long work that somebody may end.

use crate::Error;

/// Asked again and again while work goes on, at least each few thousand entries or kilobytes. Once it says no, the work
/// ends with [`Error::Interrupted`].
pub type GoesOn = fn() -> bool;

/// An error once somebody wants the work to end.
pub(crate) fn check(goes_on: GoesOn) -> Result<(), Error> {
    if goes_on() { Ok(()) } else { Err(Error::Interrupted) }
}
