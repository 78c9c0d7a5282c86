//! The rules of the code base that a program can check. Needs no server.

#![allow(clippy::unwrap_used)]

use rag_tests::{RustSource, project_files, repository};
use regex::Regex;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const LONGEST_FILE: usize = 500;

/// Who may use whom inside the extension; a layer may always use itself, `config` and `error`.
const LAYERS: [(&str, &[&str]); 12] = [
    ("pg", &[]),
    ("storage", &["pg"]),
    ("engine", &["pg"]),
    ("ingest", &["engine", "storage", "pg"]),
    ("collection", &["ingest", "engine", "storage", "pg"]),
    ("document", &["collection", "ingest", "engine", "storage", "pg"]),
    ("attach", &["document", "collection", "ingest", "storage", "pg"]),
    ("rights", &["attach", "storage", "pg"]),
    ("search", &["rights", "attach", "collection", "ingest", "engine", "storage", "pg"]),
    ("answer", &["search", "engine", "storage", "pg"]),
    ("workers", &["attach", "search", "ingest", "engine", "storage", "pg"]),
    (
        "api",
        &[
            "workers",
            "answer",
            "search",
            "rights",
            "attach",
            "document",
            "collection",
            "ingest",
            "engine",
            "storage",
            "pg",
        ],
    ),
];

/// Which crates of the workspace each pure crate may know.
const CRATES: [(&str, &[&str]); 8] = [
    ("rag_core", &[]),
    ("rag_parse", &["rag_core"]),
    ("rag_bm25", &["rag_core"]),
    ("rag_vector", &[]),
    ("rag_wire", &["rag_core"]),
    ("rag_llm", &["rag_core", "rag_wire"]),
    ("rag_engine", &["rag_core", "rag_llm", "rag_parse", "rag_wire"]),
    ("rag_load", &["rag_core", "rag_parse"]),
];

/// Files of the engine that speak to the operating system or to C libraries.
const ENGINE_UNSAFE: [&str; 7] = ["process", "sandbox", "rlimit", "landlock", "seccomp", "session", "device"];

/// The same of the program that runs chat models.
const LLM_UNSAFE: [&str; 4] = ["llama", "process", "sampler", "vocabulary"];

fn read(path: &Path) -> String {
    std::fs::read_to_string(repository().join(path)).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn rust_files() -> Vec<PathBuf> {
    project_files().into_iter().filter(|path| path.extension().is_some_and(|e| e == "rs")).collect()
}

fn below(path: &Path, folder: &str) -> bool {
    path.starts_with(folder)
}

/// Fails with one line per finding.
fn assert_none(rule: &str, findings: Vec<String>) {
    assert!(findings.is_empty(), "{rule}:\n  {}", findings.join("\n  "));
}

/// Lines of the code, without comments and strings, that match.
fn lines_matching(path: &Path, code: &str, pattern: &Regex) -> Vec<String> {
    let hits = code.lines().enumerate().filter(|(_, line)| pattern.is_match(line));
    hits.map(|(index, line)| format!("{}:{}: {}", path.display(), index + 1, line.trim())).collect()
}

#[test]
fn there_is_code_to_check() {
    let files = rust_files();
    for folder in [
        "src",
        "crates/rag_core",
        "crates/rag_parse",
        "crates/rag_bm25",
        "crates/rag_wire",
        "crates/rag_engine",
        "crates/rag_load",
        "tests",
    ] {
        assert!(files.iter().any(|path| below(path, folder)), "no Rust file in {folder}");
    }
}

#[test]
fn source_is_taken_apart_into_code_and_strings() {
    let source = RustSource::parse(
        "let a = \"SELECT \\\" 1\"; // unsafe\nlet b = x.hint(r#\"x \"y\" \"#); /* unsafe\n*/ let c = '\"'; let d = unsafe_name;",
    );
    let seen: Vec<_> =
        source.strings.iter().map(|s| (s.line, s.text.as_str(), s.argument_of.as_str())).collect();
    assert_eq!(seen, [(1, "SELECT \\\" 1", "a"), (2, "x \"y\" ", "hint")]);
    assert!(!source.code.contains("unsafe\n") && source.code.contains("unsafe_name"), "{}", source.code);
    assert_eq!(source.code.lines().count(), 3);
}

#[test]
fn pure_crates_do_not_know_postgres_and_know_each_other_as_listed() {
    let mut findings = Vec::new();
    for (name, may_know) in CRATES {
        let manifest = read(&Path::new("crates").join(name).join("Cargo.toml"));
        // What only its tests use may know it in turn.
        for line in manifest.lines().take_while(|line| *line != "[dev-dependencies]") {
            let dependency = line.split(['=', '.', ' ']).next().unwrap_or_default();
            let knows_postgres = dependency.starts_with("pgrx");
            let knows_too_much =
                dependency.starts_with("rag_") && dependency != name && !may_know.contains(&dependency);
            if knows_postgres || knows_too_much {
                findings.push(format!("{name}: {line}"));
            }
        }
    }
    assert_none("a crate depends on what it may not know", findings);
}

#[test]
fn unsafe_code_stays_where_it_belongs() {
    let word = Regex::new(r"\bunsafe\b").unwrap();
    let allowed = Regex::new(r"#!?\[[^\]]*\bunsafe(_\w+)?\b|#\[unsafe\(no_mangle\)\]").unwrap();
    let mut findings = Vec::new();
    for path in rust_files().iter().filter(|path| !below(path, "src/pg")) {
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let folder =
            path.parent().and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or_default();
        if below(path, "crates/rag_engine")
            && (ENGINE_UNSAFE.contains(&stem) || ENGINE_UNSAFE.contains(&folder))
        {
            continue;
        }
        if below(path, "crates/rag_llm") && LLM_UNSAFE.contains(&stem) {
            continue;
        }
        let code = RustSource::parse(&read(path)).code;
        let hits = lines_matching(path, &code, &word);
        findings.extend(hits.into_iter().filter(|line| !allowed.is_match(line)));
    }
    assert_none("unsafe outside src/pg and the named files of engine and rag-llm", findings);
}

#[test]
fn only_pg_speaks_to_the_server_in_c() {
    let pattern = Regex::new(r"\bpg_sys\b").unwrap();
    let mut findings = Vec::new();
    for path in rust_files().iter().filter(|path| below(path, "src") && !below(path, "src/pg")) {
        let code = RustSource::parse(&read(path)).code.replace("pg_sys::panic", "");
        findings.extend(lines_matching(path, &code, &pattern));
    }
    assert_none("pg_sys outside src/pg", findings);
}

#[test]
fn sql_text_stays_in_storage() {
    let verb = Regex::new(
        r"^[\s(]*(?:(?:SELECT|INSERT|UPDATE|DELETE|WITH|CREATE|ALTER|DROP|TRUNCATE|MERGE|COPY|LOCK|GRANT|REVOKE|BEGIN|COMMIT|SAVEPOINT)\b|(?:select|insert into|delete from)\s)",
    )
    .unwrap();
    let mut findings = Vec::new();
    for path in rust_files() {
        if !below(&path, "src") || below(&path, "src/storage") {
            continue;
        }
        for string in RustSource::parse(&read(&path)).strings {
            // A hint may tell a person what to type.
            if verb.is_match(&string.text) && !string.argument_of.ends_with("hint") {
                let first = string.text.lines().next().unwrap_or_default();
                findings.push(format!("{}:{}: {first}", path.display(), string.line));
            }
        }
    }
    assert_none("SQL text outside src/storage and sql/", findings);
}

#[test]
fn imports_point_down() {
    let used = Regex::new(r"\bcrate::(?:\{[^}]*\}|\w+)").unwrap();
    let word = Regex::new(r"\w+").unwrap();
    let mut findings = Vec::new();
    for (layer, may_use) in LAYERS {
        let folder = Path::new("src").join(layer);
        for path in rust_files().iter().filter(|path| path.starts_with(&folder)) {
            let code = RustSource::parse(&read(path)).code;
            for import in used.find_iter(&code) {
                for name in word.find_iter(import.as_str()).map(|found| found.as_str()) {
                    let is_layer = LAYERS.iter().any(|(other, _)| *other == name);
                    if is_layer && name != layer && !may_use.contains(&name) {
                        findings.push(format!("{}: {layer} uses {name}", path.display()));
                    }
                }
            }
        }
    }
    assert_none("an import points up", findings);
}

#[test]
fn the_layers_are_drawn_as_they_are_checked() {
    let checked: Vec<&str> = LAYERS.iter().rev().map(|(layer, _)| *layer).collect();
    let library = read(Path::new("src/lib.rs"));
    let library: Vec<&str> = library.lines().map_while(|line| line.strip_prefix("//!")).collect();
    let (begin, name) = (Regex::new(r"`api` →[^.]*").unwrap(), Regex::new(r"`(\w+)`").unwrap());
    for (path, text) in
        [("src/lib.rs", library.join(" ")), ("CONTRIBUTING.md", read(Path::new("CONTRIBUTING.md")))]
    {
        let drawing = begin.find(&text).map_or("", |found| found.as_str());
        let drawn: Vec<&str> = name.captures_iter(drawing).map(|c| c.extract::<1>().1[0]).collect();
        assert_eq!(drawn, checked, "{path}");
    }
    let folders: Vec<String> = std::fs::read_dir(repository().join("src"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|folder| folder != "bin")
        .collect();
    let architecture = read(Path::new("ARCHITECTURE.md"));
    for folder in folders {
        assert!(checked.contains(&folder.as_str()), "src/{folder} is no layer");
        assert!(architecture.contains(&format!("`src/{folder}/`")), "ARCHITECTURE.md has no `src/{folder}/`");
    }
}

#[test]
fn every_file_says_what_it_is_for_and_stays_readable() {
    let mut findings = Vec::new();
    for path in rust_files() {
        let text = read(&path);
        if !text.starts_with("//!") {
            findings.push(format!("{} does not begin with //!", path.display()));
        }
        let lines = text.lines().count();
        if lines > LONGEST_FILE {
            findings.push(format!("{} has {lines} lines, more than {LONGEST_FILE}", path.display()));
        }
    }
    assert_none("files", findings);
}

/// What is for the newest Postgres is what is left when the older ones are taken away: the next one then needs a feature in
/// Cargo.toml, and changes in src/pg/ only where it differs.
#[test]
fn no_code_names_the_newest_postgres() {
    let manifest = read(Path::new("Cargo.toml"));
    let majors = Regex::new(r"(?m)^pg(\d+) = ").unwrap();
    let newest = majors.captures_iter(&manifest).map(|major| major[1].parse::<u32>().unwrap()).max().unwrap();
    let named = Regex::new(&format!("feature = \"pg({newest}|{})\"", newest + 1)).unwrap();
    let mut findings = Vec::new();
    for path in rust_files().iter().filter(|path| below(path, "src")) {
        findings.extend(lines_matching(path, &read(path), &named));
    }
    assert_none("say not(any(…)) of the older majors", findings);
}

#[test]
fn mutations_fit_the_code() {
    let mut findings = Vec::new();
    for row in read(Path::new("tests/mutations.tsv")).lines() {
        let cells: Vec<&str> = row.split('\t').collect();
        let [name, file, from, to, _] = cells[..] else {
            findings.push(format!("five cells are wanted: {row}"));
            continue;
        };
        if from == to || read(Path::new(file)).matches(from).count() != 1 {
            findings.push(format!("{name}: {file} does not have this once: {from}"));
        }
    }
    assert_none("tests/mutations.tsv", findings);
}

#[test]
fn no_file_is_a_drawer() {
    let drawers = ["utils", "util", "helpers", "helper", "common", "types", "manager", "misc"];
    let in_the_way = |path: &PathBuf| {
        path.with_extension("").iter().any(|part| drawers.contains(&part.to_str().unwrap_or_default()))
    };
    let findings =
        rust_files().into_iter().filter(in_the_way).map(|path| path.display().to_string()).collect();
    assert_none("a name that says nothing", findings);
}

#[test]
fn every_sql_object_has_a_comment() {
    let mut sql = String::new();
    // As scripts/build.sh joins them. What upgrades make is compared with it, comments included, by their own tests.
    let part = Regex::new(r"^sql/\d[^/]*\.sql$").unwrap();
    for path in project_files().into_iter().filter(|path| part.is_match(&path.to_string_lossy())) {
        // Dollar-quoted bodies may create objects of their own, such as partitions.
        write!(sql, "{}", without_bodies(&read(&path))).unwrap();
    }
    let created = Regex::new(
        r"(?im)^CREATE\s+(?:OR\s+REPLACE\s+)?(SCHEMA|TABLE|VIEW|FUNCTION|PROCEDURE|TYPE|DOMAIN|AGGREGATE|SEQUENCE)\s+(?:IF\s+NOT\s+EXISTS\s+)?([\w.]+)",
    )
    .unwrap();
    let mut counts: BTreeMap<(String, String), (usize, usize)> = BTreeMap::new();
    for found in created.captures_iter(&sql) {
        counts.entry((found[1].to_uppercase(), found[2].to_owned())).or_default().0 += 1;
    }
    for ((kind, name), (_, comments)) in &mut counts {
        let comment = format!(r"(?i)COMMENT\s+ON\s+{kind}\s+{}\b", regex::escape(name));
        *comments = Regex::new(&comment).unwrap().find_iter(&sql).count();
    }
    assert!(counts.len() > 30, "only {} objects found in sql/", counts.len());
    let missing = counts.iter().filter(|(_, (created, comments))| comments < created);
    assert_none("no COMMENT ON", missing.map(|((kind, name), _)| format!("{kind} {name}")).collect());
}

fn without_bodies(sql: &str) -> String {
    sql.split("$$").step_by(2).collect::<Vec<_>>().join(" ")
}

#[test]
fn no_machine_and_no_registry_is_named() {
    // Written in two parts, so that this file is not a finding.
    let words: Vec<String> = [
        ["/wo", "rk/"],
        ["/tmp/", "rag/"],
        ["pypi", ".org"],
        ["files.python", "hosted.org"],
        ["static.crates", ".io"],
        ["index.crates", ".io"],
        ["registry.npm", "js.org"],
    ]
    .iter()
    .map(|parts| parts.concat())
    .collect();
    let mut findings = Vec::new();
    for path in project_files().iter().filter(|path| !path.ends_with("Cargo.lock")) {
        let Ok(text) = std::fs::read_to_string(repository().join(path)) else { continue };
        for (index, line) in text.lines().enumerate() {
            if let Some(word) = words.iter().find(|word| line.contains(word.as_str())) {
                findings.push(format!("{}:{}: {word}", path.display(), index + 1));
            }
        }
    }
    assert_none("a path of one machine or the host of a registry", findings);
}

#[test]
fn no_test_is_left_out() {
    let attribute = Regex::new(&["#\\[", "ignore\\b"].concat()).unwrap();
    let mut findings = Vec::new();
    for path in rust_files() {
        findings.extend(lines_matching(&path, &RustSource::parse(&read(&path)).code, &attribute));
    }
    assert_none("a test that skips itself", findings);
}

#[test]
fn scripts_run_strictly() {
    use std::os::unix::fs::PermissionsExt;
    let mut scripts = 0;
    let mut findings = Vec::new();
    for path in project_files() {
        let text = std::fs::read_to_string(repository().join(&path)).unwrap_or_default();
        let is_script = path.extension().is_some_and(|e| e == "sh") || text.starts_with("#!");
        if !is_script || path.extension().is_some_and(|e| e == "rs") {
            continue;
        }
        scripts += 1;
        let executable =
            std::fs::metadata(repository().join(&path)).unwrap().permissions().mode() & 0o111 != 0;
        if text.starts_with("# shellcheck shell=bash\n") {
            if executable {
                findings.push(format!("{} is to be sourced, not run", path.display()));
            }
        } else {
            if !executable {
                findings.push(format!("{} is not executable", path.display()));
            }
            if !text.starts_with("#!/usr/bin/env bash\n") {
                findings.push(format!("{} does not begin with #!/usr/bin/env bash", path.display()));
            }
        }
        let strict = text.lines().filter(|line| !line.starts_with('#')).find(|line| !line.trim().is_empty());
        let sources_prelude = strict.is_some_and(|line| line.contains("prelude.sh"));
        // Continuous integration goes on after a step that failed, and counts it.
        let counts_failures = path.starts_with(".ci") && strict == Some("set -uo pipefail");
        if strict != Some("set -euo pipefail") && !sources_prelude && !counts_failures {
            findings.push(format!("{} does not begin with set -euo pipefail", path.display()));
        }
    }
    assert!(scripts > 0, "no script found");
    assert_none("scripts", findings);
}

/// Whoever has a released schema has it as it was released: what changes since is an upgrade's matter.
#[test]
fn released_schemas_are_left_as_they_are() {
    let folder = repository().join("sql/released");
    let check = ["--check", "--strict", "--quiet", "SHA256SUMS"];
    let output = std::process::Command::new("sha256sum").args(check).current_dir(&folder).output().unwrap();
    assert!(output.status.success(), "sql/released: {}", String::from_utf8_lossy(&output.stderr));
    let sums = read(Path::new("sql/released/SHA256SUMS"));
    let mut findings = Vec::new();
    for path in project_files().iter().filter(|path| path.parent() == Some(Path::new("sql/released"))) {
        let name = path.file_name().unwrap().to_string_lossy();
        if name != "SHA256SUMS" && !sums.contains(&format!("  {name}\n")) {
            findings.push(name.into_owned());
        }
    }
    assert_none("no line in sql/released/SHA256SUMS", findings);
}

#[test]
fn changelog_tells_of_the_current_version() {
    let version = env!("CARGO_PKG_VERSION");
    let heading = Regex::new(&format!(r"(?m)^## \[?{}\b", regex::escape(version))).unwrap();
    assert!(heading.is_match(&read(Path::new("CHANGELOG.md"))), "CHANGELOG.md has no heading for {version}");
    let control = read(Path::new("rag_ext.control"));
    assert!(control.contains(&format!("default_version = '{version}'")), "{control}");
}
