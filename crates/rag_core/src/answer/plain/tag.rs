//! Tags of HTML.

/// Elements that do something, or look like something, wherever they are shown.
const ELEMENTS: &[&str] = &[
    "a",
    "abbr",
    "address",
    "applet",
    "area",
    "article",
    "aside",
    "audio",
    "b",
    "base",
    "bdi",
    "bdo",
    "big",
    "blink",
    "blockquote",
    "body",
    "br",
    "button",
    "canvas",
    "caption",
    "center",
    "cite",
    "code",
    "col",
    "colgroup",
    "data",
    "datalist",
    "dd",
    "del",
    "details",
    "dfn",
    "dialog",
    "dir",
    "div",
    "dl",
    "dt",
    "em",
    "embed",
    "fieldset",
    "figcaption",
    "figure",
    "font",
    "footer",
    "form",
    "frame",
    "frameset",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "header",
    "hr",
    "html",
    "i",
    "iframe",
    "img",
    "image",
    "input",
    "ins",
    "isindex",
    "kbd",
    "keygen",
    "label",
    "legend",
    "li",
    "link",
    "listing",
    "main",
    "map",
    "mark",
    "marquee",
    "math",
    "menu",
    "meta",
    "meter",
    "nav",
    "noembed",
    "noframes",
    "noscript",
    "object",
    "ol",
    "optgroup",
    "option",
    "output",
    "p",
    "param",
    "picture",
    "plaintext",
    "portal",
    "pre",
    "progress",
    "q",
    "rp",
    "rt",
    "ruby",
    "s",
    "samp",
    "script",
    "search",
    "section",
    "select",
    "slot",
    "small",
    "source",
    "span",
    "strike",
    "strong",
    "style",
    "sub",
    "summary",
    "sup",
    "svg",
    "table",
    "tbody",
    "td",
    "template",
    "textarea",
    "tfoot",
    "th",
    "thead",
    "time",
    "title",
    "tr",
    "track",
    "tt",
    "u",
    "ul",
    "var",
    "video",
    "wbr",
    "xmp",
];

/// Whether what stands behind `<` is a tag of HTML, or has an attribute as one has.
pub(super) fn is_html(behind: &str) -> bool {
    let inner = behind.split(['<', '>']).next().unwrap_or_default();
    let name = behind.trim_start_matches('/');
    let name = &name[..name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(name.len())];
    inner.contains('=')
        || behind.starts_with(['!', '?'])
        // `Option<A>` is no link: elements are written in small letters, or in capitals that are more than one.
        || (ELEMENTS.iter().any(|known| known.eq_ignore_ascii_case(name))
            && !(name.len() == 1 && name.bytes().all(|b| b.is_ascii_uppercase()) && !inner.contains(' ')))
}

/// A text in which `<` has another form where a browser would take it for the beginning of a tag, and `chosen` says
/// so of what stands behind it. The bracket that closes it goes with it.
pub(super) fn without_tags(text: &str, chosen: impl Fn(&str) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut is_open = false;
    for (at, c) in text.char_indices() {
        let behind = &text[at + c.len_utf8()..];
        match c {
            '<' if behind
                .starts_with(|next: char| next.is_ascii_alphabetic() || matches!(next, '/' | '!' | '?'))
                && chosen(behind) =>
            {
                is_open = true;
                shown.push('‹');
            }
            '>' if is_open => {
                is_open = false;
                shown.push('›');
            }
            _ => {
                is_open = is_open && c != '\n';
                shown.push(c);
            }
        }
    }
    shown
}
