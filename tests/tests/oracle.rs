//! Random worlds of roles, gateways, grants, shared and attached collections and added policies, in which documents come
//! and go: what each caller is shown is what a model of the rights says, which is told what was done and asks nobody.
//!
//! `RAG_TEST_SEED` draws the same worlds again, `RAG_TEST_WORLDS` says how many.

#![allow(clippy::unwrap_used)]

#[path = "oracle/alone.rs"]
mod alone;
#[path = "oracle/check.rs"]
mod check;
#[path = "oracle/deed.rs"]
mod deed;
#[path = "oracle/step.rs"]
mod step;
#[path = "oracle/told.rs"]
mod told;
#[path = "oracle/world.rs"]
mod world;

use check::{Labels, Verdict, Viewer};
use rag_tests::{Database, Random, Session, wait_until};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use step::{Action, Outcome, Step};
use world::{Caller, World};

/// Worlds that are drawn where nobody says how many.
const WORLDS: u64 = 30;

/// Of so many worlds, one is compared with a database that holds the visible rows alone.
const ALONE_EVERY: u64 = 8;

/// Searches by each caller, each time that a world is looked at.
const SEARCHES: usize = 4;

/// What each caller says of chunks, each time that a world is looked at.
const WORDS_SAID: usize = 3;

/// Runs of a world by which its steps are made fewer.
const SHRINKING_RUNS: usize = 60;

/// All that a world is made of.
#[derive(Clone)]
struct Plan {
    seed: u64,
    steps: Vec<Step>,
    is_calm: bool,
}

impl Plan {
    fn drawn(seed: u64, is_calm: bool) -> Self {
        let mut random = Random::seeded(seed);
        Self { seed, steps: step::steps(&mut random, is_calm), is_calm }
    }
}

/// Keeps the roles of worlds apart.
static RUNS: AtomicU64 = AtomicU64::new(1);

/// A world as it goes on, in the database and in the model.
struct Run<'a> {
    database: &'a Database<'static>,
    admin: Session,
    world: World,
    sessions: BTreeMap<Caller, Session>,
    random: Random,
    is_calm: bool,
}

impl<'a> Run<'a> {
    fn new(database: &'a Database<'static>, plan: &Plan) -> Self {
        let number = RUNS.fetch_add(1, Ordering::Relaxed);
        let mut random = Random::seeded(plan.seed ^ 0x5eed);
        let mut admin = database.admin();
        let mut world = World { roles: step::roles(&mut random, number), ..World::default() };
        for role in &world.roles {
            let inherit = if role.inherits { "INHERIT" } else { "NOINHERIT" };
            admin.run(&format!(
                "CREATE ROLE {0} LOGIN {inherit}; GRANT CREATE ON SCHEMA public TO {0}",
                role.name
            ));
        }
        admin.run(&format!("SELECT rag_register_gateway('{}')", world.roles[step::GATEWAY].name));
        world.roles[step::GATEWAY].is_gateway = true;
        Self { database, admin, world, sessions: BTreeMap::new(), random, is_calm: plan.is_calm }
    }

    fn session(&mut self, caller: Caller) -> &mut Session {
        let (database, world) = (self.database, &self.world);
        self.sessions.entry(caller).or_insert_with(|| check::connect(database, world, caller))
    }

    fn act(&mut self, action: &Action) -> Verdict {
        let session = match action.by {
            None => &mut self.admin,
            Some(caller) => self.session(caller),
        };
        let outcome = affected(session, &action.sql);
        let agrees = match (&action.outcome, &outcome) {
            (Outcome::Done(rows), Ok(changed)) => {
                action.by.is_none() || !is_counted(&action.sql) || rows == changed
            }
            (Outcome::Within(least, most), Ok(changed)) => (least..=most).contains(&changed),
            (Outcome::Refused(code), Err(failure)) => failure.code == *code,
            _ => false,
        };
        if agrees {
            return Ok(());
        }
        Err(format!("{}: {:?} expected, but {outcome:?}", action.sql, action.outcome))
    }

    /// Everybody looks at everything.
    fn look(&mut self, is_last: bool) -> Verdict {
        wait_until("the world is quiet", Duration::from_secs(120), || self.admin.count(UNFINISHED) == 0);
        let labels = Labels::read(&mut self.admin);
        let callers = step::callers(&self.world);
        for caller in &callers {
            let (world, mut random) = (self.world.clone(), self.random.clone());
            let session = self.session(*caller);
            let who = format!("{} {:?}", world.roles[caller.role].name, caller.user);
            let of_whom = |wrong: String| format!("{who}: {wrong}");
            let told = |verdict: Verdict| verdict.map_err(of_whom);
            let viewer = Viewer { world: &world, labels: &labels, caller: *caller };
            told(check::tables(session, viewer))?;
            told(told::tables(session, viewer))?;
            for _ in 0..SEARCHES {
                told(check::search(session, viewer, &mut random))?;
            }
            told(check::wait(session, viewer, &mut random))?;
            told(check::status(session, viewer))?;
            told(check::as_another(session, viewer, &mut random))?;
            told(told::boosted(session, viewer, &mut random))?;
            told(told::explained(session, viewer, &mut random))?;
            told(told::evaluated(session, viewer, &mut random))?;
            told(told::related(session, viewer, &mut random))?;
            told(told::expanded(session, viewer, &mut random))?;
            let mut said = Vec::new();
            for _ in 0..WORDS_SAID {
                said.extend(told::say(session, viewer, &mut random).map_err(of_whom)?);
            }
            said.into_iter().for_each(|said| self.world.hear(said));
            self.random = random;
        }
        let asked = *self.random.pick(&callers);
        let (world, mut random) = (self.world.clone(), self.random.clone());
        let is_compared = is_last && self.is_calm;
        let session = self.session(asked);
        check::answer(session, Viewer { world: &world, labels: &labels, caller: asked }, &mut random)?;
        if is_compared {
            alone::check(session, &world, asked, &mut random)
                .map_err(|wrong| format!("{}: {wrong}", world.roles[asked.role].name))?;
        }
        self.random = random;
        Ok(())
    }

    fn end(mut self) {
        self.sessions.clear();
        for policy in &self.world.policies {
            let name = step::policy_name(policy);
            self.admin.run(&format!("SELECT rag_drop_policy('rag.{}', '{name}')", policy.table));
        }
        self.admin.run("DELETE FROM rag.collection; DELETE FROM rag.gateway");
        for role in &self.world.roles {
            self.admin.run(&format!("DROP OWNED BY {0} CASCADE; DROP ROLE {0}", role.name));
        }
    }
}

const UNFINISHED: &str = "SELECT (SELECT count(*) FROM rag.job j JOIN rag.domain d ON d.id = j.domain_id
                                  WHERE j.state IN ('queued', 'running') AND d.collection_id IS NOT NULL)
    + (SELECT count(*) FROM rag.attached_change) + (SELECT count(*) FROM rag.attachment WHERE state <> 'current')";

/// Rows that a statement has changed.
fn affected(session: &mut Session, sql: &str) -> Result<u64, rag_tests::Failure> {
    if !is_counted(sql) {
        return session.try_run(sql).map(|()| 0);
    }
    let rows = session.try_rows(&format!("WITH c AS ({sql} RETURNING 1) SELECT count(*) FROM c"))?;
    Ok(rows[0][0].as_deref().unwrap().parse().unwrap())
}

fn is_counted(sql: &str) -> bool {
    ["UPDATE", "DELETE"].iter().any(|verb| sql.starts_with(verb))
}

/// Goes through a world. What it leaves is taken away, whatever comes of it.
fn go(database: &Database<'static>, plan: &Plan) -> Verdict {
    let mut run = Run::new(database, plan);
    let verdict = go_through(&mut run, plan);
    run.end();
    verdict
}

fn go_through(run: &mut Run<'_>, plan: &Plan) -> Verdict {
    for (index, step) in plan.steps.iter().enumerate() {
        let actions = step::apply(&mut run.world, step);
        for action in &actions {
            run.act(action)?;
        }
        if index == plan.steps.len() / 2 {
            run.look(false)?;
        }
    }
    run.look(true)
}

/// The same disagreement with fewer steps, or nearly so.
fn shrink(database: &Database<'static>, plan: &Plan) -> Plan {
    let mut least = plan.clone();
    let mut runs = 0;
    let mut size = least.steps.len() / 2;
    while size > 0 && runs < SHRINKING_RUNS {
        let mut from = 0;
        while from < least.steps.len() && runs < SHRINKING_RUNS {
            let mut fewer = least.clone();
            fewer.steps.drain(from..(from + size).min(fewer.steps.len()));
            runs += 1;
            match go(database, &fewer) {
                Ok(()) => from += size,
                Err(_) => least = fewer,
            }
        }
        size /= 2;
    }
    least
}

#[test]
fn everybody_is_shown_what_a_model_of_the_rights_says() {
    let mut random = Random::announced("oracle");
    let worlds = std::env::var("RAG_TEST_WORLDS").map_or(WORLDS, |text| text.parse().unwrap());
    let database = Database::new("oracle");
    database.admin().run(&format!(
        "SELECT rag_enable('public'); ALTER DATABASE {0} SET log_min_messages = fatal; ALTER DATABASE {0} SET rag_ext.query_log = on; ALTER DATABASE {0} SET rag_ext.answer_log = on",
        database.name()
    ));
    let begun = Instant::now();
    for number in 0..worlds {
        let plan = Plan::drawn(random.bits(), number % ALONE_EVERY == 0);
        let Err(wrong) = go(&database, &plan) else { continue };
        let least = shrink(&database, &plan);
        let still = go(&database, &least);
        let mut world =
            World { roles: step::roles(&mut Random::seeded(plan.seed ^ 0x5eed), 0), ..World::default() };
        let told: Vec<String> = least
            .steps
            .iter()
            .flat_map(|step| {
                step::apply(&mut world, step)
                    .into_iter()
                    .map(|action| {
                        let by = action
                            .by
                            .map_or("a superuser".to_owned(), |c| format!("{} {:?}", world_name(&c), c.user));
                        format!("{by}: {}", action.sql)
                    })
                    .collect::<Vec<_>>()
            })
            .collect();
        panic!(
            "world {number} of {worlds} (seed {}): {wrong}\nwith {} steps: {still:?}\n{}",
            plan.seed,
            least.steps.len(),
            told.join("\n")
        );
    }
    eprintln!("oracle: {worlds} worlds in {:?}", begun.elapsed());
}

fn world_name(caller: &Caller) -> &'static str {
    ["ann", "bob", "eve", "team", "app"][caller.role]
}
