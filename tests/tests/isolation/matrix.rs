//! Every relation of the extension for every kind of caller: the rows they see are exactly those that belong
//! to the owners they may see. A relation or function that this file does not know fails the test.

use super::own_something;
use rag_tests::{Database, Session, wait_until};
use std::time::Duration;

/// Relations whose rows belong to a domain.
const BY_DOMAIN: [&str; 12] = [
    "document",
    "chunk",
    "section",
    "segment",
    "job",
    "metadata_value",
    "mined_acronym",
    "deletion_count",
    "entity_mention",
    "entity_relation",
    "document_link",
    "graph_job",
];
/// Relations that are not for ordinary roles.
const INTERNAL: [&str; 12] = [
    "gateway",
    "log_reader",
    "restore",
    "prompt",
    "embedding",
    "vector_space",
    "segment_codes",
    "added_policy",
    "builtin_policy",
    "merge_failure",
    "allowed",
    "allowed_privilege",
];
/// Views over documents, with an owner.
const BY_OWNER: [&str; 8] = [
    "answer_citation",
    "job_status",
    "failed_job",
    "document_in",
    "graph_entity",
    "graph_relation",
    "graph_link",
    "graph_status",
];

struct Persona {
    name: &'static str,
    session: Session,
    /// Owners whose rows they see.
    sees: Vec<String>,
}

fn personas(database: &Database<'_>) -> Vec<Persona> {
    let mut admin = database.admin();
    let [ann, bob, team, stranger] = ["ann", "bob", "team", "stranger"].map(|name| database.role(name));
    let [one, two] = ["one", "two"].map(|name| database.gateway(name));
    admin.run(&format!("GRANT {team} TO {bob}"));
    for role in [&ann, &bob, &team] {
        let mut session = database.connect(role);
        write_everything(&mut session, role);
    }
    for gateway in [&one, &two] {
        let mut session = database.connect(gateway);
        session.run("SET rag_ext.user_id = '7'");
        write_everything(&mut session, gateway);
    }
    // As workers write it.
    admin.run(
        "INSERT INTO rag.answer_log (owner, owner_role, answered_at, question, answer, found, method, citations, models, milliseconds, stages, shortened)
         SELECT d.owner, m.owner_role, now(), 'whose is it', d.text, true, 'extractive',
                jsonb_build_array(jsonb_build_object('n', 1, 'document_id', d.id, 'domain_id', d.domain_id, 'sha256', encode(d.sha256, 'hex'), 'own', true)),
                '{}', 1, '[{\"stage\": \"support\", \"ms\": 1}]', '{}'
         FROM rag.document d JOIN rag.domain m ON m.id = d.domain_id WHERE d.status = 'done'",
    );
    // What is compared is read twice, and workers merge segments for a while after the last document is done.
    wait_until("the workers have left", Duration::from_secs(120), || {
        admin.count("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type LIKE 'rag_ext%'") == 0
    });
    let persona = |name, role: &str, setting: &str, sees: &[String]| {
        let mut session = database.connect(role);
        session.run(setting);
        Persona { name, session, sees: sees.to_vec() }
    };
    let role = |name: &str| format!("role:{name}");
    let user = |gateway: &str| format!("user:{gateway}/7");
    vec![
        persona("a role", &ann, "", &[role(&ann)]),
        persona("a role that inherits", &bob, "", &[role(&bob), role(&team)]),
        persona("the group itself", &team, "", &[role(&team)]),
        persona("a role without documents", &stranger, "", &[]),
        persona("SET ROLE to the group", &bob, &format!("SET ROLE {team}"), &[role(&team)]),
        persona("a user behind a gateway", &one, "SET rag_ext.user_id = '7'", &[user(&one)]),
        persona("the same id behind another", &two, "SET rag_ext.user_id = '7'", &[user(&two)]),
        persona("another user", &one, "SET rag_ext.user_id = '8'", &[]),
        persona("a gateway without user", &one, "", &[]),
    ]
}

/// Leaves a row in every table: documents done, failed and deleted, metadata, a collection of one's own.
fn write_everything(session: &mut Session, label: &str) {
    own_something(session, label);
    let gone = session.ingest(&format!("Soon gone, owned by {label}."), "gone");
    session.run(&format!("DELETE FROM rag.document WHERE id = '{gone}'"));
    // No chat model is configured, so its chunks wait.
    session.run("SELECT rag_create_collection('extra', options => '{\"graph\": \"chat\"}')");
    session.run(&format!(
        "INSERT INTO rag.document (collection, content, metadata) VALUES ('extra', 'More that is owned by {label}, in a folder of its own (FOO): max_wal_size depends on wal_level, see FC-001-234.', '{{\"label\": [\"{label}\", 1, true]}}')"
    ));
    session.run("SELECT rag_set_acronym('extra', 'OB', 'owned by')");
    session.run("INSERT INTO rag.metadata_rule (name, key, pattern) VALUES ('own', 'own', 'owned by')");
    session.run("SELECT rag_ingest_bytes(decode('255044462d312e37', 'hex'), title => 'unreadable')");
    session.settle();
    session.run("SELECT rag_feedback('whose is it', id, 1) FROM rag.chunk");
}

fn list(owners: &[String]) -> String {
    let quoted: Vec<String> = owners.iter().map(|owner| format!("'{owner}'")).collect();
    format!("ARRAY[{}]::text[]", quoted.join(", "))
}

#[test]
fn every_relation_shows_each_caller_exactly_his_rows() {
    let database = Database::new("matrix");
    let mut people = personas(&database);
    let mut admin = database.admin();
    let relations = admin.column(
        "SELECT c.relname FROM pg_depend d JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
         JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
         WHERE e.extname = 'rag_ext' AND d.deptype = 'e' AND c.relkind IN ('r', 'p', 'v', 'm') ORDER BY 1",
    );
    let open = admin.column(
        "SELECT c.oid::regclass FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE n.nspname = 'rag' AND c.relkind IN ('r', 'p') AND NOT (c.relrowsecurity AND c.relforcerowsecurity)
           AND has_table_privilege('public', c.oid, 'SELECT')",
    );
    assert!(open.is_empty(), "readable by PUBLIC without row security: {open:?}");

    for person in &mut people {
        let owners = list(&person.sees);
        for relation in &relations {
            let relation = relation.as_str();
            let shown = format!(
                "SELECT coalesce(md5(string_agg(t::text, ',' ORDER BY t::text)), '') || count(*) FROM rag.{relation} t"
            );
            let domains = format!("SELECT id FROM rag.domain WHERE owner = ANY ({owners})");
            let expected = match relation {
                _ if BY_DOMAIN.contains(&relation) => format!("{shown} WHERE domain_id IN ({domains})"),
                _ if BY_OWNER.contains(&relation) => format!("{shown} WHERE owner = ANY ({owners})"),
                "domain" | "collection" | "feedback" | "query_log" | "answer_log" => {
                    format!("{shown} WHERE owner = ANY ({owners})")
                }
                // They name neither domain nor owner: as many as these owners have, each of which has their own documents.
                "feedback_query" | "feedback_judgement" | "feedback_chunk_judgement" => {
                    let key = match relation {
                        "feedback_query" => "query",
                        "feedback_judgement" => "document_id",
                        _ => "chunk_id",
                    };
                    let seen = person.session.count(&format!("SELECT count(*) FROM rag.{relation}"));
                    let wanted = admin.count(&format!(
                        "SELECT count(DISTINCT {key}) FROM rag.feedback WHERE owner = ANY ({owners})"
                    ));
                    assert_eq!(seen, wanted, "{}: rag.{relation}", person.name);
                    continue;
                }
                "collection_status" => {
                    // Its figures are of the caller's rows, so only its keys can be compared.
                    let keys =
                        "SELECT coalesce(string_agg(collection_id::text, ',' ORDER BY collection_id), '')";
                    let seen = person.session.value(&format!("{keys} FROM rag.collection_status"));
                    let wanted = admin.value(&format!("{keys} FROM (SELECT id AS collection_id FROM rag.collection WHERE owner = ANY ({owners})) x"));
                    assert_eq!(seen, wanted, "{}: rag.{relation}", person.name);
                    continue;
                }
                // Of rows that are summed up: as many as these owners have.
                "answers_per_day" | "stage_latency" | "cited_document" => {
                    let (what, of) = match relation {
                        "answers_per_day" => ("answers + refusals", "count(*)"),
                        "stage_latency" => ("runs", "sum(jsonb_array_length(stages))"),
                        _ => ("citations", "sum(jsonb_array_length(citations))"),
                    };
                    let seen = person
                        .session
                        .count(&format!("SELECT coalesce(sum({what}), 0)::bigint FROM rag.{relation}"));
                    let wanted = admin.count(&format!(
                        "SELECT coalesce({of}, 0)::bigint FROM rag.answer_log WHERE owner = ANY ({owners})"
                    ));
                    assert_eq!(seen, wanted, "{}: rag.{relation}", person.name);
                    continue;
                }
                // Attached tables and changes of the model are tested on their own.
                "model_change"
                | "model_change_status"
                | "collection_grant"
                | "accepted_collection"
                | "attachment"
                | "attached_row"
                | "attached_change"
                | "attached_document"
                | "attachment_status" => {
                    format!("{shown} WHERE false")
                }
                _ if INTERNAL.contains(&relation) => {
                    person.session.refuses("42501", &format!("SELECT * FROM rag.{relation}"));
                    continue;
                }
                "acronym" => {
                    let collections = format!("SELECT id FROM rag.collection WHERE owner = ANY ({owners})");
                    format!("{shown} WHERE collection_id IN ({collections})")
                }
                "metadata_rule" => format!("{shown} WHERE owner = 'public' OR owner = ANY ({owners})"),
                "engine_status" | "model" => {
                    assert!(person.session.count(&format!("SELECT count(*) FROM rag.{relation}")) > 0);
                    continue;
                }
                unknown => panic!("rag.{unknown} is not in this matrix"),
            };
            assert_eq!(
                person.session.value(&shown),
                admin.value(&expected),
                "{}: rag.{relation}",
                person.name
            );
        }
        let leaf = admin.value(
            "SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'rag.embedding'::regclass LIMIT 1",
        );
        person.session.refuses("42501", &format!("SELECT count(*) FROM {leaf}"));
    }
    // Counts of deletions last only until the next merge.
    for table in BY_DOMAIN.iter().filter(|table| **table != "deletion_count") {
        assert!(
            admin.count(&format!("SELECT count(*) FROM rag.{table}")) > 0,
            "rag.{table} is empty, so nothing was tested"
        );
    }
}

#[test]
fn every_function_gives_each_caller_only_what_is_his() {
    let database = Database::new("functions");
    let mut people = personas(&database);
    let mut admin = database.admin();
    let chunks = admin.column("SELECT id FROM rag.chunk");
    let all = format!("ARRAY['{}']::uuid[]", chunks.join("', '"));
    for person in &mut people {
        let owners = list(&person.sees);
        let own_chunks = format!(
            "SELECT c.id FROM rag.chunk c JOIN rag.document d ON d.id = c.document_id WHERE d.owner = ANY ({owners}) ORDER BY 1"
        );
        let expected = admin.column(&own_chunks);
        for mode in ["vector", "hybrid"] {
            let found = person.session.column(&format!(
                "SELECT chunk_id FROM rag_search('owned', k => 1000, mode => '{mode}') ORDER BY 1"
            ));
            assert_eq!(found, expected, "{}: {mode}", person.name);
        }
        let keyword = person
            .session
            .column("SELECT chunk_id FROM rag_search('owned', k => 1000, mode => 'keyword') ORDER BY 1");
        assert_eq!(keyword, expected, "{}: keyword", person.name);
        let vectors = person.session.column(&format!("SELECT chunk_id FROM rag_vectors({all}) ORDER BY 1"));
        assert_eq!(vectors, expected, "{}: rag_vectors", person.name);
        let reranked = person
            .session
            .column(&format!("SELECT chunk_id FROM rag_rerank_chunks('owned', {all}) ORDER BY 1"));
        assert_eq!(reranked, expected, "{}: rag_rerank_chunks", person.name);
        let answer = person
            .session
            .json("SELECT rag_answer('Who owns this note?', options => '{\"min_support\": 0}')");
        for citation in answer["citations"].as_array().unwrap() {
            let id = citation["chunk_id"].as_str().unwrap().to_owned();
            assert!(expected.contains(&id), "{}: {answer:#}", person.name);
        }
        let related = person
            .session
            .column("SELECT DISTINCT chunk_id FROM rag_related('wal_level') UNION SELECT DISTINCT chunk_id FROM rag_related('FC-001-234')");
        assert!(related.iter().all(|id| expected.contains(id)), "{}: rag_related", person.name);
        let cited = person
            .session
            .column("SELECT document_id FROM rag_cite('Who owns this note?') WHERE n IS NOT NULL");
        for id in cited {
            assert_eq!(
                admin.count(&format!(
                    "SELECT count(*) FROM rag.document WHERE id = '{id}' AND owner = ANY ({owners})"
                )),
                1
            );
        }
        if expected.is_empty() {
            assert_eq!(answer["found"], false, "{}", person.name);
        }
        let failed = admin.count(&format!(
            "SELECT count(*) FROM rag.document WHERE status = 'failed' AND owner = ANY ({owners})"
        ));
        person.session.run("BEGIN");
        assert_eq!(person.session.count("SELECT rag_retry()"), failed, "{}: rag_retry", person.name);
        person.session.run("ROLLBACK");
    }
}

#[test]
fn without_rag_enable_nothing_can_be_called_and_nothing_read() {
    let database = Database::new("outsider");
    let outsider = database.outsider("outsider", "");
    let mut session = database.connect(&outsider);
    let mut admin = database.admin();
    let calls = admin.column(
        "SELECT format('SELECT %s(%s)', p.oid::regproc, (SELECT string_agg(format('NULL::%s', format_type(t, NULL)), ', ') FROM unnest(p.proargtypes) t))
         FROM pg_depend d JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
         JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
         WHERE e.extname = 'rag_ext' AND d.deptype = 'e' AND p.prorettype <> 'trigger'::regtype
           AND p.prorettype <> 'internal'::regtype ORDER BY 1",
    );
    assert!(calls.len() > 20, "{calls:?}");
    for call in &calls {
        session.refuses("42501", call);
    }
    let relations = admin.column("SELECT oid::regclass FROM pg_class WHERE relnamespace = 'rag'::regnamespace AND relkind IN ('r', 'p', 'v')");
    for relation in relations {
        session.refuses("42501", &format!("SELECT * FROM {relation}"));
    }
    admin.run(&format!("SELECT rag_enable('{outsider}')"));
    own_something(&mut session, "a newcomer");
    assert_eq!(session.count("SELECT count(*) FROM rag_search('owned')"), 1);
    admin.run(&format!("SELECT rag_disable('{outsider}')"));
    session.refuses("42501", "SELECT * FROM rag_search('owned')");
    session.refuses("42501", "SELECT * FROM rag.document");
    admin.run("SELECT rag_enable('public')");
    assert_eq!(session.count("SELECT count(*) FROM rag_search('owned')"), 1);
    admin.run("SELECT rag_disable('public')");
    session.refuses("42501", "SELECT * FROM rag_search('owned')");
}
