//! What the catalogs say of an extension's objects, a line each, so that two databases can be compared.

use crate::Session;
use std::collections::BTreeSet;

/// Relations of the schema, with the partitions that workers make when a model is first used.
const RELATIONS: &str =
    "(SELECT c.*, c.oid::regclass::text AS name FROM pg_class c WHERE c.relnamespace = 'rag'::regnamespace)";

/// Members of the extension of one catalog.
const MEMBERS: &str = "SELECT m.objid FROM pg_depend m JOIN pg_extension e ON m.refobjid = e.oid
    WHERE m.refclassid = 'pg_extension'::regclass AND m.deptype = 'e' AND e.extname = 'rag_ext' AND m.classid =";

/// Fails with what only one of two descriptions has.
#[track_caller]
pub fn assert_same(what: &str, expected: &BTreeSet<String>, found: &BTreeSet<String>) {
    let missing: Vec<_> = expected.difference(found).collect();
    let extra: Vec<_> = found.difference(expected).collect();
    assert!(missing.is_empty() && extra.is_empty(), "{what}: missing {missing:#?} and instead {extra:#?}");
}

/// A line for each object, with all that CREATE, ALTER, COMMENT and GRANT can say of it. The order of columns counts: rows
/// are written and read as wholes.
pub fn described(session: &mut Session) -> BTreeSet<String> {
    let grants = |acl: &str| {
        format!(
            "(SELECT string_agg(format('%s=%s%s', CASE g.grantee WHEN 0 THEN 'public' ELSE g.grantee::regrole::text END,
                                       g.privilege_type, CASE WHEN g.is_grantable THEN '*' END), ','
                                ORDER BY g.grantee::regrole::text COLLATE \"C\", g.privilege_type)
              FROM aclexplode({acl}) g)"
        )
    };
    let queries = [
        "SELECT concat_ws(' ', 'extension', extversion, extnamespace::regnamespace, extrelocatable) FROM pg_extension WHERE extname = 'rag_ext'".into(),
        "SELECT concat_ws(' ', 'dumped', t.oid::regclass, c.condition)
         FROM pg_extension e, unnest(e.extconfig, e.extcondition) c (oid, condition) JOIN pg_class t ON t.oid = c.oid
         WHERE e.extname = 'rag_ext'"
            .into(),
        "SELECT 'member ' || pg_describe_object(d.classid, d.objid, 0)
         FROM pg_depend d JOIN pg_extension e ON d.refobjid = e.oid
         WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND e.extname = 'rag_ext'"
            .into(),
        format!(
            "SELECT concat_ws(' ', 'relation', name, relowner::regrole, relkind, relpersistence, relrowsecurity,
                              relforcerowsecurity, relreplident, reloptions,
                              (SELECT t.reloptions FROM pg_class t WHERE t.oid = c.reltoastrelid), (SELECT amname FROM pg_am WHERE oid = relam), pg_get_partkeydef(oid), pg_get_expr(relpartbound, oid), {})
             FROM {RELATIONS} c",
            grants("relacl")
        ),
        format!(
            "SELECT concat_ws(' ', 'column', c.name, row_number() OVER (PARTITION BY c.oid ORDER BY a.attnum), a.attname,
                              format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attgenerated, a.attstorage,
                              a.attcompression, a.attstattarget, a.attoptions, a.attcollation::regcollation, pg_get_expr(d.adbin, d.adrelid), {})
             FROM pg_attribute a JOIN {RELATIONS} c ON c.oid = a.attrelid
             LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
             WHERE a.attnum > 0 AND NOT a.attisdropped",
            grants("a.attacl")
        ),
        format!(
            "SELECT concat_ws(' ', 'constraint', c.name, k.conname, pg_get_constraintdef(k.oid), k.convalidated)
             FROM pg_constraint k JOIN {RELATIONS} c ON c.oid = k.conrelid"
        ),
        format!(
            "SELECT concat_ws(' ', 'index', pg_get_indexdef(i.indexrelid), i.indisvalid, i.indisreplident)
             FROM pg_index i JOIN {RELATIONS} c ON c.oid = i.indrelid"
        ),
        format!("SELECT concat_ws(' ', 'view', name, pg_get_viewdef(oid)) FROM {RELATIONS} c WHERE relkind IN ('v', 'm')"),
        format!(
            "SELECT concat_ws(' ', 'sequence', c.name, seqtypid::regtype, seqstart, seqincrement, seqmax, seqmin, seqcache, seqcycle)
             FROM pg_sequence s JOIN {RELATIONS} c ON c.oid = s.seqrelid"
        ),
        format!("SELECT 'statistics ' || pg_get_statisticsobjdef(s.oid) FROM pg_statistic_ext s JOIN {RELATIONS} c ON c.oid = s.stxrelid"),
        "SELECT 'policy ' || p::text FROM pg_policies p WHERE schemaname = 'rag'".into(),
        format!(
            "SELECT concat_ws(' ', 'trigger', pg_get_triggerdef(t.oid), t.tgenabled)
             FROM pg_trigger t JOIN {RELATIONS} c ON c.oid = t.tgrelid WHERE NOT t.tgisinternal"
        ),
        format!(
            "SELECT concat_ws(' ', 'event trigger', evtname, evtevent, evttags, evtenabled, evtfoid::regprocedure)
             FROM pg_event_trigger WHERE oid IN ({MEMBERS} 'pg_event_trigger'::regclass)"
        ),
        format!(
            "SELECT concat_ws(' ', 'function', p.oid::regprocedure, p.proowner::regrole, p.prokind, {},
                              CASE WHEN p.prokind <> 'a' THEN pg_get_functiondef(p.oid) END)
             FROM pg_proc p WHERE p.oid IN ({MEMBERS} 'pg_proc'::regclass)",
            grants("p.proacl")
        ),
        format!(
            "SELECT concat_ws(' ', 'type', t.oid::regtype, t.typtype, t.typnotnull, format_type(t.typbasetype, t.typtypmod),
                              (SELECT string_agg(l.enumlabel, ',' ORDER BY l.enumsortorder) FROM pg_enum l WHERE l.enumtypid = t.oid))
             FROM pg_type t WHERE t.oid IN ({MEMBERS} 'pg_type'::regclass)"
        ),
        format!("SELECT concat_ws(' ', 'schema', nspname, {}) FROM pg_namespace WHERE nspname = 'rag'", grants("nspacl")),
        format!(
            "SELECT concat_ws(' ', 'comment', pg_describe_object(d.classoid, d.objoid, d.objsubid), d.description)
             FROM pg_description d
             WHERE d.objoid IN ({MEMBERS} d.classoid)
                OR d.objoid IN (SELECT t.oid FROM pg_trigger t JOIN {RELATIONS} c ON c.oid = t.tgrelid)
                OR d.objoid IN (SELECT p.oid FROM pg_policy p JOIN {RELATIONS} c ON c.oid = p.polrelid)
                OR d.objoid IN (SELECT k.oid FROM pg_constraint k WHERE k.connamespace = 'rag'::regnamespace)
                OR d.objoid IN (SELECT c.oid FROM {RELATIONS} c WHERE c.relkind IN ('i', 'I'))"
        ),
    ];
    queries.iter().flat_map(|sql| session.column(sql)).collect()
}

/// A partition of rag.embedding, without its name and the id of its vector space.
pub fn partition(session: &mut Session, model: &str) -> Vec<String> {
    let [leaf, space] = ["p.inhrelid::regclass", "s.id"].map(|what| {
        session.value(&format!(
            "SELECT {what} FROM rag.vector_space s, pg_inherits p JOIN pg_class c ON c.oid = p.inhrelid
             WHERE p.inhparent = 'rag.embedding'::regclass AND s.model = '{model}'
               AND pg_get_expr(c.relpartbound, c.oid) LIKE '%' || s.id || '%'"
        ))
    });
    let lines = session.column(&format!(
        "SELECT concat_ws(' ', relkind, relrowsecurity, relforcerowsecurity, reloptions, relacl, pg_get_expr(relpartbound, oid))
         FROM pg_class WHERE oid = '{leaf}'::regclass
         UNION ALL
         SELECT concat_ws(' ', attname, format_type(atttypid, atttypmod), attnotnull, attstorage, attstattarget, attoptions)
         FROM pg_attribute WHERE attrelid = '{leaf}'::regclass AND attnum > 0 AND NOT attisdropped
         UNION ALL SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = '{leaf}'::regclass
         UNION ALL SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = '{leaf}'::regclass
         ORDER BY 1"
    ));
    let short = leaf.trim_start_matches("rag.");
    let mut lines: Vec<String> =
        lines.iter().map(|line| line.replace(short, "leaf").replace(&space, "space")).collect();
    lines.sort();
    lines
}

/// Whom pg_dump leaves out: privileges that scripts of the extension granted, but for the owner's.
pub fn granted_by_scripts(session: &mut Session) -> Vec<String> {
    session.column(
        "SELECT pg_describe_object(i.classoid, i.objoid, i.objsubid) || ' ' || g.grantee::regrole
         FROM pg_init_privs i
         JOIN pg_depend d ON d.classid = i.classoid AND d.objid = i.objoid AND d.deptype = 'e'
         JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
         CROSS JOIN aclexplode(i.initprivs) g
         WHERE e.extname = 'rag_ext' AND g.grantee <> e.extowner",
    )
}

/// All rows, table by table: of a new database those that the extension's own script writes.
pub fn rows(session: &mut Session) -> BTreeSet<String> {
    let tables = session.column(&format!("SELECT name FROM {RELATIONS} c WHERE relkind IN ('r', 'p')"));
    let rows = tables.iter().flat_map(|table| {
        let of_table = session.column(&format!("SELECT t::text FROM {table} t"));
        of_table.into_iter().map(move |row| format!("{table} {row}"))
    });
    rows.collect()
}
