//! Unix sockets as a backend needs them: connecting without blocking, and knowing who is at the other end.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Connects without waiting. `WouldBlock` if the listener's queue is full. The stream does not block either.
pub(crate) fn connect(path: &Path) -> io::Result<UnixStream> {
    // SAFETY: all bytes zero is a valid address structure.
    let mut address: libc::sockaddr_un = unsafe { mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let bytes = path.as_os_str().as_bytes();
    // One byte stays zero: the end of the path.
    if bytes.len() >= address.sun_path.len() {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    for (to, from) in address.sun_path.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no memory is passed.
    let socket = unsafe { libc::socket(libc::AF_UNIX, kind, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made and nothing else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    let length = mem::size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: the address is initialised and `length` bytes long.
    if unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), length) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(UnixStream::from(socket))
}

/// User id of the process that listens at the other end.
pub(crate) fn peer_user(stream: &UnixStream) -> io::Result<u32> {
    // SAFETY: all bytes zero is a valid structure.
    let mut peer: libc::ucred = unsafe { mem::zeroed() };
    let mut length = mem::size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: `peer` has room for `length` bytes, and both outlive the call.
    let failed = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &mut length,
        )
    };
    if failed < 0 { Err(io::Error::last_os_error()) } else { Ok(peer.uid) }
}

/// User id that the server runs as.
pub(crate) fn own_user() -> u32 {
    // SAFETY: always succeeds.
    unsafe { libc::geteuid() }
}
