#!/usr/bin/env bash
# Runs the tests of one kind:
#   test.sh crates            of the crates, which need no server
#   test.sh server [ARG…]     on throw-away servers of the Postgres that PG_CONFIG names, with rag_ext
#                             installed in it; ARG… are cargo's, such as --test smoke
#   test.sh smoke MAJOR…      builds and installs for each of these majors, and runs what depends on the major most:
#                             the smoke test, isolation (planner, roles, locks), search and upgrades
. "$(dirname "$0")/prelude.sh"

cargo=$ROOT/scripts/cargo.sh
kind=${1:-}
[ $# -eq 0 ] || shift

case $kind in
  crates)
    # Tests of the engine start it.
    "$cargo" build --release --package rag_llm --features llama
    # What others wrote is taken as the build has compiled it. Ours is compiled once more: with assertions, and optimised as far as
    # that takes less time than it saves.
    options=(--release --no-fail-fast @installed)
    for folder in "$ROOT"/crates/*; do
      crate=$(basename "$folder")
      options+=(--package "$crate")
      for value in opt-level=1 debug-assertions=true overflow-checks=true; do
        options+=(--config "profile.release.package.$crate.$value")
      done
    done
    if cargo nextest --version >/dev/null 2>&1; then
      "$cargo" nextest run "${options[@]}"
      "$cargo" test --doc "${options[@]}"
    else
      "$cargo" test "${options[@]}"
    fi
    ;;
  server)
    # One process for each test file, not for each test: the tests of a file share a server.
    RAG_TEST_MANUAL=$("$ROOT/scripts/fetch-manual.sh")
    RAG_TEST_CLIENTS=$("$ROOT/scripts/fetch-clients.sh")
    # No file takes a quarter of that. One that waits for ever is to fail, by losing its server.
    RAG_TEST_LIMIT=${RAG_TEST_LIMIT:-1800}
    export RAG_TEST_MANUAL RAG_TEST_CLIENTS RAG_TEST_LIMIT
    "$cargo" test --package rag_tests --no-fail-fast "$@"
    ;;
  smoke)
    for major in "$@"; do
      say "smoke test on PostgreSQL $major"
      PG_CONFIG=$("$ROOT/scripts/fetch-postgres.sh" "$major")
      export PG_CONFIG
      "$ROOT/scripts/build.sh" >/dev/null
      "$ROOT/scripts/install.sh"
      "$ROOT/scripts/test.sh" server --test smoke --test isolation --test search --test upgrade
    done
    ;;
  *) die "usage: test.sh crates | server [ARG…] | smoke MAJOR…" ;;
esac
