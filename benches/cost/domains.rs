//! A caller who sees 10,000 domains of 10 chunks: collections of as many application users, each granted to them and
//! accepted. Rows and segments are made here and copied in, as ingestion would leave them.

use crate::memory::private_mib;
use crate::profile;
use crate::report::Report;
use rag_benches::{Library, Times, Words, timed};
use rag_bm25::{Entry, Language};
use rag_tests::Cluster;
use std::fmt::Write as _;
use std::io::Write as _;

/// `RAG_BENCH_DOMAINS` takes another number of domains.
const DOMAINS: u64 = 10_000;
const CHUNKS: u64 = 10;
const WORDS: usize = 60;

const QUERIES: [&str; 5] =
    ["mor", "kes tov", "cordel jofim natris", "+gan hulba -lim", "ba cor del fim gan hul jo kes"];

/// Rounds of all queries.
const ROUNDS: usize = 4;

/// A search that takes longer is given up, and the table says so.
const LONGEST: &str = "2 min";

pub(crate) fn measure(report: &mut Report, cluster: &Cluster) {
    let count = std::env::var("RAG_BENCH_DOMAINS").map_or(DOMAINS, |count| count.parse().unwrap());
    let library = Library::new(cluster, "domains");
    eprintln!("making {count} domains");
    fill(&library, count);

    let what = format!("keyword search over {count} domains of {CHUNKS} chunks");
    let mut session = library.session();
    session.run(&format!("SET statement_timeout = '{LONGEST}'"));
    let before = private_mib(session.pid());
    let pid = session.pid();
    let client = session.client();
    let search =
        client.prepare("SELECT rank, uri, score FROM rag_search($1, k => 10, mode => 'keyword')").unwrap();
    let (first, rows) = timed(|| client.query(&search, &[&QUERIES[0]]));
    let Ok(rows) = rows else {
        report.note(what, format!("given up after {LONGEST}: {:?}", rows.err()), "");
        return;
    };
    assert_eq!(rows.len(), 10, "ten of them have the word");
    profile::begin(&library);
    let mut warm = Times::default();
    for query in QUERIES.iter().cycle().take(QUERIES.len() * ROUNDS) {
        warm.take(|| client.query(&search, &[query]).unwrap());
    }
    profile::print(&library, "search over many domains");
    let added = private_mib(pid) - before;
    report.note(
        what,
        format!("{} once warm", warm.shown()),
        format!(
            "first search of a session {:.0} ms, {added:.1} MiB private after all",
            first.as_secs_f64() * 1e3
        ),
    );
}

/// The n-th id of a kind.
fn id(kind: u64, n: u64) -> u128 {
    (u128::from(kind) << 96) | (0x7000_8000 << 64) | u128::from(n + 1)
}

fn uuid(id: u128) -> String {
    let digits = format!("{id:032x}");
    format!("{}-{}-{}-{}-{}", &digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..])
}

fn fill(library: &Library<'_>, count: u64) {
    let gateway = library.database().gateway("gateway");
    let mut copied = Copied::default();
    let mut words = Words::seeded(3);
    for domain in 0..count {
        copied.add_domain(domain, library.role(), &gateway, &mut words);
    }
    let mut admin = library.admin();
    let client = admin.client();
    let mut transaction = client.transaction().unwrap();
    // No trigger is to queue or to resolve anything: the rows are as ingestion leaves them.
    transaction.batch_execute("SET LOCAL session_replication_role = replica").unwrap();
    for (table, rows) in copied.tables() {
        let mut writer = transaction.copy_in(&format!("COPY {table} FROM STDIN")).unwrap();
        writer.write_all(rows.as_bytes()).unwrap();
        writer.finish().unwrap();
    }
    transaction.commit().unwrap();
    for table in [
        "collection",
        "domain",
        "collection_grant",
        "accepted_collection",
        "document",
        "section",
        "chunk",
        "segment",
    ] {
        admin.run(&format!("VACUUM ANALYZE rag.{table}"));
    }
}

/// Rows in the text format of COPY.
#[derive(Default)]
struct Copied {
    collections: String,
    domains: String,
    grants: String,
    accepted: String,
    documents: String,
    sections: String,
    chunks: String,
    segments: String,
}

impl Copied {
    fn tables(&self) -> [(&'static str, &str); 8] {
        [
            ("rag.collection (id, name, owner, owner_role, model, language)", &self.collections),
            ("rag.domain (id, collection_id, owner, owner_role)", &self.domains),
            (
                "rag.collection_grant (domain_id, collection_id, owner, owner_role, principal, principal_role, privilege, shared)",
                &self.grants,
            ),
            ("rag.accepted_collection (domain_id, principal, principal_role)", &self.accepted),
            (
                "rag.document (domain_id, id, collection, owner, title, uri, content, text, status, chunks)",
                &self.documents,
            ),
            (
                "rag.section (domain_id, id, document_id, ordinal, header_path, char_from, char_to)",
                &self.sections,
            ),
            (
                "rag.chunk (domain_id, id, document_id, section_id, ordinal, content, context, tokens, char_from, char_to, sha256)",
                &self.chunks,
            ),
            (
                "rag.segment (domain_id, id, part, parts, language, analyser_version, entries, bytes, sha256, data)",
                &self.segments,
            ),
        ]
    }

    fn add_domain(&mut self, n: u64, role: &str, gateway: &str, words: &mut Words) {
        let (collection, domain, owner) = (uuid(id(1, n)), uuid(id(2, n)), format!("user:{gateway}/{n}"));
        writeln!(self.collections, "{collection}\tc\t{owner}\t{gateway}\tbge-small-en-v1.5\tenglish")
            .unwrap();
        writeln!(self.domains, "{domain}\t{collection}\t{owner}\t{gateway}").unwrap();
        writeln!(self.grants, "{domain}\t{collection}\t{owner}\t{gateway}\trole:{role}\t{role}\tread\tf")
            .unwrap();
        writeln!(self.accepted, "{domain}\trole:{role}\t{role}").unwrap();
        let mut entries = Vec::new();
        for chunk in (0..CHUNKS).map(|place| n * CHUNKS + place) {
            let (title, text) = (words.text(6), words.text(WORDS));
            let (document, section) = (uuid(id(3, chunk)), uuid(id(4, chunk)));
            let length = text.len();
            writeln!(
                self.documents,
                "{domain}\t{document}\tc\t{owner}\t{title}\tu{chunk}\t{text}\t{text}\tdone\t1"
            )
            .unwrap();
            writeln!(self.sections, "{domain}\t{section}\t{document}\t0\t{{}}\t0\t{length}").unwrap();
            let hash = hex(&rag_benches::digest(text.as_bytes()));
            writeln!(
                self.chunks,
                "{domain}\t{}\t{document}\t{section}\t0\t{text}\t{title}\t{WORDS}\t0\t{length}\t{hash}",
                uuid(id(5, chunk))
            )
            .unwrap();
            entries.push((id(5, chunk), title, text));
        }
        let blob = rag_bm25::build(
            Language::English,
            entries.iter().map(|(id, title, body)| Entry { id: *id, title, body }),
        )
        .unwrap();
        writeln!(
            self.segments,
            "{domain}\t{}\t0\t1\tenglish\t{}\t{CHUNKS}\t{}\t{}\t{}",
            uuid(id(6, n)),
            rag_bm25::ANALYSER_VERSION,
            blob.len(),
            hex(&rag_benches::digest(&blob)),
            hex(&blob)
        )
        .unwrap();
    }
}

/// Bytes as COPY reads them.
fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2 + 3);
    text.push_str("\\\\x");
    for byte in bytes {
        write!(text, "{byte:02x}").unwrap();
    }
    text
}
