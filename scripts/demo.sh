#!/usr/bin/env bash
# The demo: reads the PostgreSQL manual into the private cluster, shows three searches and three
# questions, and says how to go on. `make demo` builds and installs first.
#   FULL=1     the whole manual instead of the part that demo-pages.txt names
# A page that was read before and has not changed is not read again.
. "$(dirname "$0")/prelude.sh"

PG_CONFIG=$("$ROOT/scripts/fetch-postgres.sh")
export PG_CONFIG
cluster=$ROOT/scripts/cluster.sh
uri=$("$cluster" up)
manual=$("$ROOT/scripts/fetch-manual.sh")
pages=$RAG_HOME/manual/pages.csv

sql() { "$cluster" psql -X --quiet --set ON_ERROR_STOP=1 "$@"; }
value() { sql --no-align --tuples-only --command "$1"; }
heading() { printf '\n\033[1m%s\033[0m\n' "$*"; }

# Writes uri and content of each chosen page as CSV.
choose_pages() {
  python3 - "$manual" "$ROOT/scripts/demo-pages.txt" "${FULL:-}" >"$pages" <<'PYTHON'
import csv, fnmatch, pathlib, sys

folder, list_of_patterns, full = sys.argv[1:]
patterns = [line for line in pathlib.Path(list_of_patterns).read_text().split("\n") if line and line[0] != "#"]
rows = csv.writer(sys.stdout)
for page in sorted(pathlib.Path(folder).glob("*.html")):
    # The index of the book is a list of links.
    if page.stem != "bookindex" and (full or any(fnmatch.fnmatch(page.stem, pattern) for pattern in patterns)):
        rows.writerow([page.name, page.read_text(encoding="utf-8")])
PYTHON
}

ingest() {
  sql <<SQL
SET client_min_messages = warning;
CREATE TEMPORARY TABLE page (uri text, content text);
\copy page FROM '$pages' WITH (FORMAT csv)
SELECT rag_create_collection('manual') WHERE NOT EXISTS (
  SELECT FROM rag.collection WHERE name = 'manual' AND owner = 'role:' || current_user) \g /dev/null
SELECT count(rag_ingest(content, uri => uri, collection => 'manual', options => '{"media_type": "text/html"}'))
FROM page \g /dev/null
SQL
}

# Shows how far the background work is until it is done; gives up when nothing moves for five minutes.
watch_progress() {
  local documents finished failed chunks left before='' moved=$SECONDS
  while true; do
    IFS='|' read -r documents finished failed chunks left < <(value "
      SELECT documents, documents_done, documents_failed, chunks,
             coalesce('about ' || to_char(estimated_time_left, 'MI:SS') || ' left', '')
      FROM rag.collection_status WHERE collection = 'manual'")
    if [ "$finished $chunks" != "$before" ]; then
      before="$finished $chunks"
      moved=$SECONDS
      draw_bar "$((finished + failed))" "$documents" "$finished of $documents pages, $chunks chunks  $left"
    fi
    if [ $((finished + failed)) -eq "$documents" ]; then break; fi
    if [ $((SECONDS - moved)) -gt 300 ]; then
      value 'SELECT rag_status()' >&2
      die "nothing has been read for five minutes"
    fi
    sleep 0.5
  done
  echo
  if [ "$failed" -gt 0 ]; then sql --command "SELECT uri, error FROM rag.failed_job"; fi
}

# draw_bar DONE ALL TEXT: over the last one on a terminal, else a line for each tenth.
last_tenth=
draw_bar() {
  local tenth=$(($1 * 10 / ($2 > 0 ? $2 : 1))) bar
  if [ -t 1 ]; then
    bar=$(printf '%*s' $((tenth * 3)) '' | tr ' ' '#')
    printf '\r\033[K[%-30s] %s' "$bar" "$3"
  elif [ "$tenth" != "$last_tenth" ]; then
    last_tenth=$tenth
    printf '%s\n' "$3"
  fi
}

search() {
  heading "SELECT rank, score, uri, snippet FROM rag_search('$1', 'manual', k => 4, mode => '$2')"
  sql --pset format=wrapped --pset columns=120 --pset footer=off --set query="$1" --set mode="$2" <<'SQL'
SELECT rank, round(score::numeric, 3) AS score, uri, regexp_replace(snippet, '\s+', ' ', 'g') AS snippet
FROM rag_search(:'query', 'manual', k => 4, mode => :'mode');
SQL
}

ask() {
  heading "SELECT rag_answer_text('$1', 'manual')"
  sql --no-align --tuples-only --set question="$1" <<'SQL'
SELECT rag_answer_text(:'question', 'manual');
SQL
}

choose_pages
heading "Reading $(basename "$(readlink -f "$manual/..")"): collection 'manual'"
ingest
watch_progress

search 'how does autovacuum decide when to vacuum a table' hybrid
search '"partial index" +unique' keyword
search 'let each tenant see only its own rows' vector

ask 'What does work_mem limit?'
ask 'How do I take a base backup of a running server?'
ask 'What is the capital of France?'

heading "Each citation is a row, too"
sql --pset format=wrapped --pset columns=120 --pset footer=off <<'SQL'
SELECT n, uri, quote, round(support::numeric, 2) AS support
FROM rag_cite('Which index type supports full text search?', 'manual');
SQL

heading "The cluster keeps running"
cat <<TEXT
connect   make psql                      or   psql '$uri'
try       SELECT rag_answer_text('How can I see which queries are waiting for a lock?', 'manual');
          SELECT rag_ingest('Your own text …', title => 'A note');
status    SELECT rag_status();
stop      make down
TEXT
