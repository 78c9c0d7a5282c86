#!/usr/bin/env bash
# Fetches manuals as PDF that the distribution packages (R's, and Debian's reference), for the benches, and prints
# the folder that they lie under.
. "$(dirname "$0")/prelude.sh"

folder=$RAG_HOME/pdfs
for package in r-doc-pdf debian-reference-en; do
  "$ROOT/scripts/fetch-package.sh" "$folder/$package" "$package" >/dev/null
done
echo "$folder"
