#!/usr/bin/env bash
# Installs the Debian or Ubuntu packages that are missing, and the user that servers run as.
#   install-deps.sh [PACKAGE…]     without arguments: what building and testing rag_ext needs
# Does nothing, quickly, when all is there. Rust itself is the caller's to install.
. "$(dirname "$0")/prelude.sh"

# clang and libclang read Postgres' headers for pgrx; cmake builds llama.cpp; unzip and python3-venv open what fetch-wheel.sh fetches.
packages=(build-essential cmake pkg-config clang libclang-dev python3 python3-venv unzip ca-certificates)
[ $# -eq 0 ] || packages=("$@")

missing=()
for package in "${packages[@]}"; do
  dpkg-query --show --showformat '${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^ii' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  say "installing ${missing[*]}"
  install=(env DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends "${missing[@]}")
  # The package lists may be absent (containers) or too old: refresh them if the first try fails.
  as_root "${install[@]}" >/dev/null 2>&1 || { as_root apt-get update --quiet >&2 && as_root "${install[@]}" >&2; }
fi

# Root cannot run Postgres; Debian's postgresql-common adopts this user if it is installed later.
if is_root && ! id "$SERVER_USER" >/dev/null 2>&1; then
  say "creating the user $SERVER_USER"
  useradd --system --user-group --home-dir /var/lib/postgresql --shell /bin/bash "$SERVER_USER"
fi

[ $# -gt 0 ] || command -v cargo >/dev/null || die "Rust is missing: install it with rustup, then try again"
