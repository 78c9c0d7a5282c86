#!/usr/bin/env bash
# Builds pgvector 0.8.0 from Debian's source package and installs it into one Postgres (15, 16 or 17).
#   build-pgvector.sh PG_CONFIG
# The upstream archive is pinned by SHA-256. Needs a machine whose packages come from a Debian mirror.
. "$(dirname "$0")/prelude.sh"

SUITE=trixie
ARCHIVE=pgvector_0.8.0.orig.tar.gz
SHA256=867a2c328d4928a5a9d6f052cd3bc78c7d60228a9b914ad32aa3db88e9de27b0
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

# Asks apt for the source, from the mirror that this machine uses already, with a package list of its
# own: the system's sources stay as they are.
fetch_archive() {
  local folder=$1 mirror apt
  # shellcheck disable=SC2016 # the names are apt's
  mirror=$(apt-get indextargets --format '$(SITE) $(COMPONENT) $(ORIGIN) $(LABEL)' | awk '$2 == "main" && $3 == "Debian" && $4 == "Debian" {print $1; exit}')
  if [ -z "$mirror" ] || [ ! -e "$KEYRING" ]; then
    die "pgvector 0.8 or newer is missing and its source can only be had on Debian: install your distribution's package for this Postgres, or use the default one"
  fi
  say "fetching pgvector's source"
  mkdir -p "$folder/lists/partial"
  echo "deb-src [signed-by=$KEYRING] $mirror $SUITE main" >"$folder/sources.list"
  apt=(apt-get --quiet -o Dir::Etc::sourcelist="$folder/sources.list" -o Dir::Etc::sourceparts=-
    -o Dir::State::lists="$folder/lists" -o Dir::Cache::srcpkgcache= -o Dir::Cache::pkgcache= -o APT::Sandbox::User=)
  "${apt[@]}" update >&2
  (cd "$folder" && "${apt[@]}" source --download-only "pgvector/$SUITE" >&2)
}

pg_config=$1
case $(major_of "$pg_config") in
  15 | 16 | 17) ;;
  *) die "pgvector 0.8.0 does not compile on $("$pg_config" --version): install its package" ;;
esac
downloads=$RAG_HOME/downloads/pgvector
mkdir -p "$downloads"
[ -e "$downloads/$ARCHIVE" ] || fetch_archive "$downloads"
echo "$SHA256  $downloads/$ARCHIVE" | sha256sum --check --quiet >&2 || die "$downloads/$ARCHIVE is not what was pinned; delete it and try again"

build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
tar -xzf "$downloads/$ARCHIVE" --strip-components 1 -C "$build"
# No bitcode (its clang may be missing) and no -march=native (the copy may be used on another machine).
options=(OPTFLAGS= with_llvm=no "PG_CONFIG=$pg_config")
say "building pgvector for $("$pg_config" --version)"
make --silent --directory "$build" "${options[@]}" >"$build/log" 2>&1 || { cat "$build/log" >&2; die "pgvector does not build"; }
install=(make --silent --directory "$build" "${options[@]}" install)
if [ -w "$("$pg_config" --pkglibdir)" ]; then "${install[@]}"; else as_root "${install[@]}"; fi >"$build/log" 2>&1 || { cat "$build/log" >&2; die "pgvector does not install"; }
