//! Messages between processes, and JSON that users write.

use rag_core::chunking::ChunkOptions;
use rag_core::filter::{matches, parse_filter};
use rag_core::metadata::{typed_rows, typed_values};
use rag_wire::{FrameError, Reply, Request, Settings, decode, encode, read_frame};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A frame, and a payload of each kind of message.
pub(crate) fn frame(data: &[u8]) {
    let mut stream = data;
    match read_frame::<Request>(&mut stream) {
        Ok(_) => assert!(stream.len() + 4 < data.len()),
        Err(FrameError::Closed) => assert!(data.is_empty()),
        Err(_) => {}
    }
    reads_back::<Request>(data);
    reads_back::<Reply>(data);
    reads_back::<Settings>(data);
}

/// What is read is what is written: the same message gives the same bytes once more.
fn reads_back<T: Serialize + DeserializeOwned>(payload: &[u8]) {
    let Ok(message) = decode::<T>(payload) else { return };
    let Ok(frame) = encode(&message) else { panic!("a message that was read cannot be written") };
    let Ok(again) = decode::<T>(&frame[4..]) else { panic!("a message that was written cannot be read") };
    assert!(encode(&again).is_ok_and(|same| same == frame));
}

/// Filters, metadata and chunking options.
pub(crate) fn json(data: &[u8]) {
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(data) else { return };
    let rows = typed_rows(&value);
    let values = typed_values(&value);
    assert!(values.values().map(Vec::len).sum::<usize>() <= rows.len());
    let _ = ChunkOptions::from_json(&value);
    if let Ok(filter) = parse_filter(&value) {
        let _ = matches(&filter, &values);
    }
}
