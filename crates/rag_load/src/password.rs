//! Passwords from `~/.pgpass`, as libpq reads them.

use std::path::{Path, PathBuf};

/// What a line of the file is compared with.
pub(crate) struct Wanted<'a> {
    pub(crate) host: &'a str,
    pub(crate) port: u16,
    pub(crate) database: &'a str,
    pub(crate) user: &'a str,
}

/// The password of the first line that matches, from the file, `PGPASSFILE` or `~/.pgpass`; `None` where others may
/// read it, as with libpq.
pub(crate) fn find(file: Option<&str>, wanted: &Wanted<'_>) -> Option<String> {
    let named = file.map(PathBuf::from).or_else(|| std::env::var_os("PGPASSFILE").map(PathBuf::from));
    let path = match named {
        Some(path) => path,
        None => Path::new(&std::env::var_os("HOME")?).join(".pgpass"),
    };
    use std::os::unix::fs::PermissionsExt;
    let status = std::fs::metadata(&path).ok()?;
    if !status.is_file() {
        return None;
    }
    if status.permissions().mode() & 0o077 != 0 {
        crate::report::complain(&format!("{} is not used: others may read it (chmod 0600)", path.display()));
        return None;
    }
    password_in(&std::fs::read_to_string(&path).ok()?, wanted)
}

fn password_in(text: &str, wanted: &Wanted<'_>) -> Option<String> {
    let port = wanted.port.to_string();
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let [host, of_port, database, user, password] = fields.as_slice() else { return None };
        let is = |field: &str, value: &str| field == "*" || field == value;
        let matches = is(host, wanted.host)
            && is(of_port, &port)
            && is(database, wanted.database)
            && is(user, wanted.user);
        matches.then(|| password.clone())
    })
}

/// The five fields of a line; a backslash makes the colon or backslash behind it plain.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            ':' if fields.len() < 5 => fields.push(String::new()),
            c => {
                let plain = if c == '\\' { chars.next().unwrap_or('\\') } else { c };
                if let Some(field) = fields.last_mut() {
                    field.push(plain);
                }
            }
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_matches_counts() {
        let text =
            "# comment\nother:5432:*:*:no\nlocalhost:5432:db:ann:a\\:b\\\\c\n*:*:*:*:last:one\nbroken\n";
        let mut wanted = Wanted { host: "localhost", port: 5432, database: "db", user: "ann" };
        assert_eq!(password_in(text, &wanted).as_deref(), Some("a:b\\c"));
        wanted.user = "bob";
        assert_eq!(password_in(text, &wanted).as_deref(), Some("last:one"));
        assert_eq!(password_in("a:1:b:c:d", &wanted), None);
    }
}
