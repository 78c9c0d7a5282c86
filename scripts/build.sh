#!/usr/bin/env bash
# Builds the extension for one Postgres and gathers what is to be installed in RAG_HOME/build/<major>:
#   rag_ext.so, rag-engine, rag-llm, rag-load, rag_ext.control, rag_ext--VERSION.sql, those of released versions and the upgrade steps.
# PG_CONFIG chooses the Postgres. Majors share one target folder: all but pgrx and the extension
# itself is built once.
. "$(dirname "$0")/prelude.sh"

export PG_CONFIG
PG_CONFIG=$("$ROOT/scripts/fetch-postgres.sh")
stage=$RAG_HOME/build/$(major_of "$PG_CONFIG")

# The library has one name in the target folder, whatever it was built for, and cargo takes it for what it built last for
# this major and version, even if it was overwritten since.
built_for="$(major_of "$PG_CONFIG") $(extension_version)"
target=${CARGO_TARGET_DIR:-$ROOT/target}/release
if [ "$(cat "$target/rag_ext.built_for" 2>/dev/null)" != "$built_for" ]; then
  rm -f "$target/rag_ext.built_for"
  "$ROOT/scripts/cargo.sh" clean --release --package rag_ext >&2
fi

say "building rag_ext for $("$PG_CONFIG" --version)"
# All in one call, so that what they share is compiled once, with the features that all need.
"$ROOT/scripts/cargo.sh" build --release @installed --lib --bin rag-engine --bin rag-load >&2
echo "$built_for" >"$target/rag_ext.built_for"
# In a call of its own, which has the features that clippy has it with: llama.cpp is compiled once for both, in minutes.
"$ROOT/scripts/cargo.sh" build --release --package rag_llm --features llama >&2

# A file that has not changed keeps its time: cluster.sh restarts servers whose library is newer.
stage_file() {
  cmp --silent "$1" "$stage/$2" || cp "$1" "$stage/$2"
}
mkdir -p "$stage"
stage_file "$target/librag_ext.so" rag_ext.so
stage_file "$target/rag-engine" rag-engine
stage_file "$target/rag-llm" rag-llm
stage_file "$target/rag-load" rag-load
stage_file "$ROOT/rag_ext.control" rag_ext.control

# The schema is one script made of sql/NN_name.sql, in the order of their names; upgrade steps and the schemas of
# released versions are files of their own.
schema=$(mktemp)
trap 'rm -f "$schema"' EXIT
cat "$ROOT"/sql/[0-9]*.sql >"$schema"
rm -f "$stage"/rag_ext--*--*.sql
stage_file "$schema" "rag_ext--$(extension_version).sql"
for script in "$ROOT"/sql/rag_ext--*--*.sql "$ROOT"/sql/released/rag_ext--*.sql; do
  [ ! -e "$script" ] || stage_file "$script" "$(basename "$script")"
done
echo "$stage"
