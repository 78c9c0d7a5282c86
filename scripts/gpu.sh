#!/usr/bin/env bash
# Measures the models of a folder on the CPU and on a GPU, and prints a table:
#   gpu.sh ENGINE MODELS ONNXRUNTIME [SECONDS]
# ENGINE is the program rag-engine, MODELS a folder of models, ONNXRUNTIME the libonnxruntime.so of a GPU build, beside
# libonnxruntime_providers_cuda.so; CUDA and cuDNN must be where the loader looks (LD_LIBRARY_PATH). SECONDS=10 is the time for
# the chunks and for the pairs, on each device. RAG_GPU_DEVICE=cuda:0 names another GPU, RAG_GPU_EMBEDDING and
# RAG_GPU_RERANKER other models; RAG_GPU_ONLY=cpu leaves the GPU out. Builds nothing and downloads nothing.
# Ends with 1 where the GPU could not be used, where a vector's cosine with that of the CPU is below 0.999, or where a result
# that must be reproducible changes with what is computed beside it.
. "$(dirname "$0")/prelude.sh"

least_cosine=0.999

usage="usage: gpu.sh ENGINE MODELS ONNXRUNTIME [SECONDS]"
[ $# -ge 3 ] && [ $# -le 4 ] || die "$usage"
engine=$1
models=$2
library=$3
seconds=${4:-10}
[ -x "$engine" ] && [ -f "$engine" ] || die "$engine is no program; $usage"
[ -d "$models" ] || die "$models is no folder of models; $usage"
[ -f "$library" ] || die "there is no file $library; $usage"
[[ $seconds =~ ^[0-9]{1,4}$ ]] || die "SECONDS is a whole number, not $seconds; $usage"

device=${RAG_GPU_DEVICE:-cuda:0}
[[ $device =~ ^cuda(:[0-9]{1,3})?$ ]] || die "RAG_GPU_DEVICE is cuda or cuda:N, not $device"
only=${RAG_GPU_ONLY:-}
[ -z "$only" ] || [ "$only" = cpu ] || die "RAG_GPU_ONLY is cpu or not set, not $only"
options=(--models "$models" --onnxruntime "$library" --seconds "$seconds")
[ -z "${RAG_GPU_EMBEDDING:-}" ] || options+=(--embedding "$RAG_GPU_EMBEDDING")
[ -z "${RAG_GPU_RERANKER:-}" ] || options+=(--reranker "$RAG_GPU_RERANKER")

work=$(mktemp -d)
sampler=
stop_sampler() {
  [ -z "$sampler" ] || kill "$sampler" 2>/dev/null || true
  [ -z "$sampler" ] || wait "$sampler" 2>/dev/null || true
  sampler=
}
trap 'stop_sampler; rm -rf "$work"' EXIT

# measure DEVICE OPTION…: what the engine prints goes into a file of its own.
measure() {
  say "measuring on $1, about $((2 * seconds)) s"
  "$engine" measure --device "$1" "${options[@]}" "${@:2}" >"$work/${1%%:*}"
}

# value DEVICE KEY
value() { awk -F '\t' -v key="$2" '$1 == key { print $2 }' "$work/$1"; }

# row NAME KEY [time]: a line of the table, with how many times as much the GPU does; or as fast, where it is a time.
row() {
  local cpu cuda=- times=-
  cpu=$(value cpu "$2")
  if [ -s "$work/cuda" ]; then
    cuda=$(value cuda "$2")
    times=$(awk -v cpu="$cpu" -v cuda="$cuda" -v kind="${3:-}" 'BEGIN {
      if (cpu > 0 && cuda > 0) printf "%.1f", (kind == "time" ? cpu / cuda : cuda / cpu); else print "-" }')
  fi
  printf '%-12s %12s %12s %8s\n' "$1" "$cpu" "$cuda" "$times"
}

table() {
  printf '%-12s %12s %12s %8s\n' "" cpu "${device}" "times"
  row chunks/s chunks_per_second
  row tokens/s tokens_per_second
  row pairs/s pairs_per_second
  row "query, ms" query_ms time
  row "busy query" query_beside_bulk_ms time
  row "rerank, ms" search_pairs_ms time
  local on
  for on in cpu cuda; do
    [ -s "$work/$on" ] || continue
    printf '%s: %s %s; %s %s; %s threads\n' "$(value $on device)" "$(value $on embedding_graph)" \
      "$(value $on embedding_runs)" "$(value $on reranker_graph)" "$(value $on reranker_runs)" "$(value $on threads)"
  done
  printf 'rerank: a search'"'"'s pairs, on the CPU %s; results changed by others: on the CPU %s' \
    "$(value cpu search_pairs)" "$(value cpu changed_in_company)"
  [ ! -s "$work/cuda" ] || printf ', on the GPU %s and %s' "$(value cuda search_pairs)" "$(value cuda changed_in_company)"
  printf '\nONNX Runtime: %s\n' "$(value cpu onnxruntime)"
}

# utilisation FILE: of lines "percent, MiB", those in which something ran.
utilisation() {
  awk -F ', *' '$1 + 0 > 0 { busy++; sum += $1; if ($1 + 0 > most) most = $1 + 0 } $2 + 0 > memory { memory = $2 + 0 } NF == 2 { all++ }
    END {
      if (all) printf "GPU utilisation: %.0f %% while anything ran (%d of %d samples), at most %d %%; memory in use at most %d MiB\n",
        (busy ? sum / busy : 0), busy, all, most, memory
      else print "GPU utilisation: nvidia-smi gave no numbers"
    }' "$1"
}

measure cpu --keep "$work/vectors"
if [ "$only" = cpu ]; then
  table
  echo "GPU: left out (RAG_GPU_ONLY=cpu)"
  exit 0
fi

if command -v nvidia-smi >/dev/null; then
  ordinal=${device#cuda}
  ordinal=${ordinal#:}
  nvidia-smi --id="${ordinal:-0}" --query-gpu=utilization.gpu,memory.used --format=csv,noheader,nounits --loop-ms=500 \
    >"$work/samples" 2>/dev/null &
  sampler=$!
else
  say "no utilisation: there is no nvidia-smi"
fi
if ! measure "$device" --compare "$work/vectors"; then
  stop_sampler
  rm -f "$work/cuda"
  table
  echo "GPU: not measured"
  die "$device could not be used, so these are the CPU's figures alone"
fi
stop_sampler

table
if [ -e "$work/samples" ]; then utilisation "$work/samples"; else echo "GPU utilisation: no nvidia-smi"; fi
cosine=$(value cuda least_cosine)
echo "least cosine between vectors of the CPU and of the GPU: $cosine"
if ! awk -v cosine="$cosine" -v least="$least_cosine" 'BEGIN { exit !(cosine != "" && cosine + 0 >= least) }'; then
  [ "$(value cpu embedding_graph)" = "$(value cuda embedding_graph)" ] ||
    say "the two ran different files: if model.onnx is quantised, its vectors are not those of model_fp16.onnx"
  die "the vectors do not agree: the least cosine is $cosine, not $least_cosine or more"
fi
changed=$(value cuda changed_in_company)
[ "$changed" = 0 ] || die "$changed results of the GPU change with what is computed beside them"
