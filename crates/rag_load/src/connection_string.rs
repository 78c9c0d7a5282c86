//! Connection strings in both of libpq's forms. The library reads them; what it has no key for is taken out before,
//! and what flags and variables say is put in, so that the library reads their values too.

use crate::LoadError;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use postgres::Config;
use regex::Regex;
use std::sync::LazyLock;

/// A URL up to its parameters, and these. A password may have a question mark in it.
static URL: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?s)^(\w+://(?:[^/@]*@)?[^?]*)(?:\?(.*))?$").ok());

/// `name = value` or `name = 'value'`, with a backslash before what is meant literally.
static PAIR: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?xs) ^ \s* (?<name> [^\s=]+ ) \s* = \s*
          (?: ' (?<quoted> (?: [^'\\] | \\. )* ) '  |  (?<plain> (?: [^\s'\\] | \\. ) (?: [^\s\\] | \\. )* ) )",
    )
    .ok()
});

/// A connection string whose parameters can be taken out and added to.
#[derive(Debug, Default)]
pub(crate) struct ConnectionString {
    /// A URL up to its parameters; `None` for `key=value …`.
    url: Option<String>,
    parameters: Vec<(String, String)>,
    /// What is no parameter; the library says what is wrong with it.
    rest: String,
}

impl ConnectionString {
    /// Reads `postgresql://…` or `key=value …`.
    pub(crate) fn read(text: &str) -> Result<Self, LoadError> {
        if Self::is_url(text) { Self::read_url(text) } else { Ok(Self::read_pairs(text)) }
    }

    /// Whether a text is more than the name of a database.
    pub(crate) fn is_in(text: &str) -> bool {
        text.contains('=') || Self::is_url(text)
    }

    fn is_url(text: &str) -> bool {
        text.starts_with("postgres://") || text.starts_with("postgresql://")
    }

    fn read_url(url: &str) -> Result<Self, LoadError> {
        let (base, query) = match URL.as_ref().and_then(|form| form.captures(url)) {
            Some(found) => (
                found.get(1).map_or("", |base| base.as_str()),
                found.get(2).map_or("", |query| query.as_str()),
            ),
            None => (url, ""),
        };
        // Values are not repeated: one may be a password.
        let decode = |number: usize, text: &str| match percent_decode_str(text).decode_utf8() {
            Ok(decoded) => Ok(decoded.into_owned()),
            Err(_) => Err(LoadError::new(format!("-d: parameter {number} of the URL is not UTF-8"))),
        };
        let mut read = Self { url: Some(base.to_owned()), ..Self::default() };
        for (index, pair) in query.split('&').filter(|pair| !pair.is_empty()).enumerate() {
            let number = index + 1;
            let (name, value) = pair
                .split_once('=')
                .ok_or_else(|| LoadError::new(format!("-d: parameter {number} of the URL has no value")))?;
            read.parameters.push((decode(number, name)?, decode(number, value)?));
        }
        // The library would take it for that of a further host.
        if let Some(ports) = read.take("port") {
            if read.lacks_port() { read.set_ports(&ports) } else { read.push("port", &ports) }
        }
        Ok(read)
    }

    fn read_pairs(text: &str) -> Self {
        let mut read = Self::default();
        let mut rest = text;
        while let Some(found) = PAIR.as_ref().and_then(|form| form.captures(rest)) {
            let value = found.name("quoted").or(found.name("plain")).map_or("", |value| value.as_str());
            let mut characters = value.chars();
            let plain = std::iter::from_fn(|| match characters.next() {
                Some('\\') => characters.next(),
                other => other,
            });
            read.parameters.push((found["name"].to_owned(), plain.collect()));
            rest = &rest[found[0].len()..];
        }
        rest.trim().clone_into(&mut read.rest);
        read
    }

    /// Removes a parameter; of several the last one counts.
    pub(crate) fn take(&mut self, name: &str) -> Option<String> {
        let taken = self.parameters.extract_if(.., |(own, _)| own == name).last();
        taken.map(|(_, value)| value)
    }

    /// Adds a parameter.
    pub(crate) fn push(&mut self, name: &str, value: &str) {
        self.parameters.push((name.to_owned(), value.to_owned()));
    }

    /// Whether this is a URL whose hosts have no port; the library then says 5432 of each.
    pub(crate) fn lacks_port(&self) -> bool {
        !self.names("port") && self.authority().is_some_and(|(_, hosts, _)| !hosts.split(',').any(has_port))
    }

    /// Gives each host of a URL that lacks them its port: one for all, or a list of as many.
    pub(crate) fn set_ports(&mut self, ports: &str) {
        let Some((before, hosts, after)) = self.authority() else { return };
        let ports: Vec<&str> = ports.split(',').collect();
        let port_of = |index: usize| if ports.len() == 1 { ports.first() } else { ports.get(index) };
        let hosts: Vec<String> = hosts
            .split(',')
            .enumerate()
            .map(|(index, host)| port_of(index).map_or(host.to_owned(), |port| format!("{host}:{port}")))
            .collect();
        self.url = Some(format!("{before}{}{after}", hosts.join(",")));
    }

    /// A URL in three parts: up to its hosts, these, and what is behind them. `None` where it names no host.
    fn authority(&self) -> Option<(&str, &str, &str)> {
        let url = self.url.as_deref()?;
        let (scheme, rest) = url.split_at(url.find("://")? + 3);
        let end = rest.find('/').unwrap_or(rest.len());
        let begin = rest[..end].find('@').map_or(0, |at| at + 1);
        let split = scheme.len() + begin;
        (begin < end).then(|| (&url[..split], &rest[begin..end], &rest[end..]))
    }

    /// Whether a parameter is named, apart from what stands in a URL before its parameters.
    pub(crate) fn names(&self, name: &str) -> bool {
        self.parameters.iter().any(|(own, _)| own == name)
    }

    /// What the library makes of it.
    pub(crate) fn parse(&self) -> Result<Config, postgres::Error> {
        let Some(url) = &self.url else {
            let escaped = |value: &str| value.replace('\\', r"\\").replace('\'', r"\'");
            let pairs = self.parameters.iter().map(|(name, value)| format!("{name}='{}' ", escaped(value)));
            return (pairs.collect::<String>() + &self.rest).parse();
        };
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let mut pairs = Vec::new();
        for (name, value) in &self.parameters {
            // In a URL the library takes a list of hosts for one host.
            let values: Vec<&str> = if name == "host" { value.split(',').collect() } else { vec![value] };
            pairs.extend(values.iter().map(|value| format!("{}={}", encoded(name), encoded(value))));
        }
        if pairs.is_empty() { url.parse() } else { format!("{url}?{}", pairs.join("&")).parse() }
    }
}

/// Whether a URL's host has a port; one in brackets has colons of its own.
fn has_port(host: &str) -> bool {
    host.rsplit(']').next().is_some_and(|end| end.contains(':'))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use postgres::config::Host;

    #[track_caller]
    fn check(text: &str, mode: Option<&str>, root: Option<&str>, expected: &str) {
        let mut string = ConnectionString::read(text).unwrap();
        assert_eq!(string.take("sslmode").as_deref(), mode);
        assert_eq!(string.take("sslrootcert").as_deref(), root);
        let (read, expected): (_, Config) = (string.parse().unwrap(), expected.parse().unwrap());
        assert_eq!(format!("{read:?}"), format!("{expected:?}"), "{text}");
        assert_eq!(read.get_password(), expected.get_password(), "{text}");
    }

    #[test]
    fn parameters_are_taken_out_and_the_others_mean_the_same() {
        check("postgresql://u:p@h/d", None, None, "user=u password=p host=h port=5432 dbname=d");
        check(
            "postgres://h/d?sslmode=verify-full&application_name=x%20y&sslrootcert=%2Fa%20b.crt",
            Some("verify-full"),
            Some("/a b.crt"),
            "host=h port=5432 dbname=d application_name='x y'",
        );
        check(
            "postgres://u:p?w@h/d?sslmode=require",
            Some("require"),
            None,
            "user=u password=p?w host=h port=5432 dbname=d",
        );
        check("postgres://u:p?w@h/d", None, None, "user=u password=p?w host=h port=5432 dbname=d");
        check("postgres://u:p?a=b@h/d", None, None, "user=u password='p?a=b' host=h port=5432 dbname=d");
        check("postgres://h/d?ssl%6Dode=require", Some("require"), None, "host=h port=5432 dbname=d");
        check("postgresql:///?sslmode=disable&sslmode=require", Some("require"), None, "");
        check("postgresql:///d?host=/tmp,b&port=1,2", None, None, "dbname=d host=/tmp,b port=1,2");
        check(
            r"host=h sslmode = require password='a\'b sslmode=c\\' sslrootcert='/x y.crt'  user=u",
            Some("require"),
            Some("/x y.crt"),
            r"host=h password='a\'b sslmode=c\\' user=u",
        );
        check(r"password=a\ b sslmode=disable", Some("disable"), None, r"password=a\ b");
        check("", None, None, "");
    }

    #[test]
    fn hosts_of_a_url_get_a_port_where_they_have_none() {
        for (url, ports, expected) in [
            ("postgres://u:p@h/d", "1", "user=u password=p host=h port=1 dbname=d"),
            ("postgres://[::1]", "1", "host=::1 port=1"),
            ("postgres://a,b/", "1,2", "host=a,b port=1,2"),
            ("postgres://a,b/", "1", "host=a,b port=1,1"),
        ] {
            let mut string = ConnectionString::read(url).unwrap();
            assert!(string.lacks_port(), "{url}");
            string.set_ports(ports);
            assert!(!string.lacks_port(), "{url}");
            let expected: Config = expected.parse().unwrap();
            assert_eq!(format!("{:?}", string.parse().unwrap()), format!("{expected:?}"), "{url}");
        }
        for text in
            ["postgres://h:5432/d", "postgres://[::1]:5/", "postgres:///d", "postgres://h/d?port=5", "host=h"]
        {
            assert!(!ConnectionString::read(text).unwrap().lacks_port(), "{text}");
        }
    }

    #[test]
    fn what_is_no_connection_string_is_refused() {
        let is_read = |text: &str| ConnectionString::read(text).is_ok_and(|string| string.parse().is_ok());
        for text in
            ["host", "a b=c", "user=u password='p", "user=", "postgres://h?user", "sslmode=x non=sense"]
        {
            assert!(!is_read(text), "{text}");
        }
        let config = ConnectionString::read("postgres://h/d?port=5").unwrap().parse().unwrap();
        assert_eq!(config.get_ports(), [5]);
        for text in ["postgres://h/d?hush", "postgres://h/d?password=hush%FF"] {
            let error = ConnectionString::read(text).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains("parameter 1") && !error.contains("hush"), "{error}");
        }
    }

    #[test]
    fn what_is_added_is_read_by_the_library() {
        for text in ["user=u", "postgresql://u@/"] {
            let mut string = ConnectionString::read(text).unwrap();
            string.push("host", "/a b,c");
            string.push("options", r"-c x=a\ 'b' &c");
            let config = string.parse().unwrap();
            let hosts: Vec<Host> = vec![Host::Unix("/a b".into()), Host::Tcp("c".into())];
            assert_eq!((config.get_hosts(), config.get_user()), (&hosts[..], Some("u")), "{text}");
            assert_eq!(config.get_options(), Some(r"-c x=a\ 'b' &c"), "{text}");
        }
    }
}
