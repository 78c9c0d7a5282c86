# shellcheck shell=bash
# Sourced by every script here: where things are, how to speak, and who runs a server.
# Leaves to the scripts what they do; nothing is created or installed by reading this file,
# except the folder that RAG_HOME names.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Root may not run a Postgres server; `postgres` is whom Debian's own packages use (install-deps.sh
# creates it where it is missing).
SERVER_USER=postgres

# Progress goes to stderr, so that stdout carries results alone (a path, a URI).
say() { printf '%s\n' "$*" >&2; }
die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

is_root() { [ "$(id -u)" -eq 0 ]; }

# Runs a command with root's rights: directly, or through sudo.
as_root() {
  if is_root; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo -- "$@"
  else
    die "this needs root or sudo: $*"
  fi
}

# Runs a command with nothing but a path and a home in its environment, as SERVER_USER when called by
# root. It starts in /, because the server's user may not be able to enter the caller's folder.
as_server() {
  local clean=(env -i --chdir=/ "PATH=$PATH" HOME=/nonexistent LC_ALL=C.UTF-8)
  if is_root; then
    runuser -u "$SERVER_USER" -- "${clean[@]}" "$@"
  else
    "${clean[@]}" "$@"
  fi
}

# Everything downloaded or built for development is kept in one folder: .local in the checkout, or,
# where another user cannot enter that (a checkout of root's under /root), one of its own in /var/tmp.
home_folder() {
  if ! is_root || runuser -u nobody -- test -x "$ROOT"; then
    echo "$ROOT/.local"
  else
    echo "/var/tmp/rag_ext-$(printf %s "$ROOT" | sha256sum | cut -c 1-12)"
  fi
}

RAG_HOME=${RAG_HOME:-$(home_folder)}
mkdir -p "$RAG_HOME"
RAG_HOME=$(cd "$RAG_HOME" && pwd)
# A folder in /var/tmp has a name that others can guess: use it only if it is ours.
[ -O "$RAG_HOME" ] || die "$RAG_HOME belongs to somebody else; set RAG_HOME to a folder of your own"

# The major of the Postgres that a pg_config belongs to: 15, 16, 17 or 18.
major_of() { "$1" --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/'; }

extension_version() { sed -n "s/^default_version *= *'\(.*\)'.*/\1/p" "$ROOT/rag_ext.control"; }
