#!/usr/bin/env bash
# Runs the suites that draw what they do at random for much longer than `make test` does, and prints a table of what was
# run, by which seeds, and how it ended, on stdout. What the tests print stands in $RAG_HOME/soak.
#
#   SOAK_WORLDS=1000       worlds of the rights' oracle
#   SOAK_KILLS=1000        kills of the fault suite
#   SOAK_LINES=20          lines beside each hostile neighbour
#   SOAK_SIDE_CHANNELS=10  seeds of the side channels
#   SOAK_CASES=5000        inputs for each property of the crates
#   SOAK_SEED=N            the first seed (default: from the clock)
. "$(dirname "$0")/prelude.sh"

seed=${SOAK_SEED:-$(date +%s)}
logs=$RAG_HOME/soak
mkdir -p "$logs"
failed=0

# run SUITE SEED WHAT CARGO-ARGUMENTS…: one run of tests, and its line of the table.
run() {
  local suite=$1 seed=$2 what=$3 log=$logs/$1-$2.log started=$SECONDS outcome=passed figures
  shift 3
  say "soak: $suite, seed $seed"
  RAG_TEST_SEED=$seed PROPTEST_RNG_SEED=$seed nice "$ROOT/scripts/cargo.sh" test "$@" >"$log" 2>&1 || { outcome=FAILED; failed=1; }
  figures=$(sed -n "s/^\($suite: .*\)/\1/p" "$log" | grep -v RAG_TEST_SEED | sed "s/^$suite: //" | paste -sd ';' | sed 's/;/; /g') || true
  printf '| %s | %s | %s | %s s | %s | %s |\n' "$suite" "$seed" "$what" $((SECONDS - started)) "$outcome" "$figures"
}

printf '| suite | seed | asked for | took | | figures |\n|---|---|---|---|---|---|\n'
export RAG_TEST_WORLDS=${SOAK_WORLDS:-1000} RAG_TEST_KILLS=${SOAK_KILLS:-1000} RAG_TEST_LINES=${SOAK_LINES:-20}
tests=(--package rag_tests --test)
run oracle "$seed" "$RAG_TEST_WORLDS worlds" "${tests[@]}" oracle -- --nocapture
run faults "$seed" "$RAG_TEST_KILLS kills" "${tests[@]}" faults -- --nocapture
run neighbours "$seed" "$RAG_TEST_LINES lines" "${tests[@]}" neighbours -- --nocapture
for n in $(seq 0 $((${SOAK_SIDE_CHANNELS:-10} - 1))); do
  run side_channels $((seed + n)) "60 conditions, twice" "${tests[@]}" isolation -- side_channels --nocapture
done
export PROPTEST_CASES=${SOAK_CASES:-5000}
run properties "$seed" "$PROPTEST_CASES inputs each" --no-fail-fast
exit $failed
