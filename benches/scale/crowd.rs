//! A small owner beside 200,000 others with a domain each, and beside 300 attached tables of somebody else: both have
//! nothing of theirs to see, so it must not cost them anything.

use crate::codes;
use crate::figures::Figures;
use crate::made::Source;
use crate::owner::Owner;
use crate::questions::Questions;
use crate::searches;
use rag_benches::{Library, without_triggers};
use rag_tests::Cluster;

/// Owners with a collection and a domain.
const OWNERS: usize = 200_000;

/// Tables that one role has attached.
const TABLES: usize = 300;

pub(crate) fn measure(figures: &mut Figures, source: &Source, questions: &Questions) {
    let cluster = crate::quiet(Cluster::builder("crowd")).setting("rag_ext.merge_enabled", "off").start();
    figures.begin(crate::SMALL);
    let alone = Library::new(&cluster, "alone");
    let crowd = Library::new(&cluster, "crowd");
    let attached = Library::new(&cluster, "attached");
    let [mut of_alone, mut of_crowd, mut of_attached] = [&alone, &crowd, &attached].map(|library| {
        codes::hold_workers(library);
        let mut owner = Owner::new(library, library.role(), "small");
        owner.fill(library, source, crate::SMALL);
        codes::wait_for_codes(library);
        owner
    });
    add_owners(&crowd);
    attach_tables(&attached);
    let names = ["beside 200,000 owners", "alone (owners)", "200,000 owners / alone"];
    searches::measure_beside(figures, &mut of_crowd, &mut of_alone, names, questions);
    let names = ["beside 300 tables", "alone (tables)", "300 attached tables / alone"];
    searches::measure_beside(figures, &mut of_attached, &mut of_alone, names, questions);
}

/// Owners that are application users of a gateway, each with a collection and a domain in it.
fn add_owners(library: &Library<'_>) {
    let gateway = library.database().gateway("gateway");
    let mut admin = library.admin();
    eprintln!("{OWNERS} owners");
    let mut transaction = admin.client().transaction().unwrap();
    without_triggers(&mut transaction);
    let owner = format!("'user:{gateway}/' || n, '{gateway}'::regrole");
    let ids = |kind: &str| format!("md5('{kind}' || n)::uuid");
    for insert in [
        format!(
            "INSERT INTO rag.collection (id, name, owner, owner_role, model, language)
             SELECT c.id, 'c', c.owner, c.role, 'bge-small-en-v1.5', 'english'
             FROM (SELECT n, {}, {owner} FROM generate_series(1, {OWNERS}) n) c (n, id, owner, role)",
            ids("1")
        ),
        format!(
            "INSERT INTO rag.domain (id, collection_id, owner, owner_role)
             SELECT {}, {}, {owner} FROM generate_series(1, {OWNERS}) n",
            ids("2"),
            ids("1")
        ),
    ] {
        transaction.batch_execute(&insert).unwrap();
    }
    transaction.commit().unwrap();
    admin.run("VACUUM ANALYZE rag.collection");
    admin.run("VACUUM ANALYZE rag.domain");
}

fn attach_tables(library: &Library<'_>) {
    let other = library.database().role("other");
    library.admin().run(&format!("GRANT CREATE ON SCHEMA public TO {other}"));
    let mut session = library.database().connect(&other);
    eprintln!("{TABLES} attached tables");
    for number in 0..TABLES {
        session.run(&format!("CREATE TABLE t{number} (id int PRIMARY KEY, body text)"));
        session.run(&format!("SELECT rag_attach('t{number}', content => ARRAY['body'])"));
    }
    session.settle();
}
