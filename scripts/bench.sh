#!/usr/bin/env bash
# Measures, and prints tables:
#   bench.sh                     the crates, cost, filters, and parse, quality, chunking and answers if RAG_EVAL_DATA names corpora
#   bench.sh quality [PART…] [SET…] [--plots]
#                                nDCG@10, recall@25, MRR and times; fails below the targets. PART: ways direct stages rerank;
#                                SET: a folder of RAG_EVAL_DATA. --plots draws ways and rerank into docs/plots
#   bench.sh answers [SET…] [fit] [list]
#                                right answers and refusals on clapnq, xquad-en and manual; fails where a quote or number is not
#                                true. fit: weights of the reranker's scores; list: what is wrong. RAG_BENCH_QUESTIONS=200 of XQuAD
#   bench.sh answers model       a sample of thirty questions of ClapNQ by a chat model of this machine (RAG_BENCH_LLM=FOLDER of a
#                                model.gguf), beside extracted answers
#   bench.sh answers attacks     what injections do to that chat model, with and without our guards
#   bench.sh answers load        times of extracted answers over 2,000 chunks: alone, in eight sessions, beside floods
#   bench.sh filters             counts, neighbours and times of filtered searches; fails where one is wrong
#   bench.sh chunking            the methods of chunking beside each other
#   bench.sh parse [-v] [NAME…]  F1 of words, headings and cells per format; fails below the goals
#   bench.sh pages [FILE.pdf…]   whether chunks of PDFs name the pages that their words stand on
#   bench.sh cost [PART…]        ratios; PART: keyword vector ingest embed memory domains merge attach policies steady pdf
#   bench.sh scale [search] [ingest] [peers] [--plots]
#                                times, recall and room by number of chunks, and what a small owner pays for a large one; FULL=1: up
#                                to three million, RAG_BENCH_SIZES=10000,20000: these, RAG_BENCH_INGESTED=1000000: so many documents
#                                to ingest. peers: keyword search beside pg_textsearch, pg_search and tsvector, also with a hundred
#                                owners, and beside tantivy, only if named. --plots writes docs/scale.csv and docs/plots/scale-*.svg
#   bench.sh against COMMIT      searches, answers and ingestion beside those of that commit, which it builds in RAG_HOME;
#                                RAG_BENCH_OPTIONS={…}: options of this version's searches
#   bench.sh crates [FILTER]     criterion on the pure crates
# All but parse, pages and crates need rag_ext installed in the Postgres that PG_CONFIG names. RAG_EVAL_DATA=DIR has DIR/scifact,
# DIR/cranfield and DIR/xquad-{en,de} in BEIR's format and DIR/clapnq in its own, of which RAG_BENCH_DOCUMENTS=300 takes a part, and
# DIR/docling-samples for parse. RAG_BENCH_RERANK_QUESTIONS=200 reranks for so many questions of each set (60, 0: all).
# What is kept between runs (vectors) lies in RAG_HOME/bench.
. "$(dirname "$0")/prelude.sh"

export RAG_BENCH_HOME=$RAG_HOME/bench

bench() {
  local name=$1 peers
  shift
  # pdftotext is what the PDFs are compared with.
  [ "$name" != parse ] || "$ROOT/scripts/install-deps.sh" poppler-utils
  if [ "$name" = cost ]; then
    RAG_BENCH_PDFS=$("$ROOT/scripts/fetch-pdfs.sh")
    export RAG_BENCH_PDFS
  fi
  if [ "$name" = answers ]; then
    RAG_BENCH_MANUAL=$("$ROOT/scripts/fetch-manual.sh")
    export RAG_BENCH_MANUAL
  fi
  if [ "$name" = scale ] && [[ " $* " == *" peers "* ]]; then
    if peers=$("$ROOT/scripts/fetch-peers.sh"); then
      export RAG_BENCH_PEERS=$peers
    else
      say "the peers' Postgres could not be fetched: without it"
    fi
  fi
  "$ROOT/scripts/cargo.sh" bench @installed --package rag_benches --bench "$name" -- "$@"
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
  # Each says itself what it misses.
  failed=0
  bench crates
  bench cost
  bench filters || failed=1
  if [ -n "${RAG_EVAL_DATA:-}" ]; then
    bench parse || failed=1
    bench quality || failed=1
    bench chunking || failed=1
    bench answers || failed=1
    bench answers model || failed=1
  else
    say "no tables of parse, quality, chunking and answers: RAG_EVAL_DATA is not set"
  fi
  exit $failed
fi
