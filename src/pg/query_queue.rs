//! Notes of searches on their way to `rag.query_log`: plain data that lies in shared memory. Knows no Postgres; times are
//! microseconds on any one clock.
//!
//! It is bounded, and nobody waits for a place: where none is free, a note is dropped and counted.

/// Notes of all databases together.
pub(crate) const PLACES: usize = 256;
/// Most bytes of a note.
pub(crate) const NOTE_BYTES: usize = 4000;

/// After so long nobody comes for a note, as where its database is gone: it makes room for another one.
const FORGOTTEN: i64 = 120_000_000;

#[derive(Clone, Copy)]
struct Place {
    /// 0 is an empty place.
    database: u32,
    at: i64,
    length: usize,
    bytes: [u8; NOTE_BYTES],
}

const EMPTY_PLACE: Place = Place { database: 0, at: 0, length: 0, bytes: [0; NOTE_BYTES] };

/// Whether a note was taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// The first of its database: somebody has to come for it.
    First,
    /// Somebody has been called for the database already.
    Behind,
    Dropped,
}

/// Notes by database, and how many were dropped.
#[derive(Clone, Copy)]
pub(crate) struct QueryQueue {
    places: [Place; PLACES],
    dropped: u64,
}

impl QueryQueue {
    pub(crate) const EMPTY: Self = Self { places: [EMPTY_PLACE; PLACES], dropped: 0 };

    /// Takes in a note of a database; one that is too long, or finds no place, is dropped.
    pub(crate) fn push(&mut self, database: u32, note: &[u8], now: i64) -> Pushed {
        let is_first = !self.places.iter().any(|place| place.database == database);
        let free = |place: &&mut Place| place.database == 0 || now.saturating_sub(place.at) > FORGOTTEN;
        let found = self.places.iter_mut().find(free).filter(|_| note.len() <= NOTE_BYTES);
        let Some(place) = found else {
            self.drop_note();
            return Pushed::Dropped;
        };
        let is_forgotten = place.database != 0;
        place.bytes[..note.len()].copy_from_slice(note);
        (place.database, place.at, place.length) = (database, now, note.len());
        if is_forgotten {
            self.drop_note();
        }
        // Whoever was called for notes that nobody came for may not have heard it.
        if is_first || is_forgotten { Pushed::First } else { Pushed::Behind }
    }

    /// Counts a note that was not even handed in.
    pub(crate) fn drop_note(&mut self) {
        self.dropped = self.dropped.saturating_add(1);
    }

    /// Takes out at most so many notes of a database, the oldest first.
    pub(crate) fn take(&mut self, database: u32, most: usize) -> Vec<Vec<u8>> {
        let mut of_database: Vec<&mut Place> =
            self.places.iter_mut().filter(|place| place.database == database).collect();
        of_database.sort_by_key(|place| place.at);
        let taken = of_database.into_iter().take(most);
        taken
            .map(|place| {
                place.database = 0;
                place.bytes[..place.length].to_vec()
            })
            .collect()
    }

    /// Notes that were dropped since the server started.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }
}
