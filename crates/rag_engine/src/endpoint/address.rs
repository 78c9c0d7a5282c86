//! Where a request to an endpoint may go: nothing beyond loopback unless the settings allow it.
//!
//! A host's name is looked up once per try and its addresses are checked; the connection is then made to those very
//! addresses, so a name that answers differently a moment later gains nothing.

use super::Purpose;
use crate::failure::{Explain, failure};
use rag_wire::{Failure, FailureCode};
use reqwest::Url;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// An endpoint's address, read from its base URL.
#[derive(Debug)]
pub(crate) struct Target {
    purpose: &'static Purpose,
    base: Url,
    host: String,
    port: u16,
}

impl Target {
    /// Reads a base URL such as `http://127.0.0.1:8080/v1`.
    pub(crate) fn read(purpose: &'static Purpose, base: &str) -> Result<Self, Failure> {
        let wrong = |why: &str| {
            let message = format!("the {} endpoint's address {why}", purpose.name);
            failure(FailureCode::InvalidArgument, message).hint(format!(
                "Set {} to a base address such as http://127.0.0.1:8080/v1.",
                purpose.address_setting
            ))
        };
        let mut base = Url::parse(base.trim()).map_err(|e| wrong(&format!("cannot be read: {e}")))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(wrong("is neither http nor https"));
        }
        let host = base.host_str().ok_or_else(|| wrong("has no host"))?.to_owned();
        let port = base.port_or_known_default().ok_or_else(|| wrong("has no port"))?;
        base.path_segments_mut().map_err(|()| wrong("has no path"))?.pop_if_empty();
        base.set_fragment(None);
        Ok(Self { purpose, base, host, port })
    }

    /// What it is for.
    pub(super) fn purpose(&self) -> &'static Purpose {
        self.purpose
    }

    /// The address below the base that a request is posted to.
    pub(super) fn below(&self, path: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.extend(path);
        }
        url
    }

    /// The host as the URL has it.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Host and port, for messages.
    pub(crate) fn shown(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Refuses what is certainly beyond loopback, without asking a name server.
    pub(crate) fn expect_allowed(&self, allow_remote: bool) -> Result<(), Failure> {
        let local = match self.literal() {
            Some(address) => is_loopback(address),
            None => self.host == "localhost" || self.host.ends_with(".localhost"),
        };
        if allow_remote || local { Ok(()) } else { Err(self.refused(&self.host)) }
    }

    /// The addresses to connect to. The outer error is a refusal for good; the inner one says why a look-up failed,
    /// which may pass.
    pub(super) fn resolve(&self, allow_remote: bool) -> Result<Result<Vec<SocketAddr>, String>, Failure> {
        let found = match self.literal() {
            Some(address) => vec![SocketAddr::new(address, self.port)],
            None => match (self.host.as_str(), self.port).to_socket_addrs() {
                Ok(addresses) => addresses.collect(),
                Err(e) => return Ok(Err(e.to_string())),
            },
        };
        match found.iter().find(|address| !allow_remote && !is_loopback(address.ip())) {
            Some(remote) => Err(self.refused(&remote.ip().to_string())),
            None if found.is_empty() => Ok(Err("the name has no address".into())),
            None => Ok(Ok(found)),
        }
    }

    /// The host as an address, if it is written as one.
    fn literal(&self) -> Option<IpAddr> {
        self.host.trim_start_matches('[').trim_end_matches(']').parse().ok()
    }

    fn refused(&self, address: &str) -> Failure {
        failure(FailureCode::NotAllowed, format!("the {} endpoint is beyond this machine", self.purpose.name))
            .detail(format!("It is at {} ({address}).", self.shown()))
            .hint("Set rag_ext.allow_remote = on to let questions and passages leave the machine.")
    }
}

/// Loopback, also where an IPv4 address is written as an IPv6 one.
fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::endpoint::CHAT;

    #[test]
    fn the_completions_address_follows_the_base() {
        let cases = [
            ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1/chat/completions"),
            ("http://127.0.0.1:8080/v1/", "http://127.0.0.1:8080/v1/chat/completions"),
            ("https://h.example", "https://h.example/chat/completions"),
            ("https://h.example/a?api-version=1#x", "https://h.example/a/chat/completions?api-version=1"),
        ];
        for (base, expected) in cases {
            assert_eq!(Target::read(&CHAT, base).unwrap().below(&["chat", "completions"]).as_str(), expected);
        }
    }

    #[test]
    fn addresses_that_are_none_are_refused() {
        for base in ["", "127.0.0.1:8080", "file:///etc/passwd", "unix:/run/x", "http://", "data:,x"] {
            assert_eq!(Target::read(&CHAT, base).unwrap_err().code, FailureCode::InvalidArgument, "{base}");
        }
    }

    #[test]
    fn only_loopback_is_allowed_unless_the_settings_say_otherwise() {
        let cases = [
            ("http://127.0.0.1:1", true),
            ("http://127.8.9.10:1", true),
            ("http://[::1]:1", true),
            ("http://[::ffff:127.0.0.1]:1", true),
            ("http://2130706433:1", true),
            ("http://localhost:1", true),
            ("http://0.0.0.0:1", false),
            ("http://10.0.0.1:1", false),
            ("http://169.254.169.254/latest", false),
            ("http://[::ffff:10.0.0.1]:1", false),
            ("http://[fe80::1]:1", false),
            ("http://127.0.0.1@10.0.0.1:1", false),
        ];
        for (base, local) in cases {
            let target = Target::read(&CHAT, base).unwrap();
            assert_eq!(target.expect_allowed(false).is_ok(), local, "{base}");
            match target.resolve(false) {
                Ok(found) => assert!(local && found.unwrap().iter().all(|a| is_loopback(a.ip())), "{base}"),
                Err(refused) => assert!(!local && refused.code == FailureCode::NotAllowed, "{base}"),
            }
            assert!(target.resolve(true).unwrap().is_ok(), "{base}");
        }
        assert!(Target::read(&CHAT, "http://example.com").unwrap().expect_allowed(false).is_err());
        assert!(Target::read(&CHAT, "http://localhost.example.com").unwrap().expect_allowed(false).is_err());
    }

    #[test]
    fn a_refusal_names_the_setting() {
        let refused = Target::read(&CHAT, "http://10.0.0.1").unwrap().resolve(false).unwrap_err();
        assert!(refused.hint.unwrap().contains("rag_ext.allow_remote"));
    }
}
