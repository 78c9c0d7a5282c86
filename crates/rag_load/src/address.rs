//! Where to connect to, found as psql finds it: the connection string, the flags, the environment, `~/.pgpass`.

use crate::LoadError;
use crate::arguments::Arguments;
use crate::connection::{Session, reason};
use crate::connection_string::ConnectionString;
use crate::password::{self, Wanted};
use crate::tls::TlsOptions;
use postgres::config::{Host, SslMode};
use postgres::{Config, NoTls};
use std::path::Path;
use tokio_postgres_rustls::MakeRustlsConnect;

/// Variables and the parameters that they stand in for.
const VARIABLES: &[(&str, &str)] = &[
    ("PGHOST", "host"),
    ("PGHOSTADDR", "hostaddr"),
    ("PGPORT", "port"),
    ("PGUSER", "user"),
    ("PGDATABASE", "dbname"),
    ("PGPASSWORD", "password"),
    ("PGOPTIONS", "options"),
    ("PGAPPNAME", "application_name"),
    ("PGCONNECT_TIMEOUT", "connect_timeout"),
    ("PGCHANNELBINDING", "channel_binding"),
    ("PGTARGETSESSIONATTRS", "target_session_attrs"),
    ("PGLOADBALANCEHOSTS", "load_balance_hosts"),
    ("PGSSLNEGOTIATION", "sslnegotiation"),
];

/// Variables that would lead psql elsewhere, or make it refuse a server.
const NOT_HELD_TO: &[&str] = &["PGSERVICE", "PGREQUIREAUTH", "PGREQUIREPEER", "PGGSSENCMODE"];

/// Seconds to wait for a connection where nothing is said: a server that is not there is told of soon.
const CONNECT_TIMEOUT: &str = "20";

/// Where to connect to; each worker opens a connection of its own.
#[derive(Clone)]
pub(crate) struct Address {
    config: Config,
    encryption: Option<MakeRustlsConnect>,
}

impl Address {
    /// From the command line and, for what it leaves open, from the environment.
    pub(crate) fn find(arguments: &Arguments) -> Result<Self, LoadError> {
        Self::find_in(arguments, |name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn find_in(arguments: &Arguments, env: impl Fn(&str) -> Option<String>) -> Result<Self, LoadError> {
        let is_meant = |name: &&&str| match env(name).as_deref() {
            Some("disable" | "prefer") if **name == "PGGSSENCMODE" => false,
            value => value.is_some(),
        };
        if let Some(name) = NOT_HELD_TO.iter().find(is_meant) {
            return Err(LoadError::new(format!(
                "{name} is set, which rag-load cannot hold to: unset it, and say with -d, -h, -p and -U where to connect to"
            )));
        }
        let mut open = Open::read(arguments)?;
        let tls = TlsOptions::take_from(&mut open.string, &env);
        let password_file = open.string.take("passfile");
        open.read_again("-d")?;
        let port = arguments.port.map(|port| port.to_string());
        for (flag, key, value) in
            [("-h", "host", &arguments.host), ("-p", "port", &port), ("-U", "user", &arguments.username)]
        {
            open.fill(flag, key, value.as_deref())?;
        }
        for (variable, key) in VARIABLES {
            open.fill(variable, key, env(variable).as_deref())?;
        }
        open.fill_by_default(&env)?;
        let mut config = open.config;
        if config.get_password().is_none()
            && let Some(password) = own_password(&config, password_file)
        {
            config.password(password);
        }
        let mut encryption = None;
        // Whoever can read from the machine's own socket can read the program's memory as well.
        let is_local = |host: &Host| matches!(host, Host::Unix(_));
        if !(config.get_hostaddrs().is_empty() && config.get_hosts().iter().all(is_local)) {
            let (mode, connector) = tls.connector(env)?;
            config.ssl_mode(mode);
            encryption = (mode != SslMode::Disable).then_some(connector);
        }
        Ok(Self { config, encryption })
    }

    /// Opens a connection.
    pub(crate) fn connect(&self) -> Result<Session, LoadError> {
        let connected = match &self.encryption {
            Some(connector) => self.config.connect(connector.clone()),
            None => self.config.connect(NoTls),
        };
        match connected {
            Ok(client) => Ok(Session::new(client)),
            Err(error) => Err(LoadError::new(format!("cannot connect: {}", reason(&error)))),
        }
    }
}

/// A connection string that is being filled, and what the library reads in it.
struct Open {
    string: ConnectionString,
    config: Config,
}

impl Open {
    /// As with psql, a connection string may stand where a name is asked for.
    fn read(arguments: &Arguments) -> Result<Self, LoadError> {
        let given = arguments.database.as_deref().unwrap_or_default();
        let is_string = ConnectionString::is_in(given);
        let mut string = ConnectionString::read(if is_string { given } else { "" })?;
        if !is_string && !given.is_empty() {
            string.push("dbname", given);
        }
        Ok(Self { string, config: Config::new() })
    }

    /// Has the library read the string, part of which comes from `origin`.
    fn read_again(&mut self, origin: &str) -> Result<(), LoadError> {
        let read = self.string.parse();
        self.config = read.map_err(|error| LoadError::new(format!("{origin}: {}", reason(&error))))?;
        Ok(())
    }

    /// Fills a parameter that nothing was said of so far.
    fn fill(&mut self, origin: &str, key: &str, value: Option<&str>) -> Result<(), LoadError> {
        let Some(value) = value.filter(|_| !self.says(key)) else { return Ok(()) };
        if key == "port" && self.string.lacks_port() {
            self.string.set_ports(value);
        } else {
            self.string.push(key, value);
        }
        self.read_again(origin)
    }

    /// Whether something was said of a parameter, in a URL before its parameters as well.
    fn says(&self, key: &str) -> bool {
        self.string.names(key)
            || match key {
                "host" => !self.config.get_hosts().is_empty(),
                "port" => !self.config.get_ports().is_empty() && !self.string.lacks_port(),
                "user" => self.config.get_user().is_some(),
                "password" => self.config.get_password().is_some(),
                "dbname" => self.config.get_dbname().is_some(),
                _ => false,
            }
    }

    fn fill_by_default(&mut self, env: &impl Fn(&str) -> Option<String>) -> Result<(), LoadError> {
        // What certificates and passwords are looked up by.
        let addresses: Vec<String> = self.config.get_hostaddrs().iter().map(ToString::to_string).collect();
        let folder = "/var/run/postgresql";
        let host = if !addresses.is_empty() {
            addresses.join(",")
        } else if Path::new(folder).is_dir() {
            folder.to_owned()
        } else {
            "localhost".to_owned()
        };
        self.fill("hostaddr", "host", Some(&host))?;
        self.fill("USER", "user", env("USER").or_else(|| env("LOGNAME")).as_deref())?;
        let Some(user) = self.config.get_user().map(str::to_owned) else {
            return Err(LoadError::new("no user: give -U or PGUSER"));
        };
        self.fill("user", "dbname", Some(&user))?;
        self.fill("connect_timeout", "connect_timeout", Some(CONNECT_TIMEOUT))?;
        self.fill("application_name", "application_name", Some("rag-load"))
    }
}

/// The password file's password, if it is the same for all hosts: it is sent to whichever host answers.
fn own_password(config: &Config, file: Option<String>) -> Option<String> {
    let database = config.get_dbname()?;
    let user = config.get_user()?;
    let ports = config.get_ports();
    let passwords = config.get_hosts().iter().enumerate().map(|(at, host)| {
        let host = match host {
            Host::Tcp(host) => host.as_str(),
            Host::Unix(_) => "localhost",
        };
        let port = ports.get(at).or(ports.first()).copied().unwrap_or(5432);
        password::find(file.as_deref(), &Wanted { host, port, database, user })
    });
    let mut passwords: Vec<Option<String>> = passwords.collect();
    passwords.dedup();
    passwords.pop().filter(|_| passwords.is_empty()).flatten()
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
