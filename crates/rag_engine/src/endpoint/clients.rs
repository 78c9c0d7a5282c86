//! Clients, kept for a while: making one reads all certificates that the system trusts, which takes longer than a short
//! request.

use reqwest::Client;
use reqwest::redirect::Policy;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a client is kept: certificates that the system trusts no more, or anew, are heeded after that.
const KEPT: Duration = Duration::from_secs(60);

/// Most that are kept.
const MOST: usize = 16;

/// What was made last stands last.
static CLIENTS: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

struct Kept {
    host: String,
    addresses: Vec<SocketAddr>,
    client: Client,
    since: Instant,
}

/// A client that connects to these addresses of a host: no second look-up, no proxy, no redirect. Its connections end with
/// the request.
pub(super) fn client(host: &str, addresses: &[SocketAddr]) -> reqwest::Result<Client> {
    let mut kept = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    kept.retain(|kept| kept.since.elapsed() < KEPT);
    if let Some(found) = kept.iter().find(|kept| kept.host == host && kept.addresses == addresses) {
        return Ok(found.client.clone());
    }
    let client = Client::builder()
        .resolve_to_addrs(host, addresses)
        .no_proxy()
        .redirect(Policy::none())
        // A connection is driven by the runtime of the request that has made it.
        .pool_max_idle_per_host(0)
        .user_agent(concat!("rag-engine/", env!("CARGO_PKG_VERSION")))
        .build()?;
    if kept.len() == MOST {
        kept.remove(0);
    }
    let (host, addresses) = (host.to_owned(), addresses.to_vec());
    kept.push(Kept { host, addresses, client: client.clone(), since: Instant::now() });
    Ok(client)
}
