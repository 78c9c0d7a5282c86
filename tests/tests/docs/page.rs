//! A page of the documentation taken apart: headings, prose, tables, fenced blocks, links.

use rag_tests::repository;
use regex::Regex;
use std::collections::BTreeMap;

/// A Markdown file.
pub(crate) struct Page {
    /// Its path from the repository's root.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// A fenced block.
pub(crate) struct Fence {
    /// The number of its first line, from 1.
    pub(crate) line: usize,
    pub(crate) language: String,
    pub(crate) body: String,
    /// Whether nothing but empty lines stands between it and the block before.
    pub(crate) is_next: bool,
}

/// A table: its header, then its rows.
pub(crate) struct Table(pub(crate) Vec<Vec<String>>);

impl Page {
    pub(crate) fn read(name: &str) -> Self {
        let text = std::fs::read_to_string(repository().join(name))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        Self { name: name.to_owned(), text }
    }

    /// README and what lies in docs/, but for the decisions, which tell of their time.
    pub(crate) fn all() -> Vec<Self> {
        let docs = std::fs::read_dir(repository().join("docs")).unwrap();
        let mut names: Vec<String> =
            docs.map(|entry| format!("docs/{}", entry.unwrap().file_name().display())).collect();
        names.retain(|name| name.ends_with(".md"));
        names.sort();
        names.insert(0, "README.md".to_owned());
        names.iter().map(|name| Self::read(name)).collect()
    }

    pub(crate) fn reference() -> Self {
        Self::read("docs/reference.md")
    }

    pub(crate) fn fences(&self) -> Vec<Fence> {
        let (mut fences, mut is_next) = (Vec::new(), false);
        let mut lines = self.text.lines().enumerate();
        while let Some((index, line)) = lines.next() {
            if let Some(language) = line.strip_prefix("```") {
                let body: Vec<&str> = lines
                    .by_ref()
                    .map(|(_, line)| line)
                    .take_while(|line| !line.starts_with("```"))
                    .collect();
                let (line, body) = (index + 1, body.join("\n"));
                fences.push(Fence { line, language: language.to_owned(), body, is_next });
                is_next = true;
            } else if !line.is_empty() {
                is_next = false;
            }
        }
        fences
    }

    /// Lines with their numbers, without those of fenced blocks.
    pub(crate) fn prose(&self) -> Vec<(usize, &str)> {
        let mut is_code = false;
        let numbered = self.text.lines().enumerate().map(|(index, line)| (index + 1, line));
        numbered
            .filter(|(_, line)| {
                let is_border = line.starts_with("```");
                is_code ^= is_border;
                !is_code && !is_border
            })
            .collect()
    }

    /// What stands under each heading of this level, up to the next one of this or a higher level.
    pub(crate) fn sections(&self, level: usize) -> BTreeMap<String, Page> {
        let mut sections = BTreeMap::<String, Page>::new();
        let (mut current, mut is_code) = (None, false);
        for line in self.text.lines() {
            is_code ^= line.starts_with("```");
            if let Some((depth, title)) = heading(line).filter(|_| !is_code)
                && depth <= level
            {
                current = (depth == level).then(|| title.to_owned());
                if let Some(title) = &current {
                    let name = format!("{}#{title}", self.name);
                    sections.insert(title.clone(), Page { name, text: String::new() });
                }
            } else if let Some(title) = &current {
                let section = sections.get_mut(title).unwrap();
                section.text.push_str(line);
                section.text.push('\n');
            }
        }
        sections
    }

    /// The section of a heading of the second level.
    pub(crate) fn part(&self, title: &str) -> Page {
        let name = &self.name;
        self.sections(2).remove(title).unwrap_or_else(|| panic!("{name} has no heading \"## {title}\""))
    }

    /// Tables of the prose.
    pub(crate) fn tables(&self) -> Vec<Table> {
        let mut tables = Vec::<Table>::new();
        let mut last = 0;
        for (number, line) in self.prose().into_iter().filter(|(_, line)| line.starts_with('|')) {
            if number != last + 1 {
                tables.push(Table(Vec::new()));
            }
            last = number;
            let cells = cells(line);
            if !cells.iter().all(|cell| cell.starts_with("--")) {
                tables.last_mut().unwrap().0.push(cells);
            }
        }
        tables
    }

    /// The names under which headings are linked to.
    pub(crate) fn anchors(&self) -> Vec<String> {
        self.prose().iter().filter_map(|(_, line)| heading(line)).map(|(_, title)| anchor(title)).collect()
    }

    /// Targets of links with the lines where they stand.
    pub(crate) fn links(&self) -> Vec<(usize, String)> {
        let link = Regex::new(r"\]\(([^)\s]+)\)").unwrap();
        let code = Regex::new(r"`[^`]*`").unwrap();
        self.prose()
            .into_iter()
            .flat_map(|(number, line)| {
                let plain = code.replace_all(line, "``").into_owned();
                link.captures_iter(&plain).map(|found| (number, found[1].to_owned())).collect::<Vec<_>>()
            })
            .collect()
    }
}

impl Table {
    /// Rows behind a header that begins with this word.
    pub(crate) fn rows_of(&self, first: &str) -> &[Vec<String>] {
        match &self.0[..] {
            [header, rows @ ..] if header[0] == first => rows,
            _ => &[],
        }
    }
}

/// A text without the backticks around it.
pub(crate) fn bare(cell: &str) -> &str {
    cell.trim_matches('`')
}

fn heading(line: &str) -> Option<(usize, &str)> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    (1..=6).contains(&level).then_some(()).and(title.strip_prefix(' ')).map(|title| (level, title))
}

/// As GitHub makes it of a heading's title.
fn anchor(title: &str) -> String {
    let kept = title.to_lowercase();
    kept.chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

/// Cells of a table's line; `\|` is a stroke within one.
fn cells(line: &str) -> Vec<String> {
    let hidden = line.trim().replace("\\|", "\u{1}");
    let inner = hidden.trim_start_matches('|').trim_end_matches('|');
    inner.split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect()
}

#[test]
fn a_page_is_taken_apart() {
    let text = "# A\n\n| option | x |\n|---|---|\n| `k` | a \\| b |\n\n## B `c`, d\n\n```sql\n# no heading\n```\n\n```\nout\n```\n[l](m.md#n)\n### E\ne";
    let page = Page { name: "p".into(), text: text.into() };
    let tables = page.tables();
    assert_eq!(tables[0].rows_of("option"), [["`k`", "a | b"]]);
    assert_eq!(page.anchors(), ["a", "b-c-d", "e"]);
    let fences: Vec<_> = page.fences().into_iter().map(|f| (f.line, f.language, f.body, f.is_next)).collect();
    assert_eq!(
        fences,
        [
            (9, "sql".to_owned(), "# no heading".to_owned(), false),
            (13, String::new(), "out".to_owned(), true)
        ]
    );
    assert_eq!(page.links(), [(16, "m.md#n".to_owned())]);
    assert!(page.part("B `c`, d").text.contains("### E"));
}
