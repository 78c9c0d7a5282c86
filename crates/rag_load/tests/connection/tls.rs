//! Encryption, and what of the server's certificate is checked.

use crate::server::{Identity, Server, self_signed, signed_by_an_authority};
use rcgen::{CertificateParams, KeyPair};
use std::path::Path;

#[track_caller]
fn check(server: &Server, ssl: &str, expected: &str) {
    let said = server.reached(ssl);
    assert!(said.contains(expected), "{ssl}: {said}");
}

fn with_root(mode: &str, root: &Path) -> String {
    format!("sslmode={mode} sslrootcert={}", root.display())
}

#[test]
fn encryption_is_used_where_it_is_offered_and_nothing_else_is_asked() {
    let server = Server::start(Some(self_signed("elsewhere")));
    check(&server, "", "reached by an encrypted connection");
    check(&server, "sslmode=require", "reached by an encrypted connection");
    check(&server, "sslmode=disable", "reached in the open");
}

#[test]
fn an_address_without_a_name_is_no_way_around_encryption() {
    let server = Server::start(Some(self_signed("127.0.0.1")));
    for host in ["hostaddr=127.0.0.1", "host=127.0.0.1"] {
        for ssl in ["", "sslmode=require", &with_root("verify-full", &server.root())] {
            let said = server.reached_at(host, ssl);
            assert!(said.contains("reached by an encrypted connection"), "{host} {ssl}: {said}");
        }
    }
    let open = Server::start(None);
    let said = open.reached_at("hostaddr=127.0.0.1", "sslmode=require");
    assert!(said.contains("server does not support TLS"), "{said}");
    let said = open.reached_at("host=/nowhere hostaddr=127.0.0.1", "sslmode=require");
    assert!(said.contains("server does not support TLS"), "{said}");
}

#[test]
fn a_certificate_whose_time_has_passed_is_refused() {
    let key = KeyPair::generate().unwrap();
    let mut old = CertificateParams::new(["localhost".to_owned()]).unwrap();
    old.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let old = old.self_signed(&key).unwrap();
    let server = Server::start(Some(Identity {
        certificate: old.der().clone(),
        key: key.into(),
        root_pem: old.pem(),
    }));
    check(&server, "sslmode=require", "reached by an encrypted connection");
    check(&server, &with_root("verify-ca", &server.root()), "Expired");
}

#[test]
fn a_server_without_encryption_is_good_enough_unless_it_is_required() {
    let server = Server::start(None);
    check(&server, "", "reached in the open");
    check(&server, "sslmode=require", "server does not support TLS");
    let other = Server::start(Some(self_signed("localhost")));
    check(&server, &with_root("verify-full", &other.root()), "server does not support TLS");
}

#[test]
fn the_servers_certificate_is_checked_against_the_root() {
    let stranger = Server::start(Some(signed_by_an_authority("localhost")));
    for identity in [self_signed, signed_by_an_authority] {
        let server = Server::start(Some(identity("localhost")));
        for mode in ["require", "verify-ca", "verify-full"] {
            check(&server, &with_root(mode, &server.root()), "reached by an encrypted connection");
            check(&server, &with_root(mode, &stranger.root()), "invalid peer certificate");
        }
        check(&server, "sslmode=verify-ca", "no root certificate");
        check(&server, "sslrootcert=system", "certificate");
    }
}

#[test]
fn the_servers_name_is_checked_if_that_is_wanted() {
    for identity in [self_signed, signed_by_an_authority] {
        let server = Server::start(Some(identity("elsewhere")));
        check(&server, &with_root("verify-ca", &server.root()), "reached by an encrypted connection");
        check(&server, &with_root("verify-full", &server.root()), "certificate not valid for name");
    }
}

#[test]
fn a_url_and_the_environment_ask_for_the_same() {
    let server = Server::start(Some(signed_by_an_authority("localhost")));
    let (port, root) = (server.port, server.root());
    let root = root.to_str().unwrap();
    let url = |host: &str, more: &str| format!("postgresql://ann@{host}:{port}/d{more}");
    let check = |url: &str, variables: &[(&str, &str)], expected: &str| {
        let said = server.reached_by(&["-d", url], variables);
        assert!(said.contains(expected), "{url} {variables:?}: {said}");
    };
    let encrypted = "reached by an encrypted connection";
    let full = format!("?sslmode=verify-full&sslrootcert={}&hostaddr=127.0.0.1", root.replace('/', "%2F"));
    check(&url("localhost", &full), &[], encrypted);
    check(&url("elsewhere", &full), &[], "certificate not valid for name");
    let variables = [("PGSSLMODE", "verify-full"), ("PGSSLROOTCERT", root), ("PGHOSTADDR", "127.0.0.1")];
    check(&url("localhost", ""), &variables, encrypted);
    check(&url("elsewhere", ""), &variables, "certificate not valid for name");
    check(&url("elsewhere", "?sslmode=verify-ca"), &variables, encrypted);
    check(&url("127.0.0.1", "?sslmode=sometimes"), &[], "sslmode is sometimes");
}

#[test]
fn a_client_shows_its_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("ann.crt"), folder.path().join("ann.key"));
    let made = rcgen::generate_simple_self_signed(["ann".to_owned()]).unwrap();
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let server = Server::of_clients_with(made.cert.der().clone());
    let shown = format!("sslcert={} sslkey={}", certificate.display(), key.display());
    check(&server, &shown, "reached by an encrypted connection");
    assert!(!server.reached("sslmode=require").contains("reached"));
    check(&server, &format!("sslcert={0} sslkey={0}", certificate.display()), "sslkey");
}
