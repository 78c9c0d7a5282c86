#!/usr/bin/env bash
# A private cluster with rag_ext for development and for the demo, under RAG_HOME/cluster-<major>.
#   cluster.sh up            starts it (and makes it, the first time); prints its connection URI
#   cluster.sh uri           prints the URI of a running one
#   cluster.sh psql [ARG…]   psql, connected to it
#   cluster.sh down          stops it, and no other
#   cluster.sh reset         stops it and deletes its data
# PG_CONFIG chooses the Postgres, which has rag_ext installed. Its superuser `postgres` needs the
# password that stands in the URI: other users of this machine reach 127.0.0.1 too.
. "$(dirname "$0")/prelude.sh"

pg_config=$("$ROOT/scripts/fetch-postgres.sh")
bin=$("$pg_config" --bindir)
cluster=$RAG_HOME/cluster-$(major_of "$pg_config")
data=$cluster/data
library=$("$pg_config" --pkglibdir)/rag_ext.so
schema=$("$pg_config" --sharedir)/extension/rag_ext--$(extension_version).sql

server() { as_server "$bin/pg_ctl" --pgdata "$data" --silent "$@" </dev/null; }
is_running() { [ -d "$data" ] && server status >/dev/null; }
stop() { if is_running; then server --wait --mode fast stop >/dev/null; fi; }

# write_file NAME: stdin into a file of the cluster, whose folder only its owner can enter.
write_file() { as_server tee "$cluster/$1" >/dev/null; }

# Prints the port given, if nobody listens on it, else another that is free.
free_port() {
  python3 - "$@" <<'PYTHON'
import random, socket, sys

# Below the range from which systems draw the ports of outgoing connections.
for port in [int(p) for p in sys.argv[1:]] + random.sample(range(20000, 30000), 200):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        print(port)
        break
PYTHON
}

create() {
  say "creating a cluster in $cluster"
  mkdir -p "$cluster"
  chmod 700 "$cluster"
  if is_root; then chown "$SERVER_USER:" "$cluster"; fi
  od -An -N16 -tx1 /dev/urandom | tr -d ' \n' | write_file password
  rm -rf "$data.new"
  as_server "$bin/initdb" --pgdata "$data.new" --username postgres --pwfile "$cluster/password" --auth scram-sha-256 \
    --encoding UTF8 --locale C.UTF-8 --data-checksums >/dev/null
  echo "include '../rag_ext.conf'" | as_server tee --append "$data.new/postgresql.conf" >/dev/null
  as_server mv "$data.new" "$data"
}

start() {
  local port=()
  [ ! -s "$cluster/port" ] || port=("$(cat "$cluster/port")")
  port=("$(free_port "${port[@]}")")
  write_file port <<<"${port[0]}"
  write_file rag_ext.conf <<CONF
# Written by scripts/cluster.sh at each start.
listen_addresses = '127.0.0.1'
port = ${port[0]}
unix_socket_directories = ''
shared_preload_libraries = 'rag_ext'
CONF
  if ! server --wait --log "$cluster/log" start >/dev/null; then
    tail -n 20 "$cluster/log" >&2
    die "the server did not start; the whole log is $cluster/log"
  fi
}

# Tells psql and libpq where the cluster is, keeping the password out of the process list.
connect() {
  is_running || die "no cluster is running in $cluster: make up starts it"
  export PGHOST=127.0.0.1 PGPORT PGUSER=postgres PGPASSWORD PGDATABASE=${1:-rag}
  PGPORT=$(cat "$cluster/port")
  PGPASSWORD=$(cat "$cluster/password")
}

uri() {
  connect
  echo "postgresql://$PGUSER:$PGPASSWORD@$PGHOST:$PGPORT/$PGDATABASE"
}

create_extension() {
  connect postgres
  if [ -z "$("$bin/psql" -XAtc "SELECT 1 FROM pg_database WHERE datname = 'rag'")" ]; then
    "$bin/psql" -Xqc 'CREATE DATABASE rag'
  fi
  connect rag
  if [ -z "$("$bin/psql" -XAtc "SELECT 1 FROM pg_extension WHERE extname = 'rag_ext'")" ]; then
    PGOPTIONS='-c client_min_messages=warning' "$bin/psql" -Xqc 'CREATE EXTENSION rag_ext CASCADE'
    sha256sum <"$schema" | write_file schema.sha256
  elif [ "$(sha256sum <"$schema")" != "$(cat "$cluster/schema.sha256")" ]; then
    say "note: the extension's SQL has changed since this cluster was made; scripts/cluster.sh reset gives a fresh one"
  fi
}

up() {
  [ -e "$library" ] || die "rag_ext is not installed in this Postgres: make install"
  [ -d "$data" ] || create
  if is_running && [ "$library" -nt "$data/postmaster.pid" ]; then
    say "restarting the cluster with the new library"
    stop
  fi
  is_running || start
  create_extension
  uri
}

case ${1:-} in
  up) up ;;
  uri) uri ;;
  psql)
    shift
    connect
    exec "$bin/psql" "$@"
    ;;
  down) stop ;;
  reset)
    stop
    rm -rf "$cluster"
    ;;
  *) die "usage: cluster.sh up|uri|psql|down|reset" ;;
esac
