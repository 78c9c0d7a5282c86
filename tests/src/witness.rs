//! A connection that is idle all the while and then tells whether the server restarted.
//!
//! After a crash of any backend the postmaster ends all others, so a session that still answers is proof.

use crate::{Cluster, Session};

/// Opened before something dangerous, asked after it.
pub struct Witness {
    session: Session,
    postmaster_start: String,
}

impl Witness {
    /// Connects, and leaves a mark that only this session can see.
    pub fn of(cluster: &Cluster) -> Self {
        let mut session = cluster.connect("postgres", "postgres");
        session.run("CREATE TEMP TABLE witness AS SELECT 1 AS mark");
        let postmaster_start = session.value("SELECT pg_postmaster_start_time()");
        Self { session, postmaster_start }
    }

    /// Panics if the server restarted, or went through crash recovery, since the witness connected.
    #[track_caller]
    pub fn assert_no_restart(&mut self) {
        let seen = self.session.try_rows("SELECT pg_postmaster_start_time(), (SELECT mark FROM witness)");
        let rows = seen.unwrap_or_else(|failure| panic!("the server restarted: {failure}"));
        assert_eq!(rows[0][0].as_deref(), Some(self.postmaster_start.as_str()), "the server restarted");
    }
}
