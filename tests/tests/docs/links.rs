//! Links lead to files and headings that are there, and README stays short.

use super::page::Page;
use rag_tests::repository;
use std::path::{Component, Path, PathBuf};

const LONGEST_README: usize = 180;

/// A path without `..`.
fn joined(folder: &Path, target: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for part in folder.join(target).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            other => path.push(other),
        }
    }
    path
}

#[test]
fn links_lead_to_files_and_headings() {
    let mut pages = Page::all();
    pages.extend(["ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "docker/README.md"].map(Page::read));
    let (mut broken, mut followed) = (Vec::new(), 0);
    for page in &pages {
        for (line, target) in page.links() {
            if target.contains("://") {
                continue;
            }
            followed += 1;
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let own = Path::new(&page.name);
            let path = if file.is_empty() { own.to_owned() } else { joined(own.parent().unwrap(), file) };
            let is_there = repository().join(&path).exists();
            let is_found = anchor.is_empty()
                || is_there && Page::read(path.to_str().unwrap()).anchors().iter().any(|a| a == anchor);
            if !is_there || !is_found {
                broken.push(format!("{}:{line}: {target}", page.name));
            }
        }
    }
    assert!(broken.is_empty(), "links to nothing:\n  {}", broken.join("\n  "));
    assert!(followed > 20, "only {followed} links were found");
}

#[test]
fn the_readme_links_to_each_page_and_stays_short() {
    let readme = Page::read("README.md");
    let lines = readme.text.lines().count();
    assert!(lines <= LONGEST_README, "README.md has {lines} lines, more than {LONGEST_README}");
    let links: Vec<String> = readme.links().into_iter().map(|(_, target)| target).collect();
    for page in Page::all().iter().skip(1) {
        assert!(links.contains(&page.name), "README.md does not link to {}", page.name);
    }
}
