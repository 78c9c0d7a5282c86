#!/usr/bin/env bash
# Runs cargo with what the build and the tests need to know about this machine:
#   cargo.sh ARGUMENTS…     of cargo; @pg stands for the feature of the chosen Postgres (pg18), and the argument @installed
#                           for the packages that scripts/build.sh compiles: with them, crates of others have the features
#                           that they have there, and are not compiled once more
# The Postgres is the one that PG_CONFIG names, else the default one. One path per major, always the
# same: pgrx builds its bindings again when it changes.
. "$(dirname "$0")/prelude.sh"

pg_config=$("$ROOT/scripts/fetch-postgres.sh")
feature=pg$(major_of "$pg_config")

# pgrx looks for its own list of servers unless it is told of one, and wants the (empty) list even so.
export PGRX_HOME=$RAG_HOME/pgrx PGRX_PG_CONFIG_PATH=$pg_config
mkdir -p "$PGRX_HOME"
# Made once: bindings are also built again when this file is newer.
[ -e "$PGRX_HOME/config.toml" ] || touch "$PGRX_HOME/config.toml"

export RAG_TEST_PG_CONFIG=$pg_config
export RAG_TEST_MODELS=$RAG_HOME/models
export RAG_TEST_LLM=${CARGO_TARGET_DIR:-$ROOT/target}/release/rag-llm
export RAG_TEST_ONNXRUNTIME=$RAG_HOME/onnxruntime/libonnxruntime.so

arguments=()
for argument in "$@"; do
  if [ "$argument" = @installed ]; then
    arguments+=(--package rag_ext --package rag_engine --package rag_load --features "rag_ext/$feature")
  else
    arguments+=("${argument//@pg/$feature}")
  fi
done

cd "$ROOT"
exec cargo "${arguments[@]}"
