//! What a text looks like that nobody renders as links or tags, and that code comes through.

use super::*;
use proptest::prelude::*;

#[test]
fn nothing_is_a_link_or_a_tag() {
    for (text, expected) in [
        ("See [the manual](https://b.example/x?q=1 \"t\") now.", "See the manual now."),
        ("![pixel](https://b.example/p.png?d=secret) Text. [1]", "pixel Text. [1]"),
        ("[![a](b)](c) d", "a d"),
        ("It is so [1](https://b.example).", "It is so [1]."),
        ("See https://b.example/x. Then", "See `b.example/x`. Then"),
        ("(http://b.example/a)", "(`b.example/a`)"),
        ("<https://b.example>", "‹`b.example`›"),
        ("www.b.example and ann@b.example", "`www.b.example` and `ann@b.example`"),
        ("[1]: https://b.example", "[1] : `b.example`"),
        ("[a][1]", "[a][1]"),
        ("a <b>bold</b> <img src=x onerror=alert(1)>", "a ‹b›bold‹/b› ‹img src=x onerror=alert(1)›"),
        ("&lt;img src=x&gt; &#60;b&#x3e; &amp;lt;i&amp;gt;", "‹img src=x› ‹b› ‹i›"),
        (
            "javascript:alert(1) data:text/html;base64,PHN2Zz4=",
            "javascript :alert(1) data :text/html;base64,PHN2Zz4=",
        ),
        ("The data: 12 rows. JavaScript: a language", "The data: 12 rows. JavaScript : a language"),
        ("\u{1b}[31mred\u{1b}[0m \u{1b}]8;;http://b.example\u{7}link\u{1b}]8;;\u{7}", "red link"),
        ("a\u{200b}b\u{202e}c\u{e0041}", "abc"),
        ("\u{645}\u{6cc}\u{200c}\u{62e}", "\u{645}\u{6cc}\u{200c}\u{62e}"),
        ("hthttps://tps://b.example", "`b.example`"),
        ("torn [text](https://b.example/a", "torn [text] (`b.example/a`"),
        ("postgresql://u@h/db", "`postgresql://u@h/db`"),
        ("[a https://]https://(b", "[a `] (b`"),
        ("\\https://`Vec<u8>`", "\\ `Vec<u8>`"),
        ("```https://`<b>```", "''''‹b›'''"),
        ("[a https://:", "[a :"),
        ("[a]https://: b", "[a] : b"),
    ] {
        assert_eq!(defused(text), expected, "{text}");
    }
}

#[test]
fn code_stays_readable() {
    for text in [
        "`Vec<String>` has a `a < b` and `x[0]`",
        "if a < b && c > d then 3 <= 4",
        "```\nlet v: Vec<u8> = f::<T>(x);\n```\nText",
        "a -> b, AT&T, x & y, 5 < 6 > 4",
        "`SELECT a[1] FROM t`",
        "| a | b |\n| --- | --- |\n| 1 | 2 |",
    ] {
        assert_eq!(defused(text), text);
    }
    assert_eq!(defused("Vec<String> is a list"), "Vec‹String› is a list");
    assert_eq!(defused("`curl https://b.example/x`"), "`curl b.example/x`");
    assert_eq!(defused("`<script>alert(1)</script>`"), "`‹script›alert(1)‹/script›`");
    assert_eq!(defused("` <img src=x>"), "' ‹img src=x›");
    assert_eq!(defused("para\n    ```\n<img src=x>[a](b)"), "para\n    ```\n‹img src=x›[a] (b)");
}

#[test]
fn uris_are_addresses_of_the_web_and_names_of_files() {
    for uri in [
        "https://b.example/x",
        "HTTP://b",
        "file:///a",
        "s3://bucket/a.pdf",
        "wiki://page/12",
        "urn:isbn:1",
        "notes.md",
        "a/b c.md",
        "C:\\a",
        "/srv/a",
        "ann's notes",
        "2024: x",
    ] {
        assert_eq!(link_target(uri), Some(uri));
    }
    for uri in [
        "javascript:alert(1)",
        "JavaScript:x",
        " javascript:x",
        "java\tscript:x",
        "javascript://%0aalert(1)",
        "DATA://text/html,x",
        "data:text/html,x",
        "vbscript:x",
        "ms-word:x",
        "a\"onclick=x",
    ] {
        assert_eq!(link_target(uri), None, "{uri}");
    }
}

proptest! {
    #[test]
    fn whatever_comes_is_mere_text(text in "(\\[|\\]|\\(|\\)|!|`|``|```|<|>|/|img|a|script|&lt;|&#60;|&amp;|http|https://|s://|b\\.example|www\\.|@|javascript:|data:text/|:|\\\\|\u{1b}\\[|\u{200b}|\n| |=|on|\\PC){0,30}") {
        let shown = defused(&text);
        let lower = shown.to_lowercase();
        for what in ["http://", "https://", "javascript:", "data:text/", "](", "\u{1b}", "\u{200b}", "<script>", "<img ", "<img>", "<img/", "&lt;"] {
            prop_assert!(!lower.contains(what), "{what} in {shown:?}");
        }
        let outside: String = {
            let spans = code::spans(&shown);
            shown.char_indices().map(|(at, c)| if spans.iter().any(|s| s.contains(&at)) { ' ' } else { c }).collect()
        };
        let bytes = outside.as_bytes();
        for (at, byte) in bytes.iter().enumerate() {
            let next = bytes.get(at + 1).copied().unwrap_or(b' ');
            prop_assert!(*byte != b'<' || !(next.is_ascii_alphabetic() || b"/!?".contains(&next)), "{shown:?}");
        }
        prop_assert!(!outside.contains("]:"), "{shown:?}");
    }
}
