#!/usr/bin/env bash
# Measures, and prints tables:
#   bench.sh                     the crates, cost, and parse and quality if RAG_EVAL_DATA names corpora
#   bench.sh quality             nDCG@10, recall@25, MRR and times; fails below the targets
#   bench.sh parse [-v] [NAME…]  F1 of words, headings and cells per format; fails below the goals
#   bench.sh pages [FILE.pdf…]   whether chunks of PDFs name the pages that their words stand on
#   bench.sh cost [PART…]        ratios; PART: keyword vector ingest embed memory domains merge attach steady pdf
#   bench.sh against COMMIT      searches, answers and ingestion beside those of that commit, which it builds in RAG_HOME
#   bench.sh crates [FILTER]     criterion on the pure crates
# quality, cost and against need rag_ext installed in the Postgres that PG_CONFIG names. RAG_EVAL_DATA=DIR has DIR/scifact,
# DIR/cranfield and DIR/xquad-{en,de} in BEIR's format, of which RAG_BENCH_DOCUMENTS=400 takes a part, and DIR/docling-samples for parse.
# What is kept between runs (vectors) lies in RAG_HOME/bench.
. "$(dirname "$0")/prelude.sh"

export RAG_BENCH_HOME=$RAG_HOME/bench

bench() {
  local name=$1
  shift
  # pdftotext is what the PDFs are compared with.
  [ "$name" != parse ] || "$ROOT/scripts/install-deps.sh" poppler-utils
  if [ "$name" = cost ]; then
    RAG_BENCH_PDFS=$("$ROOT/scripts/fetch-pdfs.sh")
    export RAG_BENCH_PDFS
  fi
  "$ROOT/scripts/cargo.sh" bench --package rag_benches --bench "$name" -- "$@"
}

pages() {
  local files=("$@")
  "$ROOT/scripts/install-deps.sh" poppler-utils
  if [ $# -eq 0 ]; then
    mapfile -t files < <(find "$("$ROOT/scripts/fetch-pdfs.sh")" -name '*.pdf' -type f | sort)
  fi
  "$ROOT/scripts/cargo.sh" run --release --package rag_parse --example page_check -- "${files[@]}"
}

against() {
  local commit other major
  commit=$(git -C "$ROOT" rev-parse --short "$1")
  other=$RAG_HOME/against/$commit
  major=$(major_of "$("$ROOT/scripts/fetch-postgres.sh")")
  [ -e "$other/.git" ] || git clone --quiet "$ROOT" "$other"
  git -C "$other" checkout --quiet "$commit"
  # A Postgres and a target folder of its own.
  RAG_BENCH_AGAINST=$(env -u PG_CONFIG RAG_HOME="$other/.local" "$other/scripts/fetch-postgres.sh" "$major")
  export RAG_BENCH_AGAINST
  env -u CARGO_TARGET_DIR PG_CONFIG="$RAG_BENCH_AGAINST" RAG_HOME="$other/.local" \
    make --no-print-directory -C "$other" install >&2
  bench against
}

if [ "${1:-}" = pages ]; then
  pages "${@:2}"
elif [ "${1:-}" = against ]; then
  [ $# -eq 2 ] || die "usage: bench.sh against COMMIT"
  against "$2"
elif [ $# -gt 0 ]; then
  bench "$@"
else
  bench crates
  bench cost
  if [ -n "${RAG_EVAL_DATA:-}" ]; then
    # Each says itself what it misses.
    failed=0
    bench parse || failed=1
    bench quality || failed=1
    exit $failed
  else
    say "no tables of parse and quality: RAG_EVAL_DATA is not set"
  fi
fi
