#!/usr/bin/env bash
# Fetches the PostgreSQL manual (HTML) that the distribution packages, for the demo and the tests, and
# prints its folder.
. "$(dirname "$0")/prelude.sh"

folder=$RAG_HOME/manual
package=$("$ROOT/scripts/fetch-package.sh" "$folder" postgresql-doc-{18,17,16,15})
echo "$folder/usr/share/doc/$package/html"
