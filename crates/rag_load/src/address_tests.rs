//! What is found of the connection string, flags and variables.

#![allow(clippy::unwrap_used)]

use super::*;
use clap::Parser;
use std::time::Duration;

fn find(flags: &[&str], variables: &[(&str, &str)]) -> Result<Config, String> {
    let arguments = Arguments::try_parse_from([&["rag-load", "file"], flags].concat()).unwrap();
    let env = |asked: &str| {
        let found = variables.iter().find(|(name, _)| *name == asked);
        found.map(|(_, value)| (*value).to_owned())
    };
    Address::find_in(&arguments, env).map(|address| address.config).map_err(|error| error.to_string())
}

/// The connection that is found is the one that this string says.
#[track_caller]
fn check(flags: &[&str], variables: &[(&str, &str)], expected: &str) {
    let variables = [&[("PGPASSWORD", "p")], variables].concat();
    let found = find(flags, &variables).unwrap();
    let expected = format!("password=p connect_timeout=20 application_name=rag-load {expected}");
    let expected: Config = expected.parse().unwrap();
    assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{flags:?} {variables:?}");
    assert_eq!(found.get_password(), expected.get_password(), "{flags:?} {variables:?}");
}

#[test]
fn a_connection_string_goes_before_flags_and_these_before_variables() {
    let variables = [("PGHOST", "e"), ("PGPORT", "3"), ("PGUSER", "v"), ("PGDATABASE", "n")];
    check(&[], &variables, "host=e port=3 user=v dbname=n");
    let flags = ["-h", "f", "-p", "2", "-U", "u"];
    check(&flags, &variables, "host=f port=2 user=u dbname=n");
    check(&[&flags[..], &["-d", "m"]].concat(), &variables, "host=f port=2 user=u dbname=m");
    for string in
        ["host=s port=1 user=t dbname=d", "postgresql://t@s:1/d", "postgres:///d?host=s&port=1&user=t"]
    {
        check(&[&flags[..], &["-d", string]].concat(), &variables, "host=s port=1 user=t dbname=d");
    }
    // A URL may leave the port of its host to the others.
    let url = ["-d", "postgresql://t@s/d"];
    check(&[&flags[..], &url].concat(), &variables, "host=s port=2 user=t dbname=d");
    check(&url, &variables, "host=s port=3 user=t dbname=d");
    check(&url, &[], "host=s port=5432 user=t dbname=d");
}

#[test]
fn the_library_reads_what_variables_say() {
    check(
        &[],
        &[
            ("PGHOST", "a,b"),
            ("PGHOSTADDR", "10.0.0.1,::1"),
            ("PGPORT", "1,2"),
            ("PGUSER", "u"),
            ("PGOPTIONS", "-c a=b"),
            ("PGCHANNELBINDING", "require"),
            ("PGTARGETSESSIONATTRS", "read-write"),
            ("PGLOADBALANCEHOSTS", "random"),
            ("PGSSLNEGOTIATION", "direct"),
        ],
        "host=a,b hostaddr=10.0.0.1,::1 port=1,2 user=u dbname=u options='-c a=b' channel_binding=require \
         target_session_attrs=read-write load_balance_hosts=random sslnegotiation=direct",
    );
    let found = find(&["-d", "host=h user=u"], &[("PGCONNECT_TIMEOUT", "7"), ("PGAPPNAME", "x")]).unwrap();
    assert_eq!(found.get_connect_timeout(), Some(&Duration::from_secs(7)));
    assert_eq!(found.get_application_name(), Some("x"));
    // What is checked is the name that the variable gives, not the address.
    check(
        &["-d", "hostaddr=10.0.0.1 channel_binding=disable"],
        &[("PGHOST", "h"), ("PGUSER", "u"), ("PGCHANNELBINDING", "require")],
        "host=h hostaddr=10.0.0.1 user=u dbname=u channel_binding=disable",
    );
}

#[test]
fn what_is_left_open_has_defaults() {
    check(&["-d", "hostaddr=10.0.0.1"], &[("USER", "u")], "host=10.0.0.1 hostaddr=10.0.0.1 user=u dbname=u");
    let variables = [("LOGNAME", "u"), ("PGGSSENCMODE", "prefer")];
    check(&["-h", "h", "-d", "postgresql:///d"], &variables, "host=h user=u dbname=d");
}

#[test]
fn what_cannot_be_used_is_named() {
    for (flags, variables, expected) in [
        (&["-d", "non=sense"][..], &[][..], "-d: "),
        (&["-d", "postgresql://h?sslmode"], &[], "parameter 1 of the URL has no value"),
        (&[], &[("PGPORT", "x")], "PGPORT: "),
        (&[], &[("PGHOSTADDR", "h")], "PGHOSTADDR: "),
        (&[], &[("PGCONNECT_TIMEOUT", "soon")], "PGCONNECT_TIMEOUT: "),
        (&["-h", "h"], &[], "no user: give -U or PGUSER"),
        (&[], &[("PGSERVICE", "s")], "PGSERVICE is set"),
        (&[], &[("PGREQUIREAUTH", "scram-sha-256")], "PGREQUIREAUTH is set"),
        (&[], &[("PGGSSENCMODE", "require")], "PGGSSENCMODE is set"),
        (&["-h", "h", "-U", "u"], &[("PGSSLMODE", "maybe")], "sslmode is maybe"),
        (&["-h", "h", "-U", "u"], &[("PGSSLCRL", "/x")], "PGSSLCRL is set"),
    ] {
        let said = find(flags, variables).unwrap_err();
        assert!(said.contains(expected), "{flags:?} {variables:?}: {said}");
    }
}
