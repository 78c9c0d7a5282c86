//! Keyword search by each of a hundred owners, who share one index and see their own rows alone: ours by its rights, others by
//! a policy of row-level security. What is compared is the time, and how many of the rows that are to be found are.

use crate::codes;
use crate::figures::Figures;
use crate::made::Source;
use crate::owner::Owner;
use crate::peers::{OURS, Peer, keyword_searches, ours};
use crate::questions::Questions;
use rag_benches::{Library, best_times};
use rag_tests::{Cluster, Session, literal};

/// Owners, with as many chunks each.
const OWNERS: usize = 100;

/// Of them so many ask, as often each.
const ASKING: usize = 20;

/// Owners in a database of rag_ext.
pub(crate) struct Tenants<'a> {
    library: Library<'a>,
    roles: Vec<String>,
    asking: Vec<Session>,
}

impl<'a> Tenants<'a> {
    /// All owners together have so many chunks.
    pub(crate) fn fill(cluster: &'a Cluster, source: &Source, chunks: usize) -> Self {
        let library = Library::new(cluster, &format!("tenants_{chunks}"));
        library.database().leave_damaged();
        codes::hold_workers(&library);
        let roles: Vec<String> =
            (0..OWNERS).map(|number| library.database().role(&format!("tenant{number}"))).collect();
        let mut asking = Vec::new();
        for (number, role) in roles.iter().enumerate() {
            let mut owner = Owner::new(&library, role, "tenant").numbered(number);
            owner.fill(&library, source, chunks / OWNERS);
            if number < ASKING {
                asking.push(owner.session);
            }
        }
        Self { library, roles, asking }
    }

    /// What the owners have.
    pub(crate) fn library(&self) -> &Library<'a> {
        &self.library
    }

    /// Times of ours.
    pub(crate) fn measure(&mut self, figures: &mut Figures, questions: &Questions) {
        for search in keyword_searches() {
            let queries = questions.of_form(search.form);
            let [times] = best_times(queries.len(), |_, at| {
                drop(self.asking[at % ASKING].rows(&ours(&queries[at], "{}")));
            });
            figures.add_times(&of_tenants(search.name), OURS, &times);
        }
    }

    /// Times of a peer, whose table has the same rows, and of ours in turn; and how many rows it finds of those that ours
    /// does.
    pub(crate) fn compare(
        &mut self,
        figures: &mut Figures,
        peer: &Peer,
        server: &Cluster,
        admin: &mut Session,
        questions: &Questions,
    ) {
        self.hide_rows(admin);
        let mut theirs: Vec<Session> =
            self.roles[..ASKING].iter().map(|role| server.connect(role, peer.name)).collect();
        theirs.iter_mut().for_each(|session| session.run("SET max_parallel_workers_per_gather = 0"));
        for search in keyword_searches() {
            let name = of_tenants(search.name);
            let queries = questions.of_form(search.form);
            let (mut found, mut expected) = (0, 0);
            for (at, query) in queries.iter().enumerate().take(ASKING) {
                found += theirs[at].rows(&(peer.ask)(query)).len();
                expected += self.asking[at].rows(&ours(query, r#"{"near_duplicates": "keep"}"#)).len();
            }
            let [our_times, their_times] = best_times(queries.len(), |way, at| {
                let asking = at % ASKING;
                drop(match way {
                    0 => self.asking[asking].rows(&ours(&queries[at], "{}")),
                    _ => theirs[asking].rows(&(peer.ask)(&queries[at])),
                });
            });
            figures.add_times(&name, peer.name, &their_times);
            figures.add(&format!("{name}, ours / theirs"), peer.name, "×", our_times.ratio_to(&their_times));
            figures.add(
                &format!("{name}, rows beside ours"),
                peer.name,
                "share",
                found as f64 / expected as f64,
            );
        }
    }

    /// Lets each owner see their own rows of a peer's table.
    fn hide_rows(&self, admin: &mut Session) {
        for role in &self.roles {
            admin.run(&format!(
                "DO $$ BEGIN
                     IF to_regrole({}) IS NULL THEN CREATE ROLE {role} LOGIN; END IF;
                 END $$",
                literal(role)
            ));
        }
        admin.run(
            "CREATE INDEX t_owner ON t (owner);
             GRANT SELECT ON t TO public;
             ALTER TABLE t ENABLE ROW LEVEL SECURITY;
             CREATE POLICY own ON t USING (owner = current_user)",
        );
        admin.run("VACUUM ANALYZE t");
    }
}

/// What figures call a search of theirs.
fn of_tenants(search: &str) -> String {
    format!("{search}, of {OWNERS} owners")
}
