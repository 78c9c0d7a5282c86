//! Addresses of documents: what a link in one means, from where it stands (RFC 3986, section 5.2).

/// Most bytes of an address.
const MAX_BYTES: usize = 2_000;

/// The address that a reference means in a document at `base`: without query and fragment, and without `.` and `..`. None
/// for one that leads to no other document, as a mail address or a place in the same one. In names of files, escapes such as
/// `%20` are the characters that they stand for; in other addresses they stay.
pub fn resolved(base: Option<&str>, reference: &str) -> Option<String> {
    let reference = reference.trim();
    let path = reference.split(['#', '?']).next().unwrap_or_default();
    if path.is_empty() || reference.len() > MAX_BYTES || path.contains(char::is_whitespace) {
        return None;
    }
    if let Some((scheme, rest)) = path.split_once(':')
        && is_scheme(scheme)
    {
        let rest = rest.strip_prefix("//")?;
        return Some(joined(&scheme.to_lowercase(), &without_dots(rest, true)));
    }
    let base = base.unwrap_or_default().split(['#', '?']).next().unwrap_or_default();
    let (scheme, place) = base.split_once("://").map_or(("", base), |(scheme, place)| (scheme, place));
    let found = match (path.strip_prefix("//"), path.strip_prefix('/')) {
        (Some(authority), _) => without_dots(authority, !scheme.is_empty()),
        (None, Some(absolute)) if !scheme.is_empty() => {
            let authority = place.split('/').next().unwrap_or_default();
            format!("{authority}/{}", without_dots(absolute, false))
        }
        (None, Some(_)) => without_dots(path, false),
        (None, None) => {
            let folder = place.rfind('/').map_or("", |end| &place[..=end]);
            without_dots(&format!("{folder}{path}"), !scheme.is_empty())
        }
    };
    let address = joined(scheme, &found);
    (address.len() <= MAX_BYTES && !address.is_empty()).then_some(address)
}

fn joined(scheme: &str, place: &str) -> String {
    match scheme {
        "" => unescaped(place),
        "file" => format!("{scheme}://{}", unescaped(place)),
        _ => format!("{scheme}://{place}"),
    }
}

/// With the characters that escapes stand for; as it is where they make no text.
fn unescaped(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let digit = |at: usize| behind.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((16 * high + low) as u8);
                rest = &behind[2..];
            }
            _ => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    let text = String::from_utf8(bytes).ok().filter(|text| !text.contains(char::is_control));
    text.unwrap_or_else(|| path.to_owned())
}

fn is_scheme(text: &str) -> bool {
    text.len() >= 2
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// A path whose `.` and `..` are carried out. `..` goes no higher than the root, which is behind the authority if there is
/// one.
fn without_dots(path: &str, has_authority: bool) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let root = usize::from(has_authority || path.starts_with('/'));
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => {
                if kept.len() > root {
                    kept.pop();
                }
            }
            part => kept.push(part),
        }
    }
    kept.join("/")
}

#[cfg(test)]
mod tests {
    use super::resolved;

    #[track_caller]
    fn check(base: &str, reference: &str, expected: Option<&str>) {
        let base = (!base.is_empty()).then_some(base);
        assert_eq!(resolved(base, reference).as_deref(), expected, "{reference} in {base:?}");
    }

    #[test]
    fn references_are_resolved_from_where_they_stand() {
        check("sql-vacuum.html", "sql-analyze.html#NOTES", Some("sql-analyze.html"));
        check("docs/a/b.md", "../c.md", Some("docs/c.md"));
        check("docs/a/b.md", "./d/../e.md?x=1", Some("docs/a/e.md"));
        check("file:///srv/in/a.md", "b.md", Some("file:///srv/in/b.md"));
        check("file:///srv/in/a.md", "../../../../b.md", Some("file:///b.md"));
        check("https://example.org/x/y", "/z", Some("https://example.org/z"));
        check("https://example.org/x/y", "z/..//w", Some("https://example.org/x//w"));
        check("https://example.org/x/y", "//example.com/w", Some("https://example.com/w"));
        check("https://example.org", "HTTPS://example.net/q?r#s", Some("https://example.net/q"));
        check("", "a/b.md", Some("a/b.md"));
        check("docs/a.md", "my%20plan%C3%A9.md", Some("docs/my plané.md"));
        check("docs/a.md", "100%25.md", Some("docs/100%.md"));
        check("docs/a.md", "a%zz%ff%00.md", Some("docs/a%zz%ff%00.md"));
        check("file:///srv/in/a.md", "b%20c.md", Some("file:///srv/in/b c.md"));
        check("https://example.org/x", "a%20b.md", Some("https://example.org/a%20b.md"));
        check("", "/srv/b.md", Some("/srv/b.md"));
    }

    #[test]
    fn what_leads_nowhere_else_is_none() {
        check("a.html", "#top", None);
        check("a.html", "", None);
        check("a.html", "mailto:ann@example.org", None);
        check("a.html", "javascript:alert(1)", None);
        check("a.html", "two words", None);
    }
}
