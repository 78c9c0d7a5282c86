//! The rules by which the launcher starts workers, without a server: the queue is plain data.

#[path = "../../src/pg/work_queue.rs"]
#[allow(dead_code, reason = "the extension uses what these tests do not")]
mod work_queue;

use work_queue::{DATABASES, Kind, Limits, Next, WorkQueue, WorkerSlot};

const SECOND: i64 = 1_000_000;
const LIMITS: Limits = Limits { per_database: 2, in_all: 4, nap: 60 * SECOND };

/// A queue, a clock, and whom the queue woke.
struct Scene {
    queue: Box<WorkQueue>,
    now: i64,
    woken: Vec<usize>,
}

impl Scene {
    fn new() -> Self {
        let mut scene = Self { queue: Box::new(WorkQueue::EMPTY), now: SECOND, woken: Vec::new() };
        scene.queue.set_launcher(1);
        scene
    }

    fn request(&mut self, database: u32) {
        self.queue.request(database, &mut |who| self.woken.push(who));
    }

    fn next(&mut self) -> Next {
        self.queue.next(self.now, LIMITS, &mut |who| self.woken.push(who))
    }

    /// Expects a start and has the worker take its place.
    fn start(&mut self, expected: u32) -> WorkerSlot {
        match self.next() {
            Next::Start { database, place, .. } if database == expected => {
                assert!(self.queue.attach(place, 1000, 100 + place.index, self.now));
                place
            }
            other => panic!("expected a worker for {expected}, got {other:?}"),
        }
    }

    fn is_quiet(&mut self) -> bool {
        matches!(self.next(), Next::Wait { .. })
    }

    fn leave_idle(&mut self, place: WorkerSlot) {
        self.queue.leave_idle(place, i64::MAX, false, self.now, &mut |who| self.woken.push(who));
    }
}

#[test]
fn a_request_starts_one_worker_and_wakes_the_launcher() {
    let mut scene = Scene::new();
    assert!(scene.is_quiet());
    scene.request(7);
    assert_eq!(scene.woken, [1]);
    let place = scene.start(7);
    assert!(scene.is_quiet());
    scene.queue.look(place);
    scene.leave_idle(place);
    assert!(scene.is_quiet(), "nothing is left to do");
}

#[test]
fn a_request_while_a_worker_leaves_is_not_lost() {
    let mut scene = Scene::new();
    scene.request(7);
    let place = scene.start(7);
    scene.queue.look(place);
    assert!(scene.queue.pause(place));
    assert!(!scene.queue.resume(place, scene.now));
    // It found nothing and is on its way out.
    scene.request(7);
    scene.leave_idle(place);
    scene.start(7);
}

#[test]
fn a_request_during_a_pause_calls_the_pausing_worker() {
    let mut scene = Scene::new();
    scene.request(7);
    let place = scene.start(7);
    assert!(scene.queue.pause(place));
    scene.woken.clear();
    scene.request(7);
    assert_eq!(scene.woken, [100 + place.index, 1]);
    assert!(scene.is_quiet(), "the pausing worker takes it");
    assert!(scene.queue.resume(place, scene.now));
    scene.leave_idle(place);
    assert!(scene.is_quiet());
}

#[test]
fn a_request_between_look_and_pause_forbids_the_pause() {
    let mut scene = Scene::new();
    scene.request(7);
    let place = scene.start(7);
    scene.queue.look(place);
    scene.request(7);
    assert!(!scene.queue.pause(place));
    assert!(scene.queue.resume(place, scene.now), "it must look again");
}

#[test]
fn a_busy_worker_gets_a_second_but_no_third() {
    let mut scene = Scene::new();
    scene.request(7);
    scene.start(7);
    assert!(scene.is_quiet());
    scene.now += SECOND;
    scene.start(7);
    scene.now += SECOND;
    assert!(scene.is_quiet());
}

#[test]
fn so_many_workers_follow_attached_tables_and_one_per_owner() {
    let mut scene = Scene::new();
    scene.request(7);
    let one = scene.start(7);
    scene.now += SECOND;
    let two = scene.start(7);
    assert!(scene.queue.begin_following(one, 1));
    assert!(!scene.queue.begin_following(two, 1));
    scene.queue.end_following(one);
    assert!(scene.queue.begin_following(two, 1));

    assert!(scene.queue.begin_following(one, 2));
    assert!(scene.queue.followed_by_others(one).is_empty(), "the other one has not chosen yet");
    assert!(scene.queue.take_owner(two, 10));
    assert_eq!(scene.queue.followed_by_others(one), [10]);
    assert!(!scene.queue.take_owner(one, 10));
    assert!(scene.queue.take_owner(one, 11));
    // A worker that ends follows nothing.
    scene.leave_idle(two);
    assert!(scene.queue.followed_by_others(one).is_empty());
    assert!(scene.queue.take_owner(one, 10));
}

#[test]
fn a_long_job_does_not_start_workers_over_and_over() {
    let mut scene = Scene::new();
    scene.request(7);
    let _busy = scene.start(7);
    scene.now += SECOND;
    let second = scene.start(7);
    scene.queue.look(second);
    assert!(scene.queue.pause(second));
    scene.leave_idle(second);
    for _ in 0..10 {
        scene.now += SECOND;
        assert!(scene.is_quiet(), "the second found nothing to do");
    }
}

#[test]
fn failures_delay_the_next_start_longer_and_longer() {
    let mut scene = Scene::new();
    scene.request(7);
    let mut delays = Vec::new();
    for _ in 0..9 {
        let place = scene.start(7);
        scene.queue.leave_early(place, scene.now, &mut |_| {});
        match scene.next() {
            Next::Wait { until } => {
                delays.push((until - scene.now) / SECOND);
                scene.now = until;
            }
            other => panic!("started at once: {other:?}"),
        }
    }
    assert_eq!(delays, [5, 10, 20, 40, 80, 160, 300, 300, 300]);
    let place = scene.start(7);
    scene.leave_idle(place);
    scene.request(7);
    scene.start(7);
}

#[test]
fn a_worker_that_never_came_counts_as_a_failure_and_a_shortage_does_not() {
    let mut scene = Scene::new();
    scene.request(7);
    let Next::Start { place, .. } = scene.next() else { panic!("nothing started") };
    scene.queue.start_refused(place);
    let Next::Start { place, .. } = scene.next() else { panic!("a shortage is not the database's fault") };
    scene.queue.start_failed(place, scene.now);
    assert!(scene.is_quiet());
    assert!(!scene.queue.attach(place, 1000, 9, scene.now), "its place was given up");
}

#[test]
fn every_database_is_looked_at_once_per_nap_and_those_without_the_extension_rarely() {
    let mut scene = Scene::new();
    scene.queue.list(&[7, 8], scene.now);
    let seven = scene.start(7);
    let eight = scene.start(8);
    scene.leave_idle(seven);
    scene.queue.leave_idle(eight, i64::MAX, true, scene.now, &mut |_| {});
    assert_eq!(scene.next(), Next::Wait { until: scene.now + 60 * SECOND });
    scene.now += 60 * SECOND;
    let seven = scene.start(7);
    scene.leave_idle(seven);
    assert!(scene.is_quiet());
    scene.request(8);
    scene.start(8);
}

#[test]
fn a_retry_is_due_before_the_nap_is_over() {
    let mut scene = Scene::new();
    scene.request(7);
    let place = scene.start(7);
    let due = scene.now + 3 * SECOND;
    scene.queue.leave_idle(place, due, false, scene.now, &mut |_| {});
    assert_eq!(scene.next(), Next::Wait { until: due });
    scene.now = due;
    scene.start(7);
}

#[test]
fn a_database_without_worker_is_served_first_and_gets_room_after_a_turn() {
    let mut scene = Scene::new();
    for database in [1, 2, 3, 4, 5] {
        scene.request(database);
    }
    let first = scene.start(1);
    for database in [2, 3, 4] {
        scene.start(database);
    }
    scene.now += SECOND;
    scene.woken.clear();
    assert!(scene.is_quiet(), "four workers are the limit, and none has had its turn");
    assert!(!scene.queue.must_leave(first));
    scene.now += 60 * SECOND;
    assert!(scene.is_quiet());
    assert!(scene.queue.must_leave(first));
    assert_eq!(scene.woken, [100 + first.index]);
    scene.leave_idle(first);
    scene.start(5);
    // What the first left behind is not forgotten.
    assert!(scene.is_quiet());
    scene.queue.list(&[1, 5], scene.now);
}

#[test]
fn a_dropped_database_is_forgotten() {
    let mut scene = Scene::new();
    scene.request(7);
    scene.queue.list(&[8], scene.now);
    scene.start(8);
    assert!(scene.is_quiet());
}

#[test]
fn more_databases_than_the_table_holds_take_turns() {
    let mut scene = Scene::new();
    let many: Vec<u32> = (1..=DATABASES as u32).collect();
    scene.queue.list(&many, scene.now);
    // All idle, so that a request of one more takes an idle one's place.
    scene.request(9999);
    assert!(!scene.queue.has_unlisted());
    scene.start(9999);
}

#[test]
fn no_worker_starts_where_none_is_allowed() {
    let mut scene = Scene::new();
    scene.request(7);
    let none = Limits { per_database: 0, ..LIMITS };
    assert_eq!(scene.queue.next(scene.now, none, &mut |_| {}), Next::Wait { until: i64::MAX });
}

#[test]
fn an_index_worker_starts_beside_the_others_and_only_one_per_database() {
    let mut scene = Scene::new();
    scene.request(7);
    let ingest = scene.start(7);
    scene.queue.request_index(7, &mut |_| {});
    scene.queue.request_index(7, &mut |_| {});
    let Next::Start { database: 7, place, kind: Kind::Index } = scene.next() else {
        panic!("no index worker")
    };
    assert!(scene.queue.attach(place, 1001, 201, scene.now));
    assert!(scene.is_quiet(), "one is enough");
    // Ingestion takes no notice: a second worker comes when the first has been busy for long.
    scene.now += SECOND;
    scene.request(7);
    let second = scene.start(7);
    scene.leave_idle(place);
    assert!(scene.is_quiet(), "the index is built");
    scene.queue.request_index(7, &mut |_| {});
    let Next::Start { place, kind: Kind::Index, .. } = scene.next() else { panic!("no index worker") };
    assert!(scene.queue.attach(place, 1001, 201, scene.now));
    scene.queue.leave_early(place, scene.now, &mut |_| {});
    let Next::Wait { until } = scene.next() else { panic!("it failed just now") };
    assert_eq!(until, scene.now + 10 * SECOND, "the launcher sleeps no longer");
    scene.now = until;
    scene.queue.look(ingest);
    scene.queue.look(second);
    assert!(matches!(scene.next(), Next::Start { kind: Kind::Index, .. }), "and is tried again");
}

#[test]
fn a_closed_database_loses_its_workers_and_gets_none_until_it_is_opened() {
    let mut scene = Scene::new();
    scene.request(7);
    let place = scene.start(7);
    scene.request(8);
    let other = scene.start(8);
    scene.queue.request_index(7, &mut |_| {});
    let Next::Start { place: index, kind: Kind::Index, .. } = scene.next() else { panic!("no index worker") };
    let woken = &mut scene.woken;
    scene.queue.close(7, scene.now + 60 * SECOND, &mut |who| woken.push(who));
    assert!(scene.woken.contains(&(100 + place.index)), "{:?}", scene.woken);
    assert!(scene.queue.must_leave(place) && !scene.queue.must_leave(other));
    assert!(!scene.queue.attach(index, 1001, 201, scene.now), "it comes too late");
    assert_eq!(scene.queue.processes(7).collect::<Vec<_>>(), [1000]);
    scene.leave_idle(place);
    assert_eq!(scene.queue.processes(7).count(), 0);
    scene.request(7);
    assert!(scene.is_quiet());
    scene.queue.close(7, 0, &mut |_| {});
    assert!(matches!(scene.next(), Next::Start { database: 7, kind: Kind::Index, .. }));
    scene.start(7);
}

/// Three workers of database 7, of which no more than two are to be at documents of one owner.
fn three_workers() -> (Scene, [WorkerSlot; 3]) {
    let mut scene = Scene::new();
    let places = std::array::from_fn(|_| {
        scene.request(7);
        let limits = Limits { per_database: 3, ..LIMITS };
        let Next::Start { place, .. } = scene.queue.next(scene.now, limits, &mut |_| {}) else {
            panic!("nothing started")
        };
        assert!(scene.queue.attach(place, 1000, 100 + place.index, scene.now));
        scene.now += SECOND;
        place
    });
    (scene, places)
}

#[test]
fn an_owner_has_no_more_workers_than_he_may_until_one_is_at_anothers() {
    let (mut scene, [first, second, third]) = three_workers();
    let (ann, bob) = (1, 2);
    assert!(scene.queue.serve(first, ann, 2) && scene.queue.serve(second, ann, 2));
    assert!(!scene.queue.serve(third, ann, 2));
    // Those who are at their documents go on with the next ones.
    assert!(scene.queue.serve(first, ann, 2) && scene.queue.serve(second, ann, 2));
    assert!(scene.queue.serve(third, bob, 2));
    assert!(scene.queue.serve(first, bob, 2), "the first is at bob's, too");
    assert!(!scene.queue.serve(second, bob, 2) && scene.queue.serve(second, ann, 2));
    scene.queue.serve_nobody(third);
    assert!(scene.queue.serve(third, ann, 2));
    // Whoever pauses is at nobody's.
    scene.queue.look(second);
    assert!(scene.queue.pause(second));
    assert!(scene.queue.serve(first, ann, 2));
    scene.leave_idle(third);
    assert!(scene.queue.serve(first, ann, 1));
}

#[test]
fn a_worker_is_spare_while_the_others_are_at_work() {
    let (mut scene, [first, second, third]) = three_workers();
    assert!(scene.queue.is_spare(third, 2) && !scene.queue.is_spare(third, 3));
    scene.queue.look(second);
    assert!(scene.queue.pause(second));
    assert!(!scene.queue.is_spare(third, 2));
    assert!(scene.queue.is_spare(second, 2), "the one that pauses is spare now");
    scene.queue.resume(second, scene.now);
    assert!(!scene.queue.is_full(LIMITS.in_all));
    scene.request(8);
    scene.start(8);
    assert!(scene.queue.is_full(LIMITS.in_all));
    scene.leave_idle(first);
    assert!(!scene.queue.is_spare(third, 2) && !scene.queue.is_full(LIMITS.in_all));
}

#[test]
fn the_spare_worker_takes_no_last_place_and_there_is_one() {
    let (mut scene, [first, second, third]) = three_workers();
    let limits = Limits { per_database: 4, ..LIMITS };
    scene.request(7);
    assert!(
        matches!(scene.queue.next(scene.now, limits, &mut |_| {}), Next::Wait { .. }),
        "it would be the last place"
    );
    // Two have nothing to do: the first to look leaves, the other is kept.
    for idle in [second, third] {
        scene.queue.look(idle);
        assert!(scene.queue.pause(idle));
    }
    scene.queue.resume(second, scene.now);
    assert!(!scene.queue.is_spare(second, 1));
    scene.leave_idle(second);
    scene.queue.resume(third, scene.now);
    assert!(scene.queue.is_spare(third, 1));
    assert!(!scene.queue.is_spare(first, 2));
}

impl Scene {
    fn request_graph(&mut self, database: u32, due: i64) {
        self.queue.request_graph(database, due, &mut |who| self.woken.push(who));
    }

    /// Expects a graph worker and has it take its place.
    fn start_graph(&mut self, expected: u32) -> WorkerSlot {
        match self.next() {
            Next::Start { database, place, kind: Kind::Graph } if database == expected => {
                assert!(self.queue.attach(place, 1000, 100 + place.index, self.now));
                place
            }
            other => panic!("expected a graph worker for {expected}, got {other:?}"),
        }
    }
}

#[test]
fn a_graph_worker_takes_what_is_left_and_leaves_where_its_place_is_wanted() {
    let mut scene = Scene::new();
    scene.request(7);
    let ingest = scene.start(7);
    scene.request_graph(7, 0);
    let graph = scene.start_graph(7);
    scene.request_graph(7, 0);
    assert!(scene.is_quiet(), "there is one per database");
    // Three more databases want a worker: each gets one at once, as if there were no graph worker.
    for database in [8, 9, 10] {
        scene.request(database);
        scene.start(database);
    }
    assert!(scene.queue.must_leave(graph), "all places are wanted");
    assert!(!scene.queue.must_leave(ingest));
    scene.leave_idle(graph);
    assert!(scene.is_quiet(), "no place is left over");
    // It comes back when there is one, for it had work, and the request that came meanwhile.
    scene.queue.look(ingest);
    scene.leave_idle(ingest);
    let graph = scene.start_graph(7);
    scene.leave_idle(graph);
    assert!(scene.is_quiet());
}

#[test]
fn a_graph_worker_comes_when_its_work_is_due() {
    let mut scene = Scene::new();
    scene.request(7);
    let ingest = scene.start(7);
    scene.queue.look(ingest);
    scene.queue.pause(ingest);
    let due = scene.now + 5 * SECOND;
    scene.request_graph(7, due + SECOND);
    scene.request_graph(7, due);
    assert!(matches!(scene.next(), Next::Wait { until } if until == due));
    scene.now = due;
    // A process that cannot be had does not lose the request.
    match scene.next() {
        Next::Start { place, kind: Kind::Graph, .. } => scene.queue.start_refused(place),
        other => panic!("{other:?}"),
    }
    let graph = scene.start_graph(7);
    let later = scene.now + 60 * SECOND;
    scene.queue.leave_idle(graph, later, false, scene.now, &mut |_| {});
    assert!(scene.is_quiet());
    scene.now = later;
    let graph = scene.start_graph(7);
    // One that ends by an error is tried again, but not at once.
    scene.queue.leave_early(graph, scene.now, &mut |_| {});
    assert!(scene.is_quiet());
    scene.now += 20 * SECOND;
    scene.start_graph(7);
    // It has not looked for what the others look for.
    scene.request(7);
    scene.queue.resume(ingest, scene.now);
    scene.queue.leave_early(ingest, scene.now, &mut |_| {});
    scene.now += 20 * SECOND;
    scene.start(7);
}
