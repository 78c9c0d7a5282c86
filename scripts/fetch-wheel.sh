#!/usr/bin/env bash
# Downloads one wheel named in wheels.txt and prints the path of the file.
#   fetch-wheel.sh NAME==VERSION [PYTHON]   PYTHON: the version that the file is for, if not 3.11
# pip checks the SHA-256; a file of that hash that is already here is not fetched again.
. "$(dirname "$0")/prelude.sh"

pin=$(grep -m1 "^$1 " "$ROOT/scripts/wheels.txt") || die "$1 is not in scripts/wheels.txt"
hash=${pin##*sha256:}
python=${2:-3.11}
folder=$RAG_HOME/downloads/$hash
if [ ! -e "$folder/complete" ]; then
  [ "$(uname -m)" = x86_64 ] || die "$1 is pinned for x86_64 only; this machine is $(uname -m)"
  # A pip of our own: the system's may be missing, or forbid itself (PEP 668).
  pip=$RAG_HOME/venv/bin/pip
  [ -x "$pip" ] || python3 -m venv "$RAG_HOME/venv" >&2 || die "python3 -m venv failed (apt-get install python3-venv)"
  say "fetching $1"
  rm -rf "$folder" && mkdir -p "$folder"
  # Platform and Python version are those of the pinned files, whatever runs pip here.
  "$pip" download --quiet --disable-pip-version-check --no-deps --require-hashes --no-cache-dir --ignore-requires-python \
    --only-binary :all: --implementation cp --python-version "$python" --abi "cp${python/./}" --abi none \
    --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 --platform manylinux_2_17_x86_64 --platform any \
    --dest "$folder" --requirement <(printf '%s\n' "$pin") >&2
  touch "$folder/complete"
fi
find "$folder" -name '*.whl'
