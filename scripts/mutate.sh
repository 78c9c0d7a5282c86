#!/usr/bin/env bash
# Breaks the code in the ways of tests/mutations.tsv, one after the other, and says which tests notice:
#   mutate.sh [NAME]      those whose name contains NAME; all by default
# A row: name, file, the text that stands there once, what takes its place, and the tests (`crate NAME FILTER` or
# `server FILE FILTER`) of which one is to fail. Fails where none does. The tree must be as committed.
. "$(dirname "$0")/prelude.sh"

wanted=${1:-}
table=$ROOT/tests/mutations.tsv
log=$(mktemp)
broken=
restore() {
  [ -z "$broken" ] || git -C "$ROOT" checkout --quiet -- "$broken"
  broken=
}
trap 'restore; rm -f "$log"' EXIT

run_tests() {
  local kind=$1 name=$2 filter=${3:-}
  case $kind in
    crate) "$ROOT/scripts/cargo.sh" test --quiet --package "$name" "$filter" ;;
    server)
      make --no-print-directory -C "$ROOT" install || return 1
      "$ROOT/scripts/cargo.sh" test --quiet --package rag_tests --test "$name" "$filter"
      ;;
    *) die "unknown kind of test: $kind" ;;
  esac
}

git -C "$ROOT" diff --quiet HEAD || die "the tree is not as committed"
RAG_TEST_MANUAL=$("$ROOT/scripts/fetch-manual.sh")
export RAG_TEST_MANUAL
killed=0
survived=0
while IFS=$'\t' read -r name file from to tests; do
  [[ $name == *"$wanted"* ]] || continue
  broken=$file
  FROM=$from TO=$to perl -0777 -pi -e '
    my ($from, $to) = @ENV{qw(FROM TO)};
    my $count = () = /\Q$from\E/g;
    die "stands there $count times: $from\n" if $count != 1;
    s/\Q$from\E/$to/' "$ROOT/$file" || die "$name: tests/mutations.tsv does not fit $file"
  # shellcheck disable=SC2086  # kind, name and filter
  if run_tests $tests </dev/null >"$log" 2>&1; then
    outcome=SURVIVED
  elif grep -q '^test result: FAILED' "$log"; then
    outcome=killed
  else
    tail -20 "$log" >&2
    die "$name: does not build"
  fi
  restore
  case $outcome in
    killed) killed=$((killed + 1)) ;;
    SURVIVED) survived=$((survived + 1)) ;;
  esac
  printf '%-8s  %s  (%s)\n' "$outcome" "$name" "$tests"
done <"$table"
make --no-print-directory -C "$ROOT" install >/dev/null 2>&1
printf '\n%d killed, %d survived\n' "$killed" "$survived"
[ "$survived" -eq 0 ]
