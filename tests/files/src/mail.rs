//! Electronic mail (RFC 5322 and MIME).

use crate::{Original, file};

pub(crate) fn originals() -> Vec<Original> {
    vec![
        Original { file: file("plain.eml", PLAIN.replace('\n', "\r\n")), says: "sandpiper" },
        Original { file: file("both.eml", BOTH.replace('\n', "\r\n")), says: "oystercatcher" },
    ]
}

const PLAIN: &str = "From: Ann Example <ann@example.org>
To: Bob Example <bob@example.org>
Subject: Seen at the river
Date: Mon, 6 May 2024 08:30:00 +0200
Message-ID: <1@example.org>
MIME-Version: 1.0
Content-Type: text/plain; charset=utf-8

Dear Bob,

a sandpiper stood on the stones below the bridge this morning.

Ann
";

const BOTH: &str = "From: =?utf-8?Q?J=C3=B6rg?= <joerg@example.org>
To: ann@example.org
Subject: =?utf-8?B?QW0gU3RyYW5k?=
Date: Tue, 7 May 2024 18:00:00 +0000
Message-ID: <2@example.org>
MIME-Version: 1.0
Content-Type: multipart/alternative; boundary=\"edge\"

--edge
Content-Type: text/plain; charset=iso-8859-1
Content-Transfer-Encoding: quoted-printable

The oystercatcher's call is heard from far; f=FCr dich.
--edge
Content-Type: text/html; charset=utf-8
Content-Transfer-Encoding: 8bit

<html><body><p>The <b>oystercatcher</b>'s call is heard from far; für dich.</p></body></html>
--edge--
";

/// A mail whose content has these headers and this body.
pub(crate) fn mail(content_headers: &str, body: &str) -> String {
    format!(
        "From: a@example.org\r\nTo: b@example.org\r\nSubject: test\r\nDate: Mon, 6 May 2024 08:30:00 +0200\r\n\
         Message-ID: <3@example.org>\r\nMIME-Version: 1.0\r\n{content_headers}\r\n\r\n{body}"
    )
}
