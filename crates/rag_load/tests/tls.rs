//! `rag-load` and encryption: a server that does the handshakes and then, over whatever connection came of them, says
//! in an error how it was reached.

#![allow(clippy::unwrap_used)]

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, generate_simple_self_signed,
};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use tempfile::TempDir;

/// What a client sends to ask for encryption: its length and a code.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// A certificate with its key, and who vouches for it.
struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
    root_pem: String,
}

/// Signed by itself, as `openssl req -x509` makes it.
fn self_signed(name: &str) -> Identity {
    let made = generate_simple_self_signed([name.to_owned()]).unwrap();
    Identity { certificate: made.cert.der().clone(), key: made.signing_key.into(), root_pem: made.cert.pem() }
}

fn signed_by_an_authority(name: &str) -> Identity {
    let mut authority = CertificateParams::new([]).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    Identity { certificate: certificate.der().clone(), key: key.into(), root_pem: authority.pem() }
}

struct Server {
    port: u16,
    folder: TempDir,
}

impl Server {
    /// Without an identity it offers no encryption.
    fn start(identity: Option<Identity>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let config = identity.map(|identity| {
            std::fs::write(folder.path().join("root.crt"), &identity.root_pem).unwrap();
            let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(vec![identity.certificate], identity.key);
            Arc::new(config.unwrap())
        });
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                // A client that does not like the certificate leaves.
                let _ = answer(stream.unwrap(), config.as_ref());
            }
        });
        Self { port, folder }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root.crt")
    }

    /// What `rag-load` says of a connection with this in its connection string.
    fn reached(&self, ssl: &str) -> String {
        self.reached_at("host=localhost hostaddr=127.0.0.1", ssl)
    }

    fn reached_at(&self, host: &str, ssl: &str) -> String {
        let dsn = format!("{host} port={} user=ann {ssl}", self.port);
        let Output { status, stderr, .. } = Command::new(env!("CARGO_BIN_EXE_rag-load"))
            .env_clear()
            .args(["--dsn", &dsn])
            .arg(self.folder.path())
            .output()
            .unwrap();
        let text = String::from_utf8(stderr).unwrap();
        assert_eq!(status.code(), Some(2), "{text}");
        text
    }
}

fn answer(mut stream: TcpStream, config: Option<&Arc<ServerConfig>>) -> std::io::Result<()> {
    let mut start = [0; 8];
    stream.read_exact(&mut start)?;
    if start != SSL_REQUEST {
        return refuse(&mut stream, u64::from(start[3]) - 8, "reached in the open");
    }
    let Some(config) = config else {
        stream.write_all(b"N")?;
        stream.read_exact(&mut start)?;
        return refuse(&mut stream, u64::from(start[3]) - 8, "reached in the open");
    };
    stream.write_all(b"S")?;
    let mut stream = StreamOwned::new(ServerConnection::new(Arc::clone(config)).unwrap(), stream);
    stream.read_exact(&mut start)?;
    refuse(&mut stream, u64::from(start[3]) - 8, "reached by an encrypted connection")
}

/// Reads the rest of the client's first message and sends an error.
fn refuse(stream: &mut (impl Read + Write), rest: u64, message: &str) -> std::io::Result<()> {
    std::io::copy(&mut stream.take(rest), &mut std::io::sink())?;
    let fields = format!("SFATAL\0VFATAL\0C28000\0M{message}\0\0");
    stream.write_all(b"E")?;
    stream.write_all(&(fields.len() as u32 + 4).to_be_bytes())?;
    stream.write_all(fields.as_bytes())?;
    stream.flush()
}

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
    assert!(!said.contains("reached"), "{said}");
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
            check(&server, &with_root(mode, &stranger.root()), "certificate");
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
