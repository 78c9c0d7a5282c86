#!/usr/bin/env bash
# Freezes the version that rag_ext.control names, when it is released:
#   sql/released/rag_ext--VERSION.sql         its schema, from which upgrades are tested; never changed again
#   sql/released/rag_ext--LAST--VERSION.sql   the step to it from the last release, if there was one
#   sql/released/SHA256SUMS                   what says so
#   tests/tests/data/rag_ext-VERSION.sql.gz   a dump of a filled database of that version, by the oldest Postgres, which
#                                             the newer ones read too
# What comes after is another version: raise it in Cargo.toml and rag_ext.control, begin sql/rag_ext--VERSION--NEXT.sql and
# a heading of CHANGELOG.md.
. "$(dirname "$0")/prelude.sh"

version=$(extension_version)
schema=$ROOT/sql/released/rag_ext--$version.sql
dump=$ROOT/tests/tests/data/rag_ext-$version.sql

[ ! -e "$schema" ] || die "$version is released already: raise the version"
(cd "$ROOT/sql/released" && sha256sum --check --strict --quiet SHA256SUMS)
PG_CONFIG=$("$ROOT/scripts/fetch-postgres.sh" 15)
export PG_CONFIG
"$ROOT/scripts/build.sh" >/dev/null
"$ROOT/scripts/install.sh"
"$ROOT/scripts/cargo.sh" run --package rag_tests --example fill -- "$dump"
gzip --no-name --best --force "$dump"
cat "$ROOT"/sql/[0-9]*.sql >"$schema"
for step in "$ROOT/sql"/rag_ext--*--"$version".sql; do
  [ ! -e "$step" ] || mv "$step" "$ROOT/sql/released/"
done
cd "$ROOT/sql/released"
sha256sum rag_ext--*.sql >SHA256SUMS
say "frozen: $schema"
say "        $dump.gz"
