#!/usr/bin/env bash
# Installs what build.sh and fetch-models.sh made into one Postgres, where rag_ext looks for it:
#   $pkglibdir/rag_ext.so, $pkglibdir/rag-engine, $pkglibdir/rag-llm, $pkglibdir/rag_ext/libonnxruntime.so,
#   $bindir/rag-load, $sharedir/extension/rag_ext*, $sharedir/rag_ext/models/<name>/
# PG_CONFIG chooses the Postgres, DESTDIR goes before each path (for packages). Safe while a server
# runs: files are written aside and renamed, for a library overwritten in place crashes whoever has
# it mapped. A running server uses the new library after its next restart.
. "$(dirname "$0")/prelude.sh"

pg_config=$("$ROOT/scripts/fetch-postgres.sh")
stage=$RAG_HOME/build/$(major_of "$pg_config")
[ -e "$stage/rag_ext.so" ] || die "$stage is empty: run scripts/build.sh first"
[ -e "$RAG_HOME/models" ] || die "$RAG_HOME/models is missing: run scripts/fetch-models.sh first"

library_folder=$("$pg_config" --pkglibdir)
share_folder=$("$pg_config" --sharedir)
as_owner=()
if [ -z "${DESTDIR:-}" ] && [ ! -w "$library_folder" ]; then as_owner=(as_root); fi

# install_file FROM TO MODE: leaves a file that is the same already as it is.
install_file() {
  local to=${DESTDIR:-}$2
  if cmp --silent "$1" "$to"; then return; fi
  "${as_owner[@]}" mkdir -p "$(dirname "$to")"
  "${as_owner[@]}" install -m "$3" "$1" "$to.new"
  "${as_owner[@]}" mv -f "$to.new" "$to"
}

# install_tree FROM TO: every file of a folder, with its path in it.
install_tree() {
  local file
  while IFS= read -r file; do install_file "$1/$file" "$2/$file" 644; done < <(cd "$1" && find . -type f -printf '%P\n')
}

install_file "$stage/rag-engine" "$library_folder/rag-engine" 755
install_file "$stage/rag-llm" "$library_folder/rag-llm" 755
install_file "$stage/rag-load" "$("$pg_config" --bindir)/rag-load" 755
install_tree "$RAG_HOME/onnxruntime" "$library_folder/rag_ext"
install_tree "$RAG_HOME/models" "$share_folder/rag_ext/models"
for file in "$stage"/rag_ext.control "$stage"/rag_ext--*.sql; do
  install_file "$file" "$share_folder/extension/$(basename "$file")" 644
done
# Last, so that a server that starts in between never meets a new library and an old engine.
install_file "$stage/rag_ext.so" "$library_folder/rag_ext.so" 755
say "installed rag_ext into ${DESTDIR:-}$library_folder and ${DESTDIR:-}$share_folder"
