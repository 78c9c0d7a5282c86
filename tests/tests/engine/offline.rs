//! Nothing leaves the machine, and nothing is left outside of the data directory.

use rag_tests::{Cluster, wait_until};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Counters of a network namespace: packets sent, and tries to send where nothing can be reached.
fn tries_to_reach_somebody(cluster: &Cluster) -> u64 {
    let read =
        |file: &str| std::fs::read_to_string(format!("/proc/{}/net/{file}", cluster.postmaster())).unwrap();
    let old = read("snmp");
    let mut lines = old.lines().filter(|line| line.starts_with("Ip:"));
    let (names, values) =
        (lines.next().unwrap().split_whitespace(), lines.next().unwrap().split_whitespace());
    let new = read("snmp6");
    let pairs = names.zip(values).chain(new.lines().filter_map(|line| line.split_once(char::is_whitespace)));
    pairs
        .filter(|(name, _)| name.ends_with("OutRequests") || name.ends_with("OutNoRoutes"))
        .map(|(_, value)| value.trim().parse::<u64>().unwrap())
        .sum()
}

/// What the server's user has made or changed since, below a folder. Servers of other tests are left out.
fn changed_since(start: SystemTime, owner: u32, folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(metadata) = entry.metadata() else { continue };
        let name = entry.file_name().to_string_lossy().into_owned();
        if ["rag_test_", "PostgreSQL.", ".s.PGSQL."].iter().any(|prefix| name.starts_with(prefix)) {
            continue;
        }
        if metadata.is_dir() {
            changed_since(start, owner, &entry.path(), found);
        }
        if metadata.uid() == owner && metadata.modified().is_ok_and(|at| at >= start) {
            found.push(entry.path());
        }
    }
}

#[test]
fn nothing_is_asked_for_outside_and_nothing_is_left_outside_of_the_data_directory() {
    // The clock of files lags behind by up to a tick.
    let start = SystemTime::now();
    std::thread::sleep(std::time::Duration::from_millis(20));
    let cluster = Cluster::builder("offline").offline().start();
    let database = cluster.database("offline");
    let mut ann = database.user("ann");
    ann.ingest("The ferry leaves at noon. It carries forty cars.", "plain");
    ann.run("SELECT rag_ingest_bytes(convert_to('<html><h1>Lighthouse</h1><p>The lamp turns at night.</p></html>', 'UTF8'), uri => 'page', options => '{\"sync\": true}')");
    assert!(
        ann.count(
            "SELECT count(*) FROM rag_search('when does the ferry leave?', options => '{\"rerank\": true}')"
        ) > 0
    );
    assert!(!ann.json("SELECT rag_answer('When does the ferry leave?')")["answer"].is_null());
    let engine = cluster.running_engine();

    let mut outside = Vec::new();
    let owner = std::fs::metadata(cluster.data()).unwrap().uid();
    let home = cluster.installation().server_home();
    let home = match owner == rustix::process::geteuid().as_raw() {
        // A person who runs the tests under their own name does other things at home meanwhile.
        true => home.join(".cache/Microsoft"),
        false => Path::new("/proc")
            .join(cluster.postmaster().to_string())
            .join("root")
            .join(home.strip_prefix("/").unwrap()),
    };
    for folder in [&home, Path::new("/tmp"), Path::new("/var/tmp"), Path::new("/dev/shm")] {
        changed_since(start, owner, folder, &mut outside);
    }
    assert!(outside.is_empty(), "the engine (PID {}) or its server left {outside:#?}", engine.pid);

    // What a library wants to send it may send when it is unloaded.
    engine.signal(rustix::process::Signal::TERM);
    wait_until("the engine ends", super::LIMIT, || !engine.runs());
    assert_eq!(tries_to_reach_somebody(&cluster), 0, "somebody was to be reached");
    // The counters do count: the server itself is made to try.
    let knock = "COPY (SELECT 1) TO PROGRAM 'bash -c \"echo > /dev/udp/192.0.2.1/53\"'";
    assert!(database.admin().try_run(knock).is_err(), "192.0.2.1 can be reached");
    assert!(tries_to_reach_somebody(&cluster) > 0, "the counters count nothing");
}
