//! Frames: a little-endian `u32` length, then that many bytes of postcard.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};

/// Most bytes of one frame's payload. A longer one is refused before anything is allocated for it.
pub const MAX_FRAME_BYTES: usize = 128 * 1024 * 1024;

/// Why a frame could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The stream failed or ended within a frame.
    #[error("stream: {0}")]
    Io(#[from] io::Error),
    /// The other side closed the stream between frames.
    #[error("the other side closed the connection")]
    Closed,
    /// A length beyond [`MAX_FRAME_BYTES`].
    #[error("frame of {0} bytes exceeds the limit of {MAX_FRAME_BYTES}")]
    TooLong(usize),
    /// The payload is not the expected message.
    #[error("malformed message: {0}")]
    Malformed(#[from] postcard::Error),
}

/// A whole frame, length included.
pub fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, FrameError> {
    let mut frame = postcard::to_extend(message, vec![0u8; 4])?;
    let length = frame.len() - 4;
    if length > MAX_FRAME_BYTES {
        return Err(FrameError::TooLong(length));
    }
    frame[..4].copy_from_slice(&(length as u32).to_le_bytes());
    Ok(frame)
}

/// Length of the payload that follows a frame's first four bytes.
pub fn frame_length(header: [u8; 4]) -> Result<usize, FrameError> {
    let length = u32::from_le_bytes(header) as usize;
    if length > MAX_FRAME_BYTES { Err(FrameError::TooLong(length)) } else { Ok(length) }
}

/// The message of a payload. Bytes left over are an error.
pub fn decode<T: DeserializeOwned>(payload: &[u8]) -> Result<T, FrameError> {
    let (message, rest) = postcard::take_from_bytes(payload)?;
    if rest.is_empty() {
        Ok(message)
    } else {
        Err(FrameError::Malformed(postcard::Error::DeserializeBadEncoding))
    }
}

/// Writes one frame and flushes.
pub fn write_frame<T: Serialize>(to: &mut impl Write, message: &T) -> Result<(), FrameError> {
    to.write_all(&encode(message)?)?;
    to.flush()?;
    Ok(())
}

/// Reads one frame, blocking. [`FrameError::Closed`] if the stream ends before its first byte.
pub fn read_frame<T: DeserializeOwned>(from: &mut impl Read) -> Result<T, FrameError> {
    let mut header = [0u8; 4];
    let mut read = 0;
    while read < header.len() {
        match from.read(&mut header[read..]) {
            Ok(0) if read == 0 => return Err(FrameError::Closed),
            Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            Ok(n) => read += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e.into()),
        }
    }
    // Grown as bytes arrive, so a lying length costs no memory.
    let length = frame_length(header)?;
    let mut payload = Vec::new();
    if from.take(length as u64).read_to_end(&mut payload)? < length {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    decode(&payload)
}
