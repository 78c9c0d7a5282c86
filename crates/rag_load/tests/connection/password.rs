//! Passwords, and what else is found outside of the connection string.

use crate::server::Server;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn password_file(folder: &Path, name: &str, mode: u32, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_password_comes_from_the_string_the_environment_or_a_file() {
    let server = Server::that_asks_for_a_password();
    let folder = server.folder.path();
    let home = folder.to_str().unwrap();
    let port = server.port;
    password_file(
        folder,
        ".pgpass",
        0o600,
        &format!("elsewhere:*:*:*:no\nlocalhost:{port}:d:ann:of\\:home\n"),
    );
    let other = password_file(folder, "other", 0o600, "*:*:*:*:of:other\n");
    let own = format!("host=localhost hostaddr=127.0.0.1 port={port} user=ann dbname=d");
    let check = |more: &str, variables: &[(&str, &str)], expected: &str| {
        let said = server
            .reached_by(&["-d", &format!("{own} {more}")], &[variables, &[("HOME", home)][..]].concat());
        assert!(said.contains(&format!("password {expected} ")), "{more} {variables:?}: {said}");
    };
    check("", &[], "of:home");
    check("", &[("PGPASSFILE", &other)], "of:other");
    check(&format!("passfile={other}"), &[("PGPASSFILE", "/nowhere")], "of:other");
    check("", &[("PGPASSFILE", &other), ("PGPASSWORD", "of environment")], "of environment");
    check("password='of string'", &[("PGPASSWORD", "of environment")], "of string");
}

#[test]
fn a_password_file_that_others_may_read_is_not_used_and_named() {
    let server = Server::that_asks_for_a_password();
    let file = password_file(server.folder.path(), "pass", 0o644, "*:*:*:*:secret\n");
    let port = server.port.to_string();
    let flags = ["-h", "127.0.0.1", "-p", &port, "-U", "ann", "-w"];
    let said = server.reached_by(&flags, &[("PGPASSFILE", &file)]);
    assert!(said.contains("others may read it (chmod 0600)") && said.contains("cannot connect"), "{said}");
    assert!(!said.contains("secret"), "{said}");
}

#[test]
fn the_server_is_told_what_url_and_variables_say() {
    let server = Server::start(None);
    let port = server.port;
    let url = format!("postgresql://ann%40x@127.0.0.1:{port}/my%20db?options=-c%20a%3Db&sslmode=disable");
    let said = server.reached_by(&["-d", &url], &[("PGUSER", "bob"), ("PGSSLMODE", "verify-full")]);
    for part in ["user ann@x ", "database my db ", "options -c a=b ", "application_name rag-load "] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let port = port.to_string();
    let said = server.reached_by(
        &[],
        &[("PGHOST", "localhost"), ("PGHOSTADDR", "127.0.0.1"), ("PGPORT", &port), ("PGUSER", "bob")],
    );
    assert!(said.contains("user bob database bob "), "{said}");
}
