//! Vectors kept between runs, by the SHA-256 of the text: embedding a collection takes minutes, and its texts do
//! not change.

use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

/// SHA-256.
pub type Key = [u8; 32];

/// SHA-256 of some bytes.
pub fn digest(bytes: &[u8]) -> Key {
    Sha256::digest(bytes).into()
}

/// Where the benches keep what may be kept: `RAG_BENCH_HOME`, set by `make bench`.
pub fn kept_folder() -> PathBuf {
    let folder = PathBuf::from(crate::set_by_make("RAG_BENCH_HOME"));
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A file of vectors. Its first line says what made them; made by something else, they are not taken.
///
/// After that line: the key, the dimension as `u32`, and that many `f32`, both little-endian, per vector.
pub struct KeptVectors {
    path: PathBuf,
    made_by: String,
    vectors: HashMap<Key, Vec<f32>>,
    saved: usize,
}

impl KeptVectors {
    /// The vectors of the file of this name that were made by this; none if there is no such file.
    pub fn open(name: &str, made_by: &str) -> Self {
        let path = kept_folder().join(name);
        let bytes = fs::read(&path).unwrap_or_default();
        let head = format!("{made_by}\n");
        let vectors = bytes.strip_prefix(head.as_bytes()).map(read_all).unwrap_or_default();
        Self { path, made_by: made_by.to_owned(), saved: vectors.len(), vectors }
    }

    /// A text's vector.
    pub fn get(&self, key: &Key) -> Option<&[f32]> {
        self.vectors.get(key).map(Vec::as_slice)
    }

    /// Takes a vector in; [`KeptVectors::save`] makes it last.
    pub fn put(&mut self, key: Key, vector: Vec<f32>) {
        self.vectors.insert(key, vector);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.vectors.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.vectors.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Vec<f32>)> {
        self.vectors.iter()
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.vectors.clear();
        self.saved = 0;
    }

    /// Writes the file aside and renames it, if there is anything new.
    pub fn save(&mut self) {
        if self.vectors.len() == self.saved {
            return;
        }
        let mut bytes = format!("{}\n", self.made_by).into_bytes();
        for (key, vector) in &self.vectors {
            bytes.extend(key);
            bytes.extend((vector.len() as u32).to_le_bytes());
            bytes.extend(vector.iter().flat_map(|value| value.to_le_bytes()));
        }
        let aside = self.path.with_extension("new");
        fs::File::create(&aside).and_then(|mut file| file.write_all(&bytes)).unwrap();
        fs::rename(&aside, &self.path).unwrap();
        self.saved = self.vectors.len();
    }
}

/// All whole records; what an interrupted write may have left of one is not there, since files are renamed.
fn read_all(mut bytes: &[u8]) -> HashMap<Key, Vec<f32>> {
    let mut vectors = HashMap::new();
    while let Some((key, rest)) = bytes.split_first_chunk::<32>()
        && let Some((count, rest)) = rest.split_first_chunk::<4>()
        && let Some((values, rest)) = rest.split_at_checked(u32::from_le_bytes(*count) as usize * 4)
    {
        let value = |four: &[u8]| f32::from_le_bytes([four[0], four[1], four[2], four[3]]);
        vectors.insert(*key, values.chunks_exact(4).map(value).collect());
        bytes = rest;
    }
    vectors
}
