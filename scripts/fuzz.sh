#!/usr/bin/env bash
# Fuzzes what reads bytes that somebody else wrote, and prints a line for each target:
#   fuzz.sh [TARGET…]      all targets of fuzz/src/main.rs, or these
# RAG_FUZZ_SECONDS=60 is the time for each; RAG_FUZZ_JOBS=2 how many run at once; RAG_FUZZ_SEED=1 repeats a run. Ends with 1 if one of them found
# something: the input then lies in RAG_HOME/fuzz/found, and `fuzz.sh` with the target and that file as arguments
# runs it again. What a run learns is kept in RAG_HOME/fuzz/corpus. Needs no nightly Rust and no cargo-fuzz.
. "$(dirname "$0")/prelude.sh"

"$ROOT/scripts/install-deps.sh" build-essential

seconds=${RAG_FUZZ_SECONDS:-60}
# 0 draws one.
seed=${RAG_FUZZ_SEED:-0}
home=$RAG_HOME/fuzz
host=$(rustc -vV | sed -n 's/^host: //p')
target_dir=${CARGO_TARGET_DIR:-$ROOT/target}/fuzz
program=$target_dir/$host/release/rag_fuzz

# As cargo-fuzz does it, but with options that a stable compiler takes too. --target keeps them away from build
# scripts and macros.
flags=(-Cpasses=sancov-module -Ccodegen-units=1
  -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
  -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares
  -Cforce-frame-pointers --cfg=fuzzing)

say "building the fuzz targets"
RUSTFLAGS="${flags[*]}" cargo build --quiet --release --manifest-path "$ROOT/fuzz/Cargo.toml" --target "$host" \
  --target-dir "$target_dir" >&2

say "writing what they begin from"
"$ROOT/scripts/cargo.sh" run --quiet --package rag_test_files --example seeds -- "$home/seeds" >&2

# fuzz_one TARGET [FILE]: one line about it; its log stays beside the corpus.
fuzz_one() {
  local target=$1 log=$home/$1.log outcome=ok
  mkdir -p "$home/corpus/$target" "$home/found" "$home/seeds/$target"
  if [ $# -gt 1 ]; then
    RAG_FUZZ_TARGET=$target exec "$program" -timeout=30 -rss_limit_mb=2048 "$2"
  fi
  RAG_FUZZ_TARGET=$target "$program" -seed="$seed" -max_total_time="$seconds" -timeout=30 -rss_limit_mb=2048 -max_len=32768 \
    -artifact_prefix="$home/found/$target-" -print_final_stats=1 \
    "$home/corpus/$target" "$home/seeds/$target" >"$log" 2>&1 || outcome=FAILED
  printf '%-6s %-9s %9s runs, coverage %s\n' "$outcome" "$target" \
    "$(sed -n 's/^stat::number_of_executed_units: //p' "$log")" "$(grep -o 'cov: [0-9]*' "$log" | tail -1 | cut -c6-)"
  if [ $outcome != ok ]; then
    grep -vE '^#[0-9]+|^INFO|^stat::' "$log" | head -60
    return 1
  fi
}

if [ $# -eq 2 ] && [ -f "$2" ]; then
  fuzz_one "$@"
fi
targets=("$@")
if [ $# -eq 0 ]; then
  mapfile -t targets < <(sed -n 's/^    ("\([a-z]*\)", [a-z]*::.*/\1/p' "$ROOT/fuzz/src/main.rs")
fi
export -f fuzz_one
export home seconds seed program
# shellcheck disable=SC2016 # $0 is the inner shell's: the name that xargs hands over.
printf '%s\0' "${targets[@]}" | xargs -0 -n 1 -P "${RAG_FUZZ_JOBS:-2}" bash -c 'fuzz_one "$0"'
