//! Encryption of the connection, asked for as libpq is asked: `sslmode`, `sslrootcert`, `sslcert` and `sslkey` in the
//! connection string, or `PGSSLMODE` and so on.

use crate::LoadError;
use crate::connection_string::ConnectionString;
use postgres::config::SslMode;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_postgres_rustls::MakeRustlsConnect;
use x509_cert::Certificate;
use x509_cert::der::Decode;

/// Variables that ask for more than is offered here.
const STRICTER: &[&str] =
    &["PGSSLCRL", "PGSSLCRLDIR", "PGSSLMINPROTOCOLVERSION", "PGSSLMAXPROTOCOLVERSION", "PGSSLCERTMODE"];

/// What was asked for; empty where nothing was.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TlsOptions {
    mode: Option<String>,
    root_certificate: Option<String>,
    certificate: Option<String>,
    key: Option<String>,
}

impl TlsOptions {
    /// Takes them out of a connection string; what it leaves open is asked of the environment.
    pub(crate) fn take_from(string: &mut ConnectionString, env: impl Fn(&str) -> Option<String>) -> Self {
        let mut take = |name: &str, variable: &str| string.take(name).or_else(|| env(variable));
        Self {
            mode: take("sslmode", "PGSSLMODE"),
            root_certificate: take("sslrootcert", "PGSSLROOTCERT"),
            certificate: take("sslcert", "PGSSLCERT"),
            key: take("sslkey", "PGSSLKEY"),
        }
    }

    /// How to connect, and with what. What makes libpq stricter, and is not offered here, is refused.
    pub(crate) fn connector(
        &self,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<(SslMode, MakeRustlsConnect), LoadError> {
        let is_stricter = |name: &&&str| match (**name, env(name).as_deref()) {
            (_, None)
            | ("PGSSLMINPROTOCOLVERSION", Some("TLSv1" | "TLSv1.1" | "TLSv1.2"))
            | ("PGSSLMAXPROTOCOLVERSION", Some("TLSv1.3"))
            | ("PGSSLCERTMODE", Some("allow")) => false,
            (_, Some(_)) => true,
        };
        if let Some(name) = STRICTER.iter().find(is_stricter) {
            return Err(LoadError::new(format!("{name} is set, which rag-load cannot hold to: unset it")));
        }
        let from_system = self.root_certificate.as_deref() == Some("system");
        let usual = if from_system { "verify-full" } else { "prefer" };
        let mode = self.mode.as_deref().unwrap_or(usual);
        let (encrypted, mut check) = match mode {
            "disable" => (SslMode::Disable, Check::Nothing),
            // A connection without encryption is tried when there is no other.
            "allow" | "prefer" => (SslMode::Prefer, Check::Nothing),
            "require" => (SslMode::Require, Check::Nothing),
            "verify-ca" => (SslMode::Require, Check::Authority),
            "verify-full" => (SslMode::Require, Check::AuthorityAndName),
            _ => {
                return Err(LoadError::new(format!(
                    "sslmode is {mode}: it can be disable, allow, prefer, require, verify-ca or verify-full"
                )));
            }
        };
        if from_system && check != Check::AuthorityAndName {
            return Err(LoadError::new(format!(
                "sslmode is {mode}: with sslrootcert=system it must be verify-full"
            )));
        }
        let roots = if encrypted == SslMode::Disable { None } else { self.roots(from_system)? };
        if encrypted == SslMode::Require && check == Check::Nothing && roots.is_some() {
            // As libpq does: whoever has a root certificate means it.
            check = Check::Authority;
        }
        if check != Check::Nothing && roots.is_none() {
            return Err(LoadError::new(format!(
                "sslmode is {mode}, and there is no root certificate: give sslrootcert=FILE or sslrootcert=system"
            )));
        }
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = Verifier::new(check, roots.unwrap_or_default(), &provider)?;
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| LoadError::new(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match (&self.certificate, &self.key) {
            (None, None) => config.with_no_client_auth(),
            (Some(certificate), Some(key)) => {
                let key = PrivateKeyDer::from_pem_file(key)
                    .map_err(|error| LoadError::new(format!("sslkey {key}: {error}")))?;
                config
                    .with_client_auth_cert(certificates(Path::new(certificate))?, key)
                    .map_err(|error| LoadError::new(format!("sslcert {certificate}: {error}")))?
            }
            _ => return Err(LoadError::new("sslcert and sslkey are only of use together")),
        };
        // A server that is spoken to in TLS from the first byte wants to be told the protocol.
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok((encrypted, MakeRustlsConnect::new(config)))
    }

    /// Root certificates: of the system, of the file that is named, or of `~/.postgresql/root.crt` if there is one.
    fn roots(&self, from_system: bool) -> Result<Option<Vec<CertificateDer<'static>>>, LoadError> {
        if from_system {
            let found = rustls_native_certs::load_native_certs();
            return match found.errors.into_iter().next() {
                Some(error) if found.certs.is_empty() => {
                    Err(LoadError::new(format!("the system's root certificates: {error}")))
                }
                _ => Ok(Some(found.certs)),
            };
        }
        if let Some(named) = &self.root_certificate {
            return certificates(Path::new(named)).map(Some);
        }
        let usual = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".postgresql/root.crt"));
        usual.filter(|path| path.exists()).map(|path| certificates(&path)).transpose()
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, LoadError> {
    let failed = |error: String| LoadError::new(format!("certificate {}: {error}", path.display()));
    let found = CertificateDer::pem_file_iter(path).map_err(|error| failed(error.to_string()))?;
    let found: Result<Vec<_>, _> = found.collect();
    let found = found.map_err(|error| failed(error.to_string()))?;
    if found.is_empty() { Err(failed("there is none in the file".into())) } else { Ok(found) }
}

/// What of the server's certificate is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Check {
    Nothing,
    Authority,
    AuthorityAndName,
}

#[derive(Debug)]
struct Verifier {
    check: Check,
    certificates: Vec<CertificateDer<'static>>,
    roots: RootCertStore,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    fn new(
        check: Check,
        certificates: Vec<CertificateDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, LoadError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates.iter().cloned());
        if check != Check::Nothing && roots.is_empty() {
            return Err(LoadError::new("root certificates: none of them can be read"));
        }
        Ok(Self { check, certificates, roots, provider: Arc::clone(provider) })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.check == Check::Nothing {
            return Ok(ServerCertVerified::assertion());
        }
        let certificate = ParsedCertificate::try_from(end_entity)?;
        // A server's self-signed certificate is its own root.
        let is_root = self.certificates.iter().any(|root| root == end_entity);
        if !is_root || !is_self_signed_and_valid(end_entity, now)? {
            let algorithms = self.provider.signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(
                &certificate,
                &self.roots,
                intermediates,
                now,
                algorithms,
            )?;
        }
        if self.check == Check::AuthorityAndName {
            verify_server_name(&certificate, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Whether a certificate names itself as its issuer; an error if it does, and its time has passed or is to come.
fn is_self_signed_and_valid(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<bool, rustls::Error> {
    let parsed =
        Certificate::from_der(certificate).map_err(|_| CertificateError::BadEncoding)?.tbs_certificate;
    if parsed.issuer != parsed.subject {
        return Ok(false);
    }
    let now = now.as_secs();
    if now < parsed.validity.not_before.to_unix_duration().as_secs() {
        return Err(CertificateError::NotValidYet.into());
    }
    if now > parsed.validity.not_after.to_unix_duration().as_secs() {
        return Err(CertificateError::Expired.into());
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn options(dsn: &str, env: impl Fn(&str) -> Option<String>) -> TlsOptions {
        TlsOptions::take_from(&mut ConnectionString::read(dsn).unwrap(), env)
    }

    #[test]
    fn the_environment_fills_what_is_left_open() {
        let options = options("sslmode=prefer", |name| Some(name.to_owned()));
        assert_eq!(options.mode.as_deref(), Some("prefer"));
        assert_eq!(options.key.as_deref(), Some("PGSSLKEY"));
    }

    #[test]
    fn what_cannot_be_held_to_is_refused() {
        for (name, value, is_fine) in [
            ("PGSSLCRL", "/x", false),
            ("PGSSLMINPROTOCOLVERSION", "TLSv1.3", false),
            ("PGSSLMINPROTOCOLVERSION", "TLSv1.2", true),
            ("PGSSLMAXPROTOCOLVERSION", "TLSv1.2", false),
            ("PGSSLCERTMODE", "require", false),
            ("PGSSLCERTMODE", "allow", true),
        ] {
            let env = |asked: &str| (asked == name).then(|| value.to_owned());
            let refused = options("sslmode=require", |_| None).connector(env).err().map(|e| e.to_string());
            assert_eq!(refused.is_none(), is_fine, "{name}={value}: {refused:?}");
            assert!(refused.is_none_or(|text| text.contains(name)), "{name}={value}");
        }
    }

    #[test]
    fn options_that_make_no_sense_are_refused() {
        let refused = |dsn: &str| options(dsn, |_| None).connector(|_| None).err().map(|e| e.to_string());
        for (dsn, expected) in [
            ("sslmode=sometimes", "sslmode is sometimes"),
            ("sslmode=require sslrootcert=system", "must be verify-full"),
            ("sslmode=verify-ca sslrootcert=/nowhere.crt", "/nowhere.crt"),
            ("sslmode=prefer sslcert=/a.crt", "only of use together"),
        ] {
            assert!(refused(dsn).is_some_and(|text| text.contains(expected)), "{dsn}: {:?}", refused(dsn));
        }
    }
}
