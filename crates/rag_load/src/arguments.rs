//! The command line.

use clap::Parser;
use std::path::PathBuf;

const AFTER: &str = "\
The connection is that of psql: -d, -h, -p and -U, or PGHOST, PGPORT, PGUSER, PGDATABASE, PGPASSWORD and
~/.pgpass. A password is never asked for. Encryption too: sslmode, sslrootcert, sslcert and sslkey in -d, or
PGSSLMODE and so on.

A file's address (uri) is file:// and its absolute path, or BASE and its path below PATH. What is there
already under the same address, with the same SHA-256, is not sent again.

Exit code: 0 all done, 1 some files failed, 2 nothing could be done, 130 interrupted (run it again to go on).";

/// Loads files and folders into rag_ext, in any format that it parses.
#[derive(Debug, Parser)]
#[command(name = "rag-load", version, after_help = AFTER, disable_help_flag = true)]
pub(crate) struct Arguments {
    /// Files and folders; of a folder all that is in it, at any depth
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// Collection: NAME, or OWNER/NAME for another owner's
    #[arg(short, long, default_value = "default", value_name = "NAME")]
    pub(crate) collection: String,

    /// Database: its name, postgresql://… or key=value …, which goes before -h, -p and -U
    #[arg(short = 'd', long = "dbname", visible_alias = "dsn", value_name = "DBNAME")]
    pub(crate) database: Option<String>,

    /// Host of the server, or the folder of its socket
    #[arg(short = 'h', long, value_name = "HOSTNAME")]
    pub(crate) host: Option<String>,

    /// Port of the server
    #[arg(short = 'p', long, value_name = "PORT")]
    pub(crate) port: Option<u16>,

    /// Role to connect as
    #[arg(short = 'U', long, value_name = "USERNAME")]
    pub(crate) username: Option<String>,

    /// Taken as by psql: a password is never asked for
    #[arg(short = 'w', long)]
    pub(crate) no_password: bool,

    /// Only files that match: *.pdf, reports/** (may be repeated)
    #[arg(short, long, value_name = "GLOB")]
    pub(crate) include: Vec<String>,

    /// No files or folders that match (may be repeated)
    #[arg(short = 'x', long, value_name = "GLOB")]
    pub(crate) exclude: Vec<String>,

    /// Connections that send files at the same time; each holds one file in memory
    #[arg(short, long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=64), value_name = "N")]
    pub(crate) jobs: u8,

    /// Addresses begin with BASE instead of file:// and the absolute path; '' for bare relative paths
    #[arg(short, long, value_name = "BASE")]
    pub(crate) base: Option<String>,

    /// Metadata of all files
    #[arg(short, long, default_value = "{}", value_parser = json_object, value_name = "JSON")]
    pub(crate) metadata: serde_json::Value,

    /// Larger files fail; the server's own limit holds as well
    #[arg(long, value_parser = bytes, value_name = "SIZE")]
    pub(crate) max_size: Option<u64>,

    /// Leave out files that no parser reads, such as images; otherwise they fail, and are not sent either
    #[arg(long)]
    pub(crate) skip_unsupported: bool,

    /// Also files and folders whose name begins with a dot
    #[arg(long)]
    pub(crate) hidden: bool,

    /// Follow symbolic links (loops are noticed)
    #[arg(short = 'L', long)]
    pub(crate) follow_links: bool,

    /// Do not wait until the server has processed what was sent
    #[arg(long)]
    pub(crate) no_wait: bool,

    /// Longest wait for the server, in seconds
    #[arg(long, value_name = "SECONDS", conflicts_with = "no_wait")]
    pub(crate) timeout: Option<u64>,

    /// No progress bar
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Print help
    #[arg(short = '?', long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

fn json_object(text: &str) -> Result<serde_json::Value, String> {
    match serde_json::from_str(text) {
        Ok(value @ serde_json::Value::Object(_)) => Ok(value),
        Ok(_) => Err("must be a JSON object".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// `123`, `500kB`, `20MB`, `1GB`: units as Postgres writes them, of 1024.
fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1 << 10,
        "m" | "mb" => 1 << 20,
        "g" | "gb" => 1 << 30,
        unit => return Err(format!("unknown unit {unit}: use kB, MB or GB")),
    };
    let number: u64 =
        digits.trim().parse().map_err(|_| "must be a number with a unit, such as 20MB".to_owned())?;
    number.checked_mul(unit).ok_or_else(|| "is too large".to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
        let parsed =
            Arguments::try_parse_from(["rag-load", "a", "-x", "*.tmp", "-j", "2", "--max-size", "1MB"])
                .unwrap();
        assert_eq!((parsed.jobs, parsed.max_size, parsed.collection.as_str()), (2, Some(1 << 20), "default"));
        let parsed = Arguments::try_parse_from([
            "rag-load", "a", "-h", "/tmp", "-p", "5433", "-U", "ann", "-d", "library", "-w",
        ])
        .unwrap();
        assert_eq!((parsed.host.as_deref(), parsed.port), (Some("/tmp"), Some(5433)));
        assert_eq!((parsed.username.as_deref(), parsed.database.as_deref()), (Some("ann"), Some("library")));
        for wrong in [
            &["rag-load", "a", "-p", "x"],
            &["rag-load"][..],
            &["rag-load", "a", "-j", "0"],
            &["rag-load", "a", "-m", "[]"],
            &["rag-load", "a", "--max-size", "1XB"],
        ] {
            assert!(Arguments::try_parse_from(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn sizes_have_the_units_of_postgres() {
        assert_eq!(bytes("10"), Ok(10));
        assert_eq!(bytes("2kB"), Ok(2048));
        assert_eq!(bytes("1 GB"), Ok(1 << 30));
        assert!(bytes("MB").is_err() && bytes("-1").is_err() && bytes("99999999999GB").is_err());
    }
}
