//! Which files are meant: walking folders, leaving out what is hidden or excluded, and giving each its address.

use crate::LoadError;
use crate::arguments::Arguments;
use crate::report::Report;
use globset::{Glob, GlobSet, GlobSetBuilder};
use rag_core::file_name::file_uri;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use walkdir::{DirEntry, WalkDir};

/// A file and the address of its document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) uri: String,
}

/// What `--include` and `--exclude` say. A glob is compared with the path below PATH, and one without a slash with
/// the bare name too.
pub(crate) struct Choice {
    include: Option<GlobSet>,
    exclude: GlobSet,
}

impl Choice {
    pub(crate) fn new(arguments: &Arguments) -> Result<Self, LoadError> {
        let include = if arguments.include.is_empty() { None } else { Some(globs(&arguments.include)?) };
        Ok(Self { include, exclude: globs(&arguments.exclude)? })
    }

    fn excludes(&self, below: &Path) -> bool {
        matches(&self.exclude, below)
    }

    fn takes(&self, below: &Path) -> bool {
        self.include.as_ref().is_none_or(|include| matches(include, below))
    }
}

fn globs(texts: &[String]) -> Result<GlobSet, LoadError> {
    let mut set = GlobSetBuilder::new();
    for text in texts {
        set.add(
            Glob::new(text.trim_end_matches('/'))
                .map_err(|error| LoadError::new(format!("glob: {error}")))?,
        );
    }
    set.build().map_err(|error| LoadError::new(format!("globs: {error}")))
}

fn matches(set: &GlobSet, below: &Path) -> bool {
    set.is_match(below) || below.file_name().is_some_and(|name| set.is_match(name))
}

/// The files of all paths, in the order of their names, each once. What cannot be read is a failure of its own.
pub(crate) fn find(
    arguments: &Arguments,
    choice: &Choice,
    report: &mut Report,
) -> Result<Vec<Found>, LoadError> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    for root in &arguments.paths {
        if std::fs::symlink_metadata(root).is_err() {
            return Err(LoadError::new(format!("{}: no such file or folder", root.display())));
        }
        // A path that was named is meant, whatever it is called.
        let is_meant = |entry: &DirEntry| {
            let below = below(entry, root);
            entry.depth() == 0 || ((arguments.hidden || !is_hidden(entry)) && !choice.excludes(&below))
        };
        let walk = WalkDir::new(root)
            .follow_links(arguments.follow_links)
            .follow_root_links(true)
            .sort_by_file_name();
        for entry in walk.into_iter().filter_entry(is_meant) {
            let entry = match entry {
                Ok(entry) => entry,
                // With links followed, a link back to a folder above is such an error: the folder is read anyway.
                Err(error) if error.loop_ancestor().is_some() => {
                    report.links += 1;
                    continue;
                }
                Err(error) => {
                    let path = error.path().unwrap_or(root).to_path_buf();
                    let reason = error.io_error().map_or_else(|| error.to_string(), ToString::to_string);
                    report.fail(&path, reason);
                    continue;
                }
            };
            if entry.file_type().is_symlink() {
                report.links += 1;
                continue;
            }
            let path = entry.path();
            let below = below(&entry, root);
            // A folder, a socket, a device; or a name that was not asked for.
            if !path.is_file() || (entry.depth() > 0 && !choice.takes(&below)) {
                continue;
            }
            match uri(arguments, path, &below) {
                Ok(uri) if seen.insert(uri.clone()) => found.push(Found { path: path.to_path_buf(), uri }),
                Ok(_) => {}
                Err(reason) => report.fail(path, reason),
            }
        }
    }
    Ok(found)
}

/// The path below the named one; of a named file its name.
fn below(entry: &DirEntry, root: &Path) -> PathBuf {
    match entry.path().strip_prefix(root) {
        Ok(below) if below.as_os_str().is_empty() => PathBuf::from(entry.file_name()),
        Ok(below) => below.to_path_buf(),
        Err(_) => PathBuf::from(entry.file_name()),
    }
}

fn is_hidden(entry: &DirEntry) -> bool {
    entry.file_name().as_encoded_bytes().starts_with(b".")
}

fn uri(arguments: &Arguments, path: &Path, below: &Path) -> Result<String, String> {
    let text =
        |path: &Path| path.to_str().map(str::to_owned).ok_or_else(|| "its name is not UTF-8".to_owned());
    match &arguments.base {
        Some(base) => Ok(format!("{base}{}", text(below)?)),
        None => {
            let absolute = std::path::absolute(path).map_err(|error| error.to_string())?;
            Ok(file_uri(&text(&absolute)?))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use clap::Parser;

    fn found(folder: &Path, more: &[&str]) -> (Vec<String>, Report) {
        let mut line =
            vec!["rag-load".to_owned(), folder.display().to_string(), "--base".into(), String::new()];
        line.extend(more.iter().map(|&argument| argument.to_owned()));
        let arguments = Arguments::try_parse_from(line).unwrap();
        let mut report = Report::default();
        let found = find(&arguments, &Choice::new(&arguments).unwrap(), &mut report).unwrap();
        (found.into_iter().map(|found| found.uri).collect(), report)
    }

    #[test]
    fn folders_are_walked_and_what_is_hidden_excluded_or_a_loop_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for name in ["b.md", "a.txt", "sub/c.md", "sub/deep/d.pdf", ".hidden/e.md", ".f.md", "skip/g.md"] {
            std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            std::fs::write(root.join(name), name).unwrap();
        }
        std::os::unix::fs::symlink(root, root.join("sub/loop")).unwrap();
        std::os::unix::fs::symlink(root.join("a.txt"), root.join("link.txt")).unwrap();
        std::os::unix::fs::symlink("/nowhere/at/all", root.join("dangling")).unwrap();

        let (all, report) = found(root, &["-x", "skip"]);
        assert_eq!(all, ["a.txt", "b.md", "sub/c.md", "sub/deep/d.pdf"]);
        assert_eq!((report.links, report.has_failures()), (3, false));
        assert_eq!(found(root, &["-i", "*.md", "-x", "skip/"]).0, ["b.md", "sub/c.md"]);
        assert_eq!(found(root, &["-i", "sub/**"]).0, ["sub/c.md", "sub/deep/d.pdf"]);
        assert!(found(root, &["--hidden"]).0.contains(&".hidden/e.md".to_owned()));
        let (followed, report) = found(root, &["-L", "-x", "skip"]);
        assert_eq!(followed, ["a.txt", "b.md", "link.txt", "sub/c.md", "sub/deep/d.pdf"]);
        assert_eq!(report.links, 1, "the loop");
        assert!(report.has_failures(), "the dangling link");
    }

    #[test]
    fn a_named_file_is_meant_and_has_an_address() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".a b.md");
        std::fs::write(&path, "x").unwrap();
        assert_eq!(found(&path, &[]).0, [".a b.md"]);
        let arguments =
            Arguments::try_parse_from(["rag-load".into(), path.clone().into_os_string()]).unwrap();
        let all = find(&arguments, &Choice::new(&arguments).unwrap(), &mut Report::default()).unwrap();
        assert_eq!(all[0].uri, file_uri(path.to_str().unwrap()));
        let missing = Arguments::try_parse_from(["rag-load", "/no/such/thing"]).unwrap();
        assert!(find(&missing, &Choice::new(&missing).unwrap(), &mut Report::default()).is_err());
    }
}
