//! What merging in the background writes: bytes of all segments ever written for a domain beside those that are left.

use crate::report::{Line, Report};
use rag_benches::Library;

/// Segments of one tier that become one of the next.
const FAN_IN: f64 = 8.0;

/// A note of every segment that is written from now on.
pub(crate) struct SegmentLog {
    start: String,
}

/// Begins to note segments.
pub(crate) fn watch(library: &Library<'_>) -> SegmentLog {
    let mut admin = library.admin();
    admin.run(
        "CREATE SCHEMA noted;
         CREATE TABLE noted.segment (entries integer, bytes bigint);
         CREATE FUNCTION noted.note() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             INSERT INTO noted.segment VALUES (NEW.entries, NEW.bytes);
             RETURN NULL;
         END $$;
         CREATE TRIGGER noted AFTER INSERT ON rag.segment FOR EACH ROW WHEN (NEW.part = 0) EXECUTE FUNCTION noted.note()",
    );
    SegmentLog { start: admin.value("SELECT pg_current_wal_lsn()") }
}

/// Reports what was noted, once the workers have left.
pub(crate) fn measure(report: &mut Report, library: &Library<'_>, log: &SegmentLog) {
    library.settle();
    let mut admin = library.admin();
    let written = admin.rows("SELECT count(*), sum(entries), sum(bytes) FROM noted.segment");
    let left = admin.rows("SELECT count(*), sum(entries), sum(bytes) FROM rag.segment WHERE part = 0");
    let number =
        |rows: &[Vec<Option<String>>], at: usize| rows[0][at].as_ref().unwrap().parse::<f64>().unwrap();
    let entries = number(&written, 1) / number(&left, 1);
    let most = 1.0 + number(&left, 1).log(FAN_IN).ceil();
    report.add(Line {
        what: "merging: entries written beside entries left".into(),
        found: format!("{} in {} segments", number(&written, 1), number(&written, 0)),
        beside: format!("{} in {} segments", number(&left, 1), number(&left, 0)),
        ratio: format!("{entries:.2} ×"),
        target: format!("≤ 1 + log₈ n = {most:.0} ×"),
        reached: Some(entries <= most),
    });
    let mib = 1024.0 * 1024.0;
    let logged: f64 =
        admin.value(&format!("SELECT pg_current_wal_lsn() - '{}'::pg_lsn", log.start)).parse().unwrap();
    report.note(
        "merging: bytes of segments written beside bytes left",
        format!("{:.1} MiB", number(&written, 2) / mib),
        format!("{:.1} MiB; all WAL {:.0} MiB", number(&left, 2) / mib, logged / mib),
    );
}
