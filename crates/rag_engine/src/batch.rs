//! The batch policy: which rows run next. A pure function of what waits; the scheduler does what it says.
//!
//! Rules, in this order:
//! 1. Interactive work goes before bulk work. Where one principal's bulk work has all places that it may have, a spare
//!    one is open to the others' ([`Bulk::Spare`]).
//! 2. Inside a lane, the principal who has been served the fewest tokens goes first, then the older request.
//! 3. A request that has just come has half of the places at most, so that the next one does not find all of them taken; one
//!    that takes longer has whatever is free ([`Waiting::has_its_share`]).
//! 4. A model has so many places of its own, of which bulk work leaves one free where there are several
//!    ([`Waiting::is_model_full`]).
//! 5. A row that must not share a batch runs alone, and one that needs a fixed shape with its request's rows of that shape
//!    ([`Company`]). Others are joined by rows of the same model and lane, from several requests, as long as they stay within
//!    the device's limits ([`BatchLimits`]).
//!
//! A request's rows are taken in order; the scheduler sorts them by length beforehand, so padding stays small.

use crate::batch_limits::{BatchLimits, FixedShape};
use crate::principal::PrincipalKey;
use rag_wire::Lane;
use std::ops::Range;

/// A waiting request, as the policy sees it.
#[derive(Debug, Clone)]
pub struct Waiting<'a> {
    /// Its lane.
    pub lane: Lane,
    /// Who asks.
    pub principal: PrincipalKey,
    /// Whether bulk work of this principal runs now.
    pub has_bulk_running: bool,
    /// Whether as many of its rows run now as may of one request.
    pub has_its_share: bool,
    /// Whether as many batches of its model run now as may of its lane.
    pub is_model_full: bool,
    /// Tokens already served to this principal in this lane.
    pub served: u64,
    /// Order of arrival.
    pub arrived: u64,
    /// Which model it wants; equal numbers are the same model.
    pub model: usize,
    /// What may run beside its rows.
    pub company: Company,
    /// Tokens of each row that has not run yet. Never empty.
    pub rows: &'a [u32],
}

/// What may run beside a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Company {
    /// Any row of the model and lane.
    Any,
    /// Rows of the same request and of the same fixed shape: what must be reproducible, where a fixed shape is enough for that.
    SameShape,
    /// Nothing: what must be reproducible elsewhere, and every row of a model that couples rows.
    Nobody,
}

/// What one batch may hold.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// What the device takes. A single row may exceed it.
    pub limits: BatchLimits,
    /// Whether interactive work may start now.
    pub interactive: bool,
    /// Whether bulk work may.
    pub bulk: Bulk,
}

/// Which bulk work may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bulk {
    /// Everybody's.
    Open,
    /// That of principals of whom none runs: somebody else has all places.
    Spare,
    /// Nobody's.
    Closed,
}

impl Budget {
    fn admits(&self, waiting: &Waiting<'_>) -> bool {
        match (waiting.lane, self.bulk) {
            _ if waiting.is_model_full => false,
            (Lane::Interactive, _) => self.interactive && !waiting.has_its_share,
            (Lane::Bulk, Bulk::Open) => true,
            (Lane::Bulk, Bulk::Spare) => !waiting.has_bulk_running,
            (Lane::Bulk, Bulk::Closed) => false,
        }
    }
}

/// Rows to run from one request: a range of its waiting rows, always from the front.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pick {
    /// Index into the waiting requests.
    pub request: usize,
    /// Rows, counted from the first one that has not run.
    pub rows: Range<usize>,
}

/// The next batch; empty if nothing may run.
pub fn next_batch(waiting: &[Waiting<'_>], budget: Budget) -> Vec<Pick> {
    let mut order: Vec<usize> = (0..waiting.len()).filter(|i| budget.admits(&waiting[*i])).collect();
    order.sort_by_key(|i| (waiting[*i].lane != Lane::Interactive, waiting[*i].served, waiting[*i].arrived));
    let Some(first) = order.first().map(|i| &waiting[*i]) else { return Vec::new() };
    let alike = match first.company {
        Company::Any => None,
        Company::SameShape => Some(FixedShape::of_first(first.rows.iter().copied()).1),
        Company::Nobody => Some(1),
    };
    if let Some(count) = alike {
        return vec![Pick { request: order[0], rows: 0..count }];
    }
    let shares =
        |w: &Waiting<'_>| w.lane == first.lane && w.model == first.model && w.company == Company::Any;

    let mut picks = Vec::new();
    let (mut rows, mut longest) = (0u32, 0u32);
    for &request in order.iter().filter(|i| shares(&waiting[**i])) {
        let mut taken = 0;
        for &tokens in waiting[request].rows {
            if rows > 0 && rows >= budget.limits.rows_of(longest.max(tokens)) {
                break;
            }
            (rows, longest, taken) = (rows + 1, longest.max(tokens), taken + 1);
        }
        if taken > 0 {
            picks.push(Pick { request, rows: 0..taken });
        }
    }
    picks
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: BatchLimits = BatchLimits { rows: 8, padded_tokens: 100, bytes: None };
    const BUDGET: Budget = Budget { limits: LIMITS, interactive: true, bulk: Bulk::Open };

    fn waiting(lane: Lane, principal: u128, served: u64, arrived: u64, rows: &[u32]) -> Waiting<'_> {
        let principal = PrincipalKey(principal);
        Waiting {
            lane,
            principal,
            has_bulk_running: false,
            has_its_share: false,
            is_model_full: false,
            served,
            arrived,
            model: 0,
            company: Company::Any,
            rows,
        }
    }

    fn check(waiting: &[Waiting<'_>], budget: Budget, expected: &[(usize, usize)]) {
        let picks: Vec<_> =
            next_batch(waiting, budget).into_iter().map(|p| (p.request, p.rows.len())).collect();
        assert_eq!(picks, expected, "{waiting:?}");
    }

    #[test]
    fn nothing_waiting_gives_no_batch() {
        check(&[], BUDGET, &[]);
    }

    #[test]
    fn interactive_goes_before_older_and_less_served_bulk() {
        let all = [waiting(Lane::Bulk, 1, 0, 0, &[10]), waiting(Lane::Interactive, 2, 900, 9, &[10])];
        check(&all, BUDGET, &[(1, 1)]);
    }

    #[test]
    fn bulk_waits_while_its_workers_are_taken() {
        let all = [waiting(Lane::Bulk, 1, 0, 0, &[10])];
        check(&all, Budget { bulk: Bulk::Closed, ..BUDGET }, &[]);
        check(&all, BUDGET, &[(0, 1)]);
    }

    #[test]
    fn rows_that_must_be_reproducible_run_alone() {
        let alone = Waiting { company: Company::Nobody, ..waiting(Lane::Interactive, 1, 0, 0, &[5, 5, 5]) };
        check(&[alone.clone(), waiting(Lane::Interactive, 2, 0, 1, &[5])], BUDGET, &[(0, 1)]);
        check(&[waiting(Lane::Interactive, 2, 0, 0, &[5]), alone], BUDGET, &[(0, 1)]);
    }

    #[test]
    fn rows_of_a_fixed_shape_run_with_those_of_their_request_alone() {
        let rows = [130, 129, 128, 128, 70, 64];
        let asked =
            |rows| Waiting { company: Company::SameShape, ..waiting(Lane::Interactive, 1, 0, 0, rows) };
        let other = Waiting { arrived: 1, ..asked(&rows[2..]) };
        let third = waiting(Lane::Interactive, 1, 0, 2, &rows[2..]);
        for (from, taken) in [(0, 2), (2, 3), (5, 1)] {
            check(&[asked(&rows[from..]), other.clone(), third.clone()], BUDGET, &[(0, taken)]);
        }
        check(&[asked(&[100; 40])], BUDGET, &[(0, 32)]);
        check(&[asked(&[8000; 20])], BUDGET, &[(0, 1)]);
        // Nor does it join others.
        check(&[Waiting { arrived: 3, ..asked(&rows) }, third], BUDGET, &[(1, 1)]);
    }

    #[test]
    fn the_least_served_principal_goes_first_then_the_older_request() {
        let small = Budget { limits: BatchLimits { rows: 1, ..LIMITS }, ..BUDGET };
        let all = [
            waiting(Lane::Bulk, 1, 500, 0, &[10]),
            waiting(Lane::Bulk, 2, 40, 2, &[10]),
            waiting(Lane::Bulk, 2, 40, 1, &[10]),
        ];
        check(&all, small, &[(2, 1)]);
    }

    #[test]
    fn a_request_with_its_share_lets_younger_ones_start() {
        let first = Waiting { has_its_share: true, ..waiting(Lane::Interactive, 1, 0, 0, &[5, 5]) };
        let second = waiting(Lane::Interactive, 1, 0, 1, &[5]);
        check(std::slice::from_ref(&first), BUDGET, &[]);
        check(&[first, second], BUDGET, &[(1, 1)]);
    }

    #[test]
    fn the_spare_place_is_for_principals_of_whom_nothing_runs() {
        let spare = Budget { interactive: false, bulk: Bulk::Spare, ..BUDGET };
        let busy = Waiting { has_bulk_running: true, ..waiting(Lane::Bulk, 1, 0, 0, &[10]) };
        let other = waiting(Lane::Bulk, 2, 900, 1, &[10]);
        let interactive = waiting(Lane::Interactive, 3, 0, 2, &[10]);
        check(std::slice::from_ref(&busy), spare, &[]);
        check(&[busy.clone(), other.clone(), interactive.clone()], spare, &[(1, 1)]);
        check(&[busy, other, interactive], Budget { interactive: true, ..spare }, &[(2, 1)]);
    }

    #[test]
    fn a_model_whose_places_are_taken_lets_others_start() {
        let full = Waiting { is_model_full: true, ..waiting(Lane::Interactive, 1, 0, 0, &[5]) };
        let other = Waiting { model: 1, ..waiting(Lane::Bulk, 1, 0, 1, &[5, 5]) };
        check(std::slice::from_ref(&full), BUDGET, &[]);
        check(&[full, other], BUDGET, &[(1, 2)]);
    }

    #[test]
    fn requests_of_several_sessions_share_a_batch_up_to_the_padded_budget() {
        let all = [
            waiting(Lane::Bulk, 1, 0, 0, &[20, 20]),
            waiting(Lane::Bulk, 2, 1, 1, &[25, 25]),
            waiting(Lane::Bulk, 3, 2, 2, &[5]),
        ];
        // 20, 20, 25, 25 make 4 × 25 = 100; a fifth row would make 125.
        check(&all, BUDGET, &[(0, 2), (1, 2)]);
    }

    #[test]
    fn a_long_row_is_left_out_where_it_would_pad_the_others_beyond_the_budget() {
        let all = [waiting(Lane::Bulk, 1, 0, 0, &[10, 10, 10]), waiting(Lane::Bulk, 2, 1, 1, &[60, 10])];
        check(&all, BUDGET, &[(0, 3)]);
    }

    #[test]
    fn a_row_longer_than_the_budget_still_runs() {
        check(&[waiting(Lane::Bulk, 1, 0, 0, &[400, 10])], BUDGET, &[(0, 1)]);
    }

    #[test]
    fn a_batch_holds_one_model() {
        let other = Waiting { model: 1, ..waiting(Lane::Bulk, 2, 1, 1, &[10]) };
        check(&[waiting(Lane::Bulk, 1, 0, 0, &[10]), other], BUDGET, &[(0, 1)]);
    }

    #[test]
    fn a_batch_holds_at_most_so_many_rows() {
        check(&[waiting(Lane::Bulk, 1, 0, 0, &[1; 20])], BUDGET, &[(0, 8)]);
    }

    #[test]
    fn two_principals_get_equal_tokens_over_many_batches() {
        // One asks with long rows and came first, the other with short ones.
        let rows = [vec![50u32; 100], vec![10u32; 500]];
        let (mut next, mut served) = ([0usize, 0], [0u64, 0]);
        for _ in 0..240 {
            let all: Vec<_> = (0..2)
                .map(|i| waiting(Lane::Bulk, i as u128, served[i], i as u64, &rows[i][next[i]..]))
                .map(|w| Waiting { company: Company::Nobody, ..w })
                .collect();
            for pick in next_batch(&all, BUDGET) {
                let i = pick.request;
                served[i] += rows[i][next[i]..][pick.rows.clone()].iter().map(|t| u64::from(*t)).sum::<u64>();
                next[i] += pick.rows.len();
            }
        }
        assert!(served[0].abs_diff(served[1]) <= 50, "{served:?}");
    }
}
