//! What a document's address and its file's name say: name, source, address of a path, and a hint of its type.
//!
//! What a file really is, its content decides; that is left to the parser.

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

/// What a path must not contain when it is written as an address. Letters beyond ASCII stay readable (RFC 3987).
const ESCAPED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'`')
    .add(b'{')
    .add(b'}');

/// The address of an absolute path: `file:///srv/in/a%20b.pdf`.
pub fn file_uri(path: &str) -> String {
    let mut uri = String::from("file://");
    for c in path.chars() {
        if c.is_ascii() {
            let mut buffer = [0; 4];
            uri.extend(utf8_percent_encode(c.encode_utf8(&mut buffer), ESCAPED));
        } else {
            uri.push(c);
        }
    }
    uri
}

/// The last part of an address without query and fragment, with `%20` and the like read; or of a plain path.
pub fn file_name(uri: &str) -> Option<String> {
    let (scheme, path) = uri.split_once("://").map_or(("", uri), |(scheme, rest)| match scheme {
        "file" => (scheme, rest),
        _ => (scheme, rest.split_once('/').map_or("", |(_, path)| path)),
    });
    let path = if scheme.is_empty() { path } else { path.split(['?', '#']).next().unwrap_or_default() };
    let last = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = if scheme.is_empty() { last.to_owned() } else { unescaped(last) };
    (!name.trim().is_empty()).then(|| name.replace('\0', ""))
}

/// The extension of a file's name, in lower case: up to eight ASCII letters and digits.
pub fn extension(file_name: &str) -> Option<String> {
    let (stem, extension) = file_name.rsplit_once('.')?;
    let is_extension = !stem.is_empty()
        && (1..=8).contains(&extension.len())
        && extension.bytes().all(|b| b.is_ascii_alphanumeric());
    is_extension.then(|| extension.to_lowercase())
}

/// The host of a web address without `www.`, else the folder that a file came from.
pub fn source(uri: &str) -> Option<String> {
    if let Some((scheme, rest)) = uri.split_once("://")
        && scheme != "file"
    {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default();
        let host = host.split(':').next().unwrap_or_default().to_lowercase();
        let host = host.strip_prefix("www.").unwrap_or(&host).to_owned();
        return (!host.is_empty()).then_some(host);
    }
    let (is_escaped, path) = uri.strip_prefix("file://").map_or((false, uri), |path| (true, path));
    let (folder, _) = path.rsplit_once(['/', '\\'])?;
    let folder = if is_escaped { unescaped(folder) } else { folder.to_owned() };
    (!folder.is_empty()).then(|| folder.replace('\0', ""))
}

/// The media type that a file's name suggests, where content cannot tell it and does not contradict: Markdown
/// looks like any text, and so does a table of one column.
///
/// `None` for everything that begins like a page or is no UTF-8 text.
pub fn media_type_hint(file_name: &str, content: &[u8]) -> Option<&'static str> {
    let hint = match extension(file_name)?.as_str() {
        "md" | "markdown" | "mdown" | "mkd" => "text/markdown",
        "csv" => "text/csv",
        "tsv" | "tab" => "text/tab-separated-values",
        "txt" | "text" | "log" => "text/plain",
        _ => return None,
    };
    let text = std::str::from_utf8(content).ok()?;
    let begins_like_a_page = text.trim_start().starts_with('<') || text.starts_with("%PDF-");
    (!text.contains('\0') && !begins_like_a_page).then_some(hint)
}

fn unescaped(text: &str) -> String {
    percent_decode_str(text).decode_utf8().map_or_else(|_| text.to_owned(), |text| text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_paths_have_names_and_sources() {
        for (uri, name, from) in [
            ("https://www.Example.org:8080/a/b%20c.PDF?x=1", Some("b c.PDF"), Some("example.org")),
            ("file:///srv/in/a%20b.txt", Some("a b.txt"), Some("/srv/in")),
            ("reports/2024/x.md", Some("x.md"), Some("reports/2024")),
            ("x#1?.md", Some("x#1?.md"), None),
            ("https://example.org", None, Some("example.org")),
            ("https://me:secret@example.org/", None, Some("example.org")),
            ("C:\\in\\a.doc", Some("a.doc"), Some("C:\\in")),
            ("/", None, None),
            ("", None, None),
        ] {
            assert_eq!((file_name(uri).as_deref(), source(uri).as_deref()), (name, from), "{uri}");
        }
    }

    #[test]
    fn a_path_comes_back_from_its_address() {
        for path in ["/srv/in/a b.txt", "/Zürich/100%/#1?.md", "/a\"<b>`{c}.md"] {
            let name = path.rsplit('/').next().map(str::to_owned);
            assert_eq!(file_name(&file_uri(path)), name, "{}", file_uri(path));
        }
        assert_eq!(file_uri("/srv/Zürich 1.md"), "file:///srv/Zürich%201.md");
    }

    #[test]
    fn extensions_are_short_and_plain() {
        assert_eq!(extension("a.b.PDF").as_deref(), Some("pdf"));
        for name in ["a", ".profile", "a.", "a.b c", "v1.everything"] {
            assert_eq!(extension(name), None, "{name}");
        }
    }

    #[test]
    fn a_name_is_only_a_hint() {
        assert_eq!(media_type_hint("a.md", b"plain words"), Some("text/markdown"));
        assert_eq!(media_type_hint("a.csv", b"one\ntwo"), Some("text/csv"));
        assert_eq!(media_type_hint("a.md", b"  <!doctype html><p>x"), None);
        assert_eq!(media_type_hint("a.md", b"%PDF-1.7"), None);
        assert_eq!(media_type_hint("a.md", b"\xff\xfea\0"), None);
        assert_eq!(media_type_hint("a.md", b"a\0b"), None);
        assert_eq!(media_type_hint("a.pdf", b"words"), None);
    }
}
