//! One test's place in a cluster: a database with the extension, and roles whose names nobody else has.

use crate::poll::wait_until;
use crate::{Cluster, Session, literal, soundness};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

static COUNTER: AtomicU32 = AtomicU32::new(1);

const TEMPLATE: &str = "rag_template";

/// The cluster that the tests of one binary share. It is gone when the test process is.
pub fn shared() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| {
        let cluster = Cluster::builder("shared").start();
        let mut admin = cluster.connect("postgres", "postgres");
        admin.run(&format!("CREATE DATABASE {TEMPLATE} IS_TEMPLATE true"));
        cluster.connect("postgres", TEMPLATE).run("CREATE EXTENSION rag_ext CASCADE");
        // Nobody, no worker either, is to be in it when it is copied.
        admin.run(&format!("ALTER DATABASE {TEMPLATE} ALLOW_CONNECTIONS false"));
        wait_until("everybody has left the template", Duration::from_secs(30), || {
            admin.count(&format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{TEMPLATE}'")) == 0
        });
        cluster
    })
}

/// A database with rag_ext in it. Dropping it drops the database, and fails the test if `rag_verify` finds that what was
/// made of documents does not agree with them; if the test failed, the end of the server's log is printed.
#[derive(Debug)]
pub struct Database<'a> {
    cluster: &'a Cluster,
    name: String,
    suffix: u32,
    is_left_damaged: AtomicBool,
}

impl Database<'static> {
    /// A database of the shared cluster; `test` becomes part of its name.
    pub fn new(test: &str) -> Self {
        Self::create(shared(), test, Some(TEMPLATE))
    }
}

impl<'a> Database<'a> {
    pub(crate) fn create(cluster: &'a Cluster, test: &str, template: Option<&str>) -> Self {
        let suffix = COUNTER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{test}_{suffix}");
        let mut admin = cluster.connect("postgres", "postgres");
        match template {
            Some(template) => admin.run(&format!("CREATE DATABASE {name} TEMPLATE {template}")),
            None => {
                admin.run(&format!("CREATE DATABASE {name}"));
                cluster.connect("postgres", &name).run("CREATE EXTENSION rag_ext CASCADE");
            }
        }
        Self { cluster, name, suffix, is_left_damaged: AtomicBool::new(false) }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Says that the test damages it and leaves it so: `rag_verify` is not asked at the end.
    pub fn leave_damaged(&self) {
        self.is_left_damaged.store(true, Ordering::Relaxed);
    }

    /// Its cluster.
    pub fn cluster(&self) -> &'a Cluster {
        self.cluster
    }

    /// A session of the superuser.
    #[track_caller]
    pub fn admin(&self) -> Session {
        self.connect("postgres")
    }

    /// A session of this role.
    #[track_caller]
    pub fn connect(&self, role: &str) -> Session {
        self.cluster.connect(role, &self.name)
    }

    /// The name that a role of this test has in the cluster.
    pub fn role_name(&self, name: &str) -> String {
        format!("{name}_{}", self.suffix)
    }

    /// Creates a login role that nobody else uses, with these attributes, and returns its name. It may not
    /// use rag_ext yet.
    #[track_caller]
    pub fn outsider(&self, name: &str, attributes: &str) -> String {
        let role = self.role_name(name);
        self.admin().run(&format!("CREATE ROLE {role} LOGIN {attributes}"));
        role
    }

    /// Creates a login role that may use rag_ext, and returns its name.
    #[track_caller]
    pub fn role(&self, name: &str) -> String {
        let role = self.outsider(name, "");
        self.admin().run(&format!("SELECT rag_enable({})", literal(&role)));
        role
    }

    /// Creates a role that may use rag_ext, and connects as it.
    #[track_caller]
    pub fn user(&self, name: &str) -> Session {
        let role = self.role(name);
        self.connect(&role)
    }

    /// Connects as a role, and tells the session the plan of each statement, also within functions, with what its nodes did: as
    /// notices.
    #[track_caller]
    pub fn explained(&self, role: &str) -> Session {
        let mut session = self.admin();
        session.explain();
        session.run(&format!("SET SESSION AUTHORIZATION {role}"));
        session
    }

    /// Creates a gateway and returns its name.
    #[track_caller]
    pub fn gateway(&self, name: &str) -> String {
        let role = self.role(name);
        self.admin().run(&format!("SELECT rag_register_gateway({})", literal(&role)));
        role
    }
}

impl Drop for Database<'_> {
    fn drop(&mut self) {
        let mut wrong = Vec::new();
        if std::thread::panicking() {
            eprintln!("{}", self.cluster.log_tail_of(&self.name));
        } else if !self.is_left_damaged.load(Ordering::Relaxed) {
            wrong = soundness::findings(self.cluster, &self.name);
        }
        // Best effort: the whole cluster goes soon.
        if let Ok(mut admin) = self.cluster.try_connect("postgres", "postgres") {
            let _ = admin.try_run(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
        }
        assert!(wrong.is_empty(), "rag_verify of {}: {wrong:#?}", self.name);
    }
}
