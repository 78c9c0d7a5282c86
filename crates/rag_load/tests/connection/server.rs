//! A server that can do no more than be reached.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, generate_simple_self_signed,
};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;
use tempfile::TempDir;

/// What a client sends to ask for encryption: its length and a code.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// What a server sends to ask for a password in the clear.
const PASSWORD_REQUEST: [u8; 9] = [b'R', 0, 0, 0, 8, 0, 0, 0, 3];

/// A certificate with its key, and who vouches for it.
pub(crate) struct Identity {
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) key: PrivateKeyDer<'static>,
    pub(crate) root_pem: String,
}

/// Signed by itself, as `openssl req -x509` makes it.
pub(crate) fn self_signed(name: &str) -> Identity {
    let made = generate_simple_self_signed([name.to_owned()]).unwrap();
    Identity { certificate: made.cert.der().clone(), key: made.signing_key.into(), root_pem: made.cert.pem() }
}

pub(crate) fn signed_by_an_authority(name: &str) -> Identity {
    let mut authority = CertificateParams::new([]).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    Identity { certificate: certificate.der().clone(), key: key.into(), root_pem: authority.pem() }
}

pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) folder: TempDir,
}

/// What a server wants of those who reach it.
#[derive(Clone, Default)]
struct Wants {
    encryption: Option<Arc<ServerConfig>>,
    password: bool,
}

impl Server {
    /// Without an identity it offers no encryption.
    pub(crate) fn start(identity: Option<Identity>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let encryption = identity.map(|identity| {
            std::fs::write(folder.path().join("root.crt"), &identity.root_pem).unwrap();
            encryption(identity, None)
        });
        Self::run(folder, Wants { encryption, password: false })
    }

    /// It lets in whoever has a certificate that this one vouches for.
    pub(crate) fn of_clients_with(client: CertificateDer<'static>) -> Self {
        let encryption = Some(encryption(self_signed("localhost"), Some(client)));
        Self::run(tempfile::tempdir().unwrap(), Wants { encryption, password: false })
    }

    /// It asks for a password, and tells it.
    pub(crate) fn that_asks_for_a_password() -> Self {
        Self::run(tempfile::tempdir().unwrap(), Wants { encryption: None, password: true })
    }

    fn run(folder: TempDir, wants: Wants) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                // A client that does not like the certificate leaves.
                let _ = answer(stream.unwrap(), &wants);
            }
        });
        Self { port, folder }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("root.crt")
    }

    /// What `rag-load` says of a connection with this in its connection string.
    pub(crate) fn reached(&self, ssl: &str) -> String {
        self.reached_at("host=localhost hostaddr=127.0.0.1", ssl)
    }

    pub(crate) fn reached_at(&self, host: &str, ssl: &str) -> String {
        self.reached_by(&["--dsn", &format!("{host} port={} user=ann {ssl}", self.port)], &[])
    }

    /// What `rag-load` says with these arguments and variables, and no others.
    pub(crate) fn reached_by(&self, arguments: &[&str], variables: &[(&str, &str)]) -> String {
        let Output { status, stderr, .. } = Command::new(env!("CARGO_BIN_EXE_rag-load"))
            .env_clear()
            .envs(variables.iter().copied())
            .args(arguments)
            .arg(self.folder.path())
            .output()
            .unwrap();
        let text = String::from_utf8(stderr).unwrap();
        assert_eq!(status.code(), Some(2), "{text}");
        text
    }
}

fn encryption(identity: Identity, client: Option<CertificateDer<'static>>) -> Arc<ServerConfig> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap();
    let config = match client {
        None => config.with_no_client_auth(),
        Some(client) => {
            let mut roots = RootCertStore::empty();
            roots.add(client).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            config.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    Arc::new(config.with_single_cert(vec![identity.certificate], identity.key).unwrap())
}

fn answer(mut stream: TcpStream, wants: &Wants) -> std::io::Result<()> {
    let mut start = [0; 8];
    stream.read_exact(&mut start)?;
    if start == SSL_REQUEST {
        if let Some(config) = &wants.encryption {
            stream.write_all(b"S")?;
            let mut stream = StreamOwned::new(ServerConnection::new(Arc::clone(config)).unwrap(), stream);
            stream.read_exact(&mut start)?;
            return refuse(&mut stream, start, wants, "reached by an encrypted connection");
        }
        stream.write_all(b"N")?;
        stream.read_exact(&mut start)?;
    }
    refuse(&mut stream, start, wants, "reached in the open")
}

/// Reads the rest of the client's first message, and tells what is in it in an error.
fn refuse(stream: &mut (impl Read + Write), start: [u8; 8], wants: &Wants, how: &str) -> std::io::Result<()> {
    let length = u32::from_be_bytes([start[0], start[1], start[2], start[3]]);
    let mut told = text(stream, u64::from(length) - 8)?;
    if wants.password {
        stream.write_all(&PASSWORD_REQUEST)?;
        let mut head = [0; 5];
        stream.read_exact(&mut head)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        told += &format!("password {}", text(stream, u64::from(length) - 4)?);
    }
    let fields = format!("SFATAL\0VFATAL\0C28000\0M{how}: {told}\0\0");
    stream.write_all(b"E")?;
    stream.write_all(&(fields.len() as u32 + 4).to_be_bytes())?;
    stream.write_all(fields.as_bytes())?;
    stream.flush()
}

/// So many bytes of text, with spaces for what ends words.
fn text(stream: &mut impl Read, length: u64) -> std::io::Result<String> {
    let mut text = String::new();
    stream.take(length).read_to_string(&mut text)?;
    Ok(text.replace('\0', " "))
}
