//! Encryption of the connection, asked for as libpq is asked: `sslmode`, `sslrootcert`, `sslcert` and `sslkey` in the
//! connection string, or `PGSSLMODE` and so on.

use crate::LoadError;
use percent_encoding::percent_decode_str;
use postgres::config::SslMode;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
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
const STRICTER: &[&str] = &["PGSSLCRL", "PGSSLCRLDIR", "PGREQUIREAUTH", "PGSSLMINPROTOCOLVERSION"];

/// What was asked for; empty where nothing was.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Wishes {
    mode: Option<String>,
    root_certificate: Option<String>,
    certificate: Option<String>,
    key: Option<String>,
}

impl Wishes {
    /// Takes them out of a connection string, whose rest is for others.
    pub(crate) fn take_from(dsn: &str) -> Result<(Self, String), LoadError> {
        let mut wishes = Self::default();
        let is_url = dsn.starts_with("postgres://") || dsn.starts_with("postgresql://");
        let rest = if is_url { wishes.take_from_url(dsn)? } else { wishes.take_from_pairs(dsn) };
        Ok((wishes, rest))
    }

    fn take_from_url(&mut self, url: &str) -> Result<String, LoadError> {
        // A password may have a question mark in it.
        let authority = url.find("://").map_or(0, |at| at + 3);
        let credentials =
            url[authority..].find(['/', '@']).filter(|at| url[authority + at..].starts_with('@'));
        let after = credentials.map_or(authority, |at| authority + at);
        let Some(query) = url[after..].find('?').map(|at| after + at) else { return Ok(url.to_owned()) };
        let mut others = Vec::new();
        for pair in url[query + 1..].split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match self.place(&percent_decode_str(name).decode_utf8_lossy()) {
                Some(place) => {
                    let value = percent_decode_str(value).decode_utf8();
                    let value = value.map_err(|_| LoadError::new(format!("--dsn: {name} is not UTF-8")))?;
                    *place = Some(value.into_owned());
                }
                None => others.push(pair),
            }
        }
        let base = &url[..query];
        Ok(if others.is_empty() { base.to_owned() } else { format!("{base}?{}", others.join("&")) })
    }

    /// `name = value` or `name = 'value'`, with a backslash before what is meant literally.
    fn take_from_pairs(&mut self, text: &str) -> String {
        let mut others = String::new();
        let mut rest = text.trim_start();
        while let Some((name, after)) = rest.split_once('=') {
            let after = after.trim_start();
            let quoted = after.starts_with('\'');
            let mut value = String::new();
            let mut end = after.len();
            let mut characters = after.char_indices().skip(usize::from(quoted));
            while let Some((at, character)) = characters.next() {
                match character {
                    '\\' => value.extend(characters.next().map(|(_, literal)| literal)),
                    '\'' if quoted => {
                        end = at + 1;
                        break;
                    }
                    space if !quoted && space.is_whitespace() => {
                        end = at;
                        break;
                    }
                    other => value.push(other),
                }
            }
            let (written, following) = after.split_at(end);
            match self.place(name.trim()) {
                Some(place) => *place = Some(value),
                None => others.push_str(&format!("{}={written} ", name.trim())),
            }
            rest = following.trim_start();
        }
        others.push_str(rest);
        others.trim_end().to_owned()
    }

    fn place(&mut self, name: &str) -> Option<&mut Option<String>> {
        match name {
            "sslmode" => Some(&mut self.mode),
            "sslrootcert" => Some(&mut self.root_certificate),
            "sslcert" => Some(&mut self.certificate),
            "sslkey" => Some(&mut self.key),
            _ => None,
        }
    }

    /// What the connection string leaves open is asked of the environment. What makes libpq stricter, and is not offered
    /// here, is refused.
    pub(crate) fn or_environment(mut self, env: impl Fn(&str) -> Option<String>) -> Result<Self, LoadError> {
        let is_stricter = |name: &&&str| match env(name) {
            Some(version) if **name == "PGSSLMINPROTOCOLVERSION" => version == "TLSv1.3",
            value => value.is_some(),
        };
        if let Some(name) = STRICTER.iter().find(is_stricter) {
            return Err(LoadError::new(format!("{name} is set, which rag-load cannot hold to")));
        }
        self.mode = self.mode.or_else(|| env("PGSSLMODE"));
        self.root_certificate = self.root_certificate.or_else(|| env("PGSSLROOTCERT"));
        self.certificate = self.certificate.or_else(|| env("PGSSLCERT"));
        self.key = self.key.or_else(|| env("PGSSLKEY"));
        Ok(self)
    }

    /// How to connect, and with what.
    pub(crate) fn fulfil(&self) -> Result<(SslMode, MakeRustlsConnect), LoadError> {
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
        let config = match (&self.certificate, &self.key) {
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
    roots: Vec<CertificateDer<'static>>,
    /// None if nothing is checked.
    authority: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    fn new(
        check: Check,
        roots: Vec<CertificateDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, LoadError> {
        let failed = |error: String| LoadError::new(format!("root certificates: {error}"));
        let mut authority = None;
        if check != Check::Nothing {
            let mut store = RootCertStore::empty();
            store.add_parsable_certificates(roots.iter().cloned());
            let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(provider));
            authority = Some(verifier.build().map_err(|error| failed(error.to_string()))?);
        }
        Ok(Self { check, roots, authority, provider: Arc::clone(provider) })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(authority) = &self.authority else { return Ok(ServerCertVerified::assertion()) };
        // A server's self-signed certificate is its own root.
        let is_root = self.roots.iter().any(|root| root == end_entity);
        if !is_root || !is_self_signed_and_valid(end_entity, now)? {
            let verified =
                authority.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
            match verified {
                // Looked at last, and below where it matters.
                Err(rustls::Error::InvalidCertificate(
                    CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
                )) => {}
                other => {
                    other?;
                }
            }
        }
        if self.check == Check::AuthorityAndName {
            verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
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

    #[track_caller]
    fn check(dsn: &str, rest: &str, mode: Option<&str>, root: Option<&str>) {
        let (wishes, left) = Wishes::take_from(dsn).unwrap();
        assert_eq!(
            (left.as_str(), wishes.mode.as_deref(), wishes.root_certificate.as_deref()),
            (rest, mode, root)
        );
    }

    #[test]
    fn what_is_about_encryption_is_taken_out_of_a_connection_string() {
        check("postgresql://u:p@h/d", "postgresql://u:p@h/d", None, None);
        check(
            "postgres://h/d?sslmode=verify-full&application_name=x&sslrootcert=%2Fa%20b.crt",
            "postgres://h/d?application_name=x",
            Some("verify-full"),
            Some("/a b.crt"),
        );
        check("postgres://u:p?w@h/d?sslmode=require", "postgres://u:p?w@h/d", Some("require"), None);
        check("postgres://h/d?ssl%6Dode=require", "postgres://h/d", Some("require"), None);
        check("postgresql:///?sslmode=require", "postgresql:///", Some("require"), None);
        check(
            r"host=h sslmode = require password='a\'b sslmode=c' sslrootcert='/x y.crt'  user=u",
            r"host=h password='a\'b sslmode=c' user=u",
            Some("require"),
            Some("/x y.crt"),
        );
        check("", "", None, None);
        check("host", "host", None, None);
        check(r"password=a\ b sslmode=disable", r"password=a\ b", Some("disable"), None);
    }

    #[test]
    fn the_environment_fills_what_is_left_open() {
        let env = |name: &str| (!STRICTER.contains(&name)).then(|| name.to_owned());
        let (wishes, _) = Wishes::take_from("sslmode=prefer").unwrap();
        let wishes = wishes.or_environment(env).unwrap();
        assert_eq!(wishes.mode.as_deref(), Some("prefer"));
        assert_eq!(wishes.key.as_deref(), Some("PGSSLKEY"));
        for (name, value, is_fine) in [
            ("PGSSLCRL", "/x", false),
            ("PGSSLMINPROTOCOLVERSION", "TLSv1.3", false),
            ("PGSSLMINPROTOCOLVERSION", "TLSv1.2", true),
        ] {
            let env = |asked: &str| (asked == name).then(|| value.to_owned());
            assert_eq!(Wishes::default().or_environment(env).is_ok(), is_fine, "{name}={value}");
        }
    }

    #[test]
    fn wishes_that_make_no_sense_are_refused() {
        let refused = |dsn: &str| Wishes::take_from(dsn).unwrap().0.fulfil().err().map(|e| e.to_string());
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
