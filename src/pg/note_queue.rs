//! Notes of calls on their way to `rag.query_log` and `rag.answer_log`: plain data that lies in shared memory. Knows no
//! Postgres; times are microseconds on any one clock.
//!
//! It is bounded, and nobody waits for a place: where none is free, a note is dropped and counted. Nobody crowds the others
//! out: see [`has_room`].

/// Searches: notes of all databases together, and most bytes of one.
pub(crate) const QUERIES: usize = 256;
pub(crate) const QUERY_BYTES: usize = 4000;

/// Answers, with their citations.
pub(crate) const ANSWERS: usize = 64;
pub(crate) const ANSWER_BYTES: usize = 16_000;

pub(crate) type QueryQueue = NoteQueue<QUERIES, QUERY_BYTES>;
pub(crate) type AnswerQueue = NoteQueue<ANSWERS, ANSWER_BYTES>;

/// After so long nobody comes for a note, as where its database is gone: it makes room for another one.
const FORGOTTEN: i64 = 120_000_000;

/// Whose a note is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Holder {
    /// Never 0.
    pub(crate) database: u32,
    /// The role behind the owner: all users of a gateway have its.
    pub(crate) role: u32,
    /// Tells the owners of one role apart.
    pub(crate) owner: u64,
}

impl Holder {
    const NOBODY: Self = Self { database: 0, role: 0, owner: 0 };

    /// How much two have in common: 0 nothing, 1 the database, 2 the role too, 3 all.
    fn in_common(self, other: Self) -> usize {
        let shared = [self.database == other.database, self.role == other.role, self.owner == other.owner];
        shared.into_iter().take_while(|is_shared| *is_shared).count()
    }
}

/// Whether somebody may have one more place, where so many are free, and their database, role and owner hold so many.
///
/// Each may hold as many as are left to others: a database as many as are free, a role in it as many as its database may
/// still take, an owner as many as their role may. So one owner alone has a quarter of all places at most, one database half, and
/// however many there are who write all the time, whoever holds nothing still finds a place.
pub(crate) fn has_room(free: usize, held: [usize; 3]) -> bool {
    let mut room = free;
    held.into_iter().all(|held| {
        let has_room = held < room;
        room = room.saturating_sub(held);
        has_room
    })
}

#[derive(Clone, Copy)]
struct Place<const BYTES: usize> {
    /// Nobody's is an empty place.
    holder: Holder,
    at: i64,
    length: usize,
    bytes: [u8; BYTES],
}

impl<const BYTES: usize> Place<BYTES> {
    const EMPTY: Self = Self { holder: Holder::NOBODY, at: 0, length: 0, bytes: [0; BYTES] };
}

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
pub(crate) struct NoteQueue<const PLACES: usize, const BYTES: usize> {
    places: [Place<BYTES>; PLACES],
    dropped: u64,
}

impl<const PLACES: usize, const BYTES: usize> NoteQueue<PLACES, BYTES> {
    pub(crate) const EMPTY: Self = Self { places: [Place::EMPTY; PLACES], dropped: 0 };

    /// Takes in a note; one that is too long, or finds no place, is dropped.
    pub(crate) fn push(&mut self, holder: Holder, note: &[u8], now: i64) -> Pushed {
        let is_free =
            |place: &Place<BYTES>| place.holder == Holder::NOBODY || now.saturating_sub(place.at) > FORGOTTEN;
        let is_first = !self.places.iter().any(|place| place.holder.database == holder.database);
        let free = self.places.iter().filter(|place| is_free(place)).count();
        let held = [1, 2, 3].map(|common| {
            let is_held = |place: &&Place<BYTES>| !is_free(place) && place.holder.in_common(holder) >= common;
            self.places.iter().filter(is_held).count()
        });
        let may_have = note.len() <= BYTES && has_room(free, held);
        let found = self.places.iter_mut().find(|place| is_free(place)).filter(|_| may_have);
        let Some(place) = found else {
            self.drop_note();
            return Pushed::Dropped;
        };
        let is_forgotten = place.holder != Holder::NOBODY;
        place.bytes[..note.len()].copy_from_slice(note);
        (place.holder, place.at, place.length) = (holder, now, note.len());
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
        let mut of_database: Vec<&mut Place<BYTES>> =
            self.places.iter_mut().filter(|place| place.holder.database == database).collect();
        of_database.sort_by_key(|place| place.at);
        let taken = of_database.into_iter().take(most);
        taken
            .map(|place| {
                place.holder = Holder::NOBODY;
                place.bytes[..place.length].to_vec()
            })
            .collect()
    }

    /// Notes that were dropped since the server started.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }
}
